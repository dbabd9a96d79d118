package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"strings"

	"github.com/sluicehq/sluice/internal/access"
	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/statestore"
)

// daemonToken is the token for the daemon at an address, and advice if the daemon
// refuses it.
type daemonToken struct {
	token   string
	refused string
}

// token finds a daemon's token: the one that the user names, or the one beside the
// state file that the daemon holds. state is "" if only the daemon's URL is known.
// A token that the user did not name goes to the URL only if the holder of the
// state file listens there: another user's program could.
func (p *letterPlace) token(u *url.URL, state string, cfg *config.Config) (daemonToken, error) {
	const other = "name the file that the daemon logs as it starts by --token-file or $" + access.TokenFileEnv
	ip := net.ParseIP(u.Hostname())
	here := u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
	file, named, err := p.tokenFileName(cfg)
	switch {
	case err != nil:
		return daemonToken{}, err
	case named != "" && !here && u.Scheme != "https":
		return daemonToken{}, fmt.Errorf("--daemon: others could read the token on its way to %s: want https, or a tunnel from this machine (ssh -L, kubectl port-forward)", u)
	case file != "":
		token, err := access.Read(file)
		if err != nil {
			return daemonToken{}, fmt.Errorf("%s: %w", named, err)
		}
		return daemonToken{token, "it is not the one in " + file}, nil
	case named != "":
		return daemonToken{p.c.env(access.TokenEnv), "it is not the one of " + named}, nil
	case !here:
		return daemonToken{refused: other}, nil
	}
	guessed := state == ""
	if guessed {
		state = p.c.statePath("", cfg)
	}
	if _, ok := statestore.Table(state); ok {
		return daemonToken{refused: "set $" + access.TokenEnv + " to the same text for the daemons and for this command"}, nil
	}
	file = access.FileOf(state)
	token, err := access.Read(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return daemonToken{refused: fmt.Sprintf("no token in %s: %s", file, other)}, nil
	case errors.Is(err, fs.ErrPermission):
		return daemonToken{refused: fmt.Sprintf("it is in %s, which you may not read: ask as the user of the daemon (sudo -u)", file)}, nil
	case err != nil:
		return daemonToken{}, err
	case guessed && !holdsAndListens(state, u):
		return daemonToken{refused: fmt.Sprintf("the token beside %s is for the daemon that holds this file, which does not listen there: %s", state, other)}, nil
	}
	return daemonToken{token, fmt.Sprintf("it is not the one in %s: %s", file, other)}, nil
}

// tokenFileName returns the file of a token that the user named, and the name of
// that setting; "" if none. A token in the environment has no file.
func (p *letterPlace) tokenFileName(cfg *config.Config) (file, named string, err error) {
	switch {
	case p.tokenFile != "":
		return p.tokenFile, "--token-file", nil
	case p.flags.Changed("token-file"):
		return "", "", usage("--token-file: it is empty: is a variable not set?")
	case p.c.env(access.TokenEnv) != "":
		return "", "$" + access.TokenEnv, nil
	case p.c.env(access.TokenFileEnv) != "":
		return p.c.env(access.TokenFileEnv), "$" + access.TokenFileEnv, nil
	case cfg != nil && cfg.Daemon.TokenFile != "":
		return cfg.Daemon.TokenFile, "daemon.tokenFile of the configuration", nil
	}
	return "", "", nil
}

// holderURL is where the daemon listens that holds a state file, as it has written
// beside the file.
func (p *letterPlace) holderURL(state string, cfg *config.Config) (string, error) {
	file, named, err := p.tokenFileName(cfg)
	if err != nil {
		return "", err
	}
	if named == "" {
		file = access.FileOf(state)
	}
	address, err := access.ReadAddress(access.AddressFileOf(state), file)
	switch {
	case errors.Is(err, fs.ErrNotExist) && p.live:
		return "", fmt.Errorf("a daemon holds %s, and does not listen (listen: off), or not yet: start it again with an address to listen on", state)
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("a daemon holds %s, and does not listen (listen: off), or not yet: stop it, or let it listen", state)
	case err != nil:
		return "", fmt.Errorf("where the daemon that holds %s listens: %w", state, err)
	}
	return "http://" + address, nil
}

// holdsAndListens reports whether a daemon holds a state file and listens at u. The
// address alone proves nothing: a daemon that crashed has left it there.
func holdsAndListens(state string, u *url.URL) bool {
	address, err := access.ReadAddress(access.AddressFileOf(state), access.FileOf(state))
	if err != nil || u.Scheme != "http" || u.Host != address {
		return false
	}
	return isHeld(state)
}

// daemonURL parses the address of a daemon. localhost is 127.0.0.1, because a
// daemon told localhost listens there. At [::1] another user's program may listen.
func daemonURL(text string) (*url.URL, error) { return addressURL("--daemon", text) }

// addressURL is daemonURL for the value of a flag.
func addressURL(flag, text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, usage("%s: this is no address of a daemon: want one such as %s", flag, defaultDaemon)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, usage("%s: the address has a user, a query or a fragment: want one such as %s, and the token by --token-file", flag, defaultDaemon)
	case u.Scheme == "http" && strings.EqualFold(u.Hostname(), "localhost"):
		u.Host = strings.TrimSuffix(net.JoinHostPort("127.0.0.1", u.Port()), ":")
	}
	return u, nil
}
