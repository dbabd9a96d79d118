package daemon

import (
	"log/slog"

	"github.com/sluicehq/sluice/internal/daemons"
)

// note notes for the commands of this user which state file the daemon holds, until
// forget is called.
func (o Options) note(env func(string) string, logger *slog.Logger) (forget func()) {
	forget, err := daemons.Note(env, daemons.Daemon{State: o.State, Application: o.Application})
	if err != nil { // such as a read-only file system: the commands find it by their other ways
		logger.Debug("not noted", "error", err)
	}
	return forget
}
