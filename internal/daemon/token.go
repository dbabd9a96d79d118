package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/access"
	"github.com/sluicehq/sluice/internal/statestore"
)

// token returns the operators' token and its file, if it has one. By default the
// token is beside the state file, whose lock keeps others from making it meanwhile.
// With a state table there is no default, and the token may be empty.
func (o Options) token(env func(string) string) (token, file string, err error) {
	if token = env(access.TokenEnv); token != "" {
		if err := access.Check(token); err != nil {
			return "", "", &UsageError{fmt.Errorf("%s: %w", access.TokenEnv, err)}
		}
		return token, "", nil
	}
	if _, ok := statestore.Table(o.State); ok && o.TokenFile == "" {
		return "", "", nil
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
