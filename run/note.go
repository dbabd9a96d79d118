package run

import (
	"log/slog"
	"net"

	"github.com/sluicehq/sluice/internal/daemons"
)

// note notes for the commands of this user where the daemon listens and which state
// file it holds, until forget is called.
func (o Options) note(env func(string) string, address string, logger *slog.Logger) (forget func()) {
	host, port, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() {
		address = net.JoinHostPort("127.0.0.1", port)
	}
	forget, err = daemons.Note(env, daemons.Daemon{URL: "http://" + address, State: o.State, Application: o.Application})
	if err != nil { // such as a read-only file system: the commands find it by their other ways
		logger.Debug("not noted", "error", err)
	}
	return forget
}
