package daemon

import (
	"log/slog"
	"net"
	"os"

	"github.com/sluicehq/sluice/internal/access"
	"github.com/sluicehq/sluice/internal/daemons"
	"github.com/sluicehq/sluice/internal/statestore"
)

// publish stores for the commands of this user where the daemon of a state file
// listens, until withdraw is called. Commands name another daemon by --daemon.
func (o Options) publish(env func(string) string, listening net.Addr, logger *slog.Logger) (withdraw func()) {
	if _, ok := statestore.Table(o.State); ok {
		return func() {}
	}
	file := access.AddressFileOf(o.State)
	if err := access.WriteAddress(file, listening); err != nil {
		logger.Warn("the daemon's address is not stored: name it to commands by --daemon", "file", file, "error", err)
	}
	forget, err := daemons.Note(env, daemons.Daemon{State: o.State, Application: o.Application})
	if err != nil { // such as a read-only file system: the commands find it by their other ways
		logger.Debug("not noted", "error", err)
	}
	return func() {
		forget()
		_ = os.Remove(file)
	}
}
