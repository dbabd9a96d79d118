package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sluicehq/sluice/config"
	"github.com/sluicehq/sluice/internal/daemons"
	"github.com/sluicehq/sluice/state/boltstate"
)

// elsewhere are the daemons of this user that run and hold other state files than
// the one at path, which nobody has named: somebody may mean one of them. Where an
// application is named, they are of it.
func (p *letterPlace) elsewhere(path string, cfg *config.Config) (all []daemons.Daemon) {
	if p.state != "" || p.c.env(stateEnv) != "" {
		return nil
	}
	for _, d := range daemons.Noted(p.c.env) {
		if (!p.named(cfg) || d.Application == p.name(cfg)) && !sameFile(d.State, path) && isHeld(d.State) {
			all = append(all, d)
		}
	}
	return all
}

// named reports whether somebody has named an application.
func (p *letterPlace) named(cfg *config.Config) bool {
	return p.application != "" || p.c.env(applicationEnv) != "" || cfg != nil && cfg.Name != ""
}

// isHeld reports whether a process holds a state file.
func isHeld(path string) bool {
	store, err := openStateWithin(path, time.Nanosecond)
	if err == nil {
		err = store.Close()
	}
	return errors.Is(err, boltstate.ErrLocked)
}

func sameFile(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}

// holderOf is the URL of the daemon that was noted with a state file, or "".
func (p *letterPlace) holderOf(path string) string {
	for _, d := range daemons.Noted(p.c.env) {
		if sameFile(d.State, path) {
			return d.URL
		}
	}
	return ""
}

// stateAt is the state file of the running daemon that was noted with a URL, or "".
func (p *letterPlace) stateAt(url string) string {
	for _, d := range daemons.Noted(p.c.env) {
		if d.URL == strings.TrimSuffix(url, "/") && isHeld(d.State) {
			return d.State
		}
	}
	return ""
}

// askElsewhere is for the only daemon that may be meant in place of a state file
// that no daemon holds. Where dead letters are changed and both are there, somebody
// has to say which is meant.
func (p *letterPlace) askElsewhere(path string, there bool, all []daemons.Daemon, cfg *config.Config) (*lettersOpen, error) {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	if len(all) > 1 || there && p.changes {
		var choices []string
		for _, d := range all {
			choices = append(choices, fmt.Sprintf("--daemon %s, which holds %s", d.URL, d.State))
		}
		if there {
			choices = append(choices, "--state "+shellQuoted(path)+", which no daemon holds")
		}
		return nil, fmt.Errorf("say whose dead letters are meant:\n%s", strings.Join(choices, "\n"))
	}
	d := all[0]
	fmt.Fprintf(p.c.stderr, "no daemon holds %s: the one that holds %s is asked at %s", path, d.State, d.URL)
	if there {
		fmt.Fprintf(p.c.stderr, "; --state %s reads that file", shellQuoted(path))
	}
	fmt.Fprintln(p.c.stderr)
	o, err := p.ask(d.URL, d.State, cfg)
	if err != nil {
		return nil, err
	}
	o.api.state = d.State
	if p.named(cfg) {
		o.api.app = p.name(cfg)
	}
	return o, nil
}
