package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/internal/access"
	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/daemon"
	"github.com/sluicehq/sluice/internal/statestore"
)

var probeTimeout = 5 * time.Second // a variable for tests

// health is a daemon's answer to its probes.
type health struct {
	Address     string `json:"address,omitempty"`
	Application string `json:"application,omitempty"`
	Live        bool   `json:"live"`
	Ready       *bool  `json:"ready,omitempty"` // nil: not asked
	Error       string `json:"error,omitempty"`
}

func healthCommand(c *cli) *cobra.Command {
	place := letterPlace{c: c, live: true}
	var ready, asJSON bool
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Check that the running daemon is live",
		Long: `Ask the running daemon's /livez: exit code 0 or 1.

A container's check never uses --ready: a restart repairs no sink.`,
		Example: `  sluice health
  sluice health --ready --json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), probeTimeout)
			defer cancel()
			var h health
			err := place.notEmpty()
			if err == nil {
				h.Address, err = place.probed()
			}
			if err == nil {
				err = h.ask(ctx, ready)
			}
			if wrong := new(daemon.UsageError); errors.As(err, &wrong) {
				return err
			}
			if !asJSON {
				if err == nil {
					_, err = fmt.Fprintln(c.stdout, plain(h.text()))
				}
				return err
			}
			if err != nil {
				h.Error = err.Error()
				err = errMistakes // printed as JSON
			}
			return errors.Join(err, printJSON(c.stdout, h))
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	place.flags = fs
	fs.StringVar(&place.daemon, "daemon", "", "`URL` of the daemon ($"+daemonEnv+"; default: the state file's or $"+listenEnv+")")
	fs.BoolVar(&ready, "ready", false, "ask /readyz, too")
	fs.BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

// probed is the URL of the daemon. It does not open the daemon's state file: a check must
// not take the lock that a starting daemon needs. If the file is invalid a daemon is found
// all the same, which may run by an earlier one.
func (p *letterPlace) probed() (string, error) {
	if at := cmp.Or(p.daemon, p.c.env(daemonEnv)); at != "" {
		return probeURL(at)
	}
	cfg, invalid := p.c.loadMaybe()
	state := p.c.statePath("", cfg)
	if _, table := statestore.Table(state); table {
		return p.listening(cfg)
	}
	address, err := access.ReadAddress(access.AddressFileOf(state), access.FileOf(state))
	if err == nil {
		return "http://" + address, nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		if others := p.elsewhere(state, cfg); len(others) == 1 {
			return others[0].url, nil
		}
		err = fmt.Errorf("no daemon with the state file %s listens: start it, or name its address by --daemon", state)
	}
	if _, unread := errors.AsType[*fs.PathError](err); unread { // such as by another user
		err = fmt.Errorf("where the daemon listens: %w: ask as the user of the daemon (sudo -u), or name its address by --daemon", err)
	}
	return "", errors.Join(invalid, err)
}

const listenEnv = "SLUICE_LISTEN"

// listening is the URL of a daemon that has no state file to write its address beside.
func (p *letterPlace) listening(cfg *config.Config) (string, error) {
	cfg = cmp.Or(cfg, new(config.Config))
	at := cmp.Or(p.c.env(listenEnv), cfg.Daemon.Listen, strings.TrimPrefix(defaultDaemon, "http://"))
	if at == "off" {
		return "", errors.New("the daemon does not listen (listen: off): start it with an address to listen on")
	}
	host, port, err := net.SplitHostPort(at)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		at = net.JoinHostPort("127.0.0.1", port)
	}
	return probeURL(at)
}

func probeURL(at string) (string, error) {
	if !strings.Contains(at, "://") {
		at = "http://" + at
	}
	u, err := daemonURL(at)
	if err != nil {
		return "", err
	}
	return strings.TrimSuffix(u.String(), "/"), nil
}

// ask fills in the daemon's answers.
func (h *health) ask(ctx context.Context, ready bool) error {
	client := &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true}, // and no proxy, which answers for a daemon that is gone
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	get := func(path string) (resp *http.Response, text string, err error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, h.Address+path, nil)
		if err != nil {
			return nil, "", usage("--daemon: %w", err)
		}
		resp, err = client.Do(r)
		if err != nil {
			return nil, "", fmt.Errorf("the daemon does not answer: %w: start it, or name its address by --daemon", err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(io.LimitReader(resp.Body, 8<<10))
		if err != nil {
			err = fmt.Errorf("the daemon's answer to %s has no end: %w: look at its log", path, err)
		}
		return resp, strings.TrimSpace(string(body)), err
	}
	live, text, err := get("/livez") //nolint:bodyclose // get closes it
	if err != nil {
		return err
	}
	application := live.Header.Get(daemon.ApplicationHeader)
	if application == "" {
		return fmt.Errorf("the program at %s is no Sluice daemon (%s): name the daemon's address by --daemon", h.Address, live.Status)
	}
	h.Application, h.Live = application, live.StatusCode == http.StatusOK
	if !h.Live {
		return fmt.Errorf("the daemon at %s is not live (%s): %s", h.Address, live.Status, text)
	}
	if !ready {
		return nil
	}
	works, text, err := get("/readyz") //nolint:bodyclose // get closes it
	if err != nil {
		return err
	}
	if h.Ready = new(works.StatusCode == http.StatusOK); !*h.Ready {
		return fmt.Errorf("the daemon at %s is not ready (%s): %s", h.Address, works.Status, text)
	}
	return nil
}

func (h *health) text() string {
	is := "is live"
	if h.Ready != nil {
		is += " and ready"
	}
	return fmt.Sprintf("the daemon of the application %q at %s %s", h.Application, h.Address, is)
}
