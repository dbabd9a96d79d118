package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/access"
)

// token is what operators prove themselves by, and the file that it is in, if it
// is in one. Nobody else may make that file meanwhile: the state file's lock sees
// to it.
func (o Options) token(env func(string) string) (token, file string, err error) {
	if token = env(access.TokenEnv); token != "" {
		if err := access.Check(token); err != nil {
			return "", "", &UsageError{fmt.Errorf("%s: %w", access.TokenEnv, err)}
		}
		return token, "", nil
	}
	if o.TokenFile == "" {
		file = access.FileOf(o.State)
		if token, err = access.Make(file); err != nil {
			err = fmt.Errorf("%w; or name another file by --token-file (%s)", err, access.TokenFileEnv)
		}
		return token, file, err
	}
	token, err = access.Read(o.TokenFile)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("file %s does not exist: make one, such as by (umask 077; openssl rand -hex 16 > %[1]s)", o.TokenFile)
	}
	if err != nil {
		err = fmt.Errorf("--token-file (%s): %w", access.TokenFileEnv, err)
	}
	return token, o.TokenFile, err
}

// publish stores where the daemon listens, for the commands of its machine, until the
// function that it returns is called. Without the file they want --daemon.
func publish(listening net.Addr, file string, logger *slog.Logger) (withdraw func()) {
	if err := access.WriteAddress(file, listening); err != nil {
		logger.Warn("the daemon's address is not stored: name it to commands by --daemon", "file", file, "error", err)
	}
	return func() { _ = os.Remove(file) }
}

// forEverybody is what those may read of why a daemon is not ready who do not have
// its token: causes name roles, endpoints and what handlers were given.
func forEverybody(reasons []string, routes []flow.RouteState) []string {
	if len(reasons) == 0 {
		return nil
	}
	all := []string{"not ready: sluice status says why"}
	for _, r := range routes {
		if r.Trouble() != "" {
			all = append(all, fmt.Sprintf("route %q: %s since %s", r.Route, r.State, r.Since.Format(time.RFC3339)))
		}
	}
	return all
}

// protected wraps the endpoints that show or change the daemon's data.
func protected(g *access.Guard, all endpoints) endpoints {
	for pattern, h := range all {
		all[pattern] = g.Protect(h)
	}
	all["/session"], all["/session/"] = g.Sessions(), g.Sessions()
	return all
}
