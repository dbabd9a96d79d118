package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"strings"

	"github.com/sluicehq/sluice/config"
	"github.com/sluicehq/sluice/internal/access"
)

// daemonToken is what the daemon at an address is shown, and for who is refused
// all the same what to do.
type daemonToken struct {
	token   string
	refused string
}

// token finds that of a daemon, which may keep its state in a file: the one that
// somebody names, or the one beside the state file of this machine.
func (p *letterPlace) token(u *url.URL, state string, cfg *config.Config) (daemonToken, error) {
	ip := net.ParseIP(u.Hostname())
	here := u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
	file, named := p.tokenFile, "--token-file"
	if file == "" && p.given("token-file") {
		return daemonToken{}, usage("--token-file: it is empty: is a variable not set?")
	}
	if file == "" {
		if token := p.c.env(access.TokenEnv); token != "" {
			return sent(u, here, daemonToken{token, "it is not the one of $" + access.TokenEnv})
		}
		file, named = p.c.env(access.TokenFileEnv), "$"+access.TokenFileEnv
	}
	if file == "" && cfg != nil {
		file, named = cfg.Daemon.TokenFile, "daemon.tokenFile of the configuration"
	}
	if file != "" {
		token, err := access.Read(file)
		if err != nil {
			return daemonToken{}, fmt.Errorf("%s: %w", named, err)
		}
		return sent(u, here, daemonToken{token, "it is not the one in " + file})
	}
	const other = "name the file that the daemon logs as it starts by --token-file or $" + access.TokenFileEnv
	if !here {
		return daemonToken{refused: other}, nil
	}
	if state == "" {
		state = p.c.statePath("", cfg)
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
	}
	return daemonToken{token, fmt.Sprintf("it is not the one in %s: name the address that your daemon logs by --daemon, if this is another one, or else %s", file, other)}, nil
}

// daemonURL reads the address of a daemon. localhost is 127.0.0.1, where a daemon
// listens that is told so: at [::1] another user's program may.
func daemonURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, usage("--daemon: this is no address of a daemon: want one such as %s", defaultDaemon)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, usage("--daemon: the address has a user, a query or a fragment: want one such as %s, and the token by --token-file", defaultDaemon)
	case u.Scheme == "http" && strings.EqualFold(u.Hostname(), "localhost"):
		u.Host = strings.TrimSuffix(net.JoinHostPort("127.0.0.1", u.Port()), ":")
	}
	return u, nil
}

// sent refuses to send a token where others can read it on its way.
func sent(u *url.URL, here bool, t daemonToken) (daemonToken, error) {
	if !here && u.Scheme != "https" {
		return daemonToken{}, fmt.Errorf("--daemon: others could read the token on its way to %s: want https, or a tunnel from this machine (ssh -L, kubectl port-forward)", u)
	}
	return t, nil
}
