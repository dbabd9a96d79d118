package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/daemons"
	"github.com/sluicehq/sluice/state/boltstate"
)

// holder is a daemon that runs: its state file, and where it listens.
type holder struct{ state, url string }

// elsewhere returns this user's running daemons with other state files than path,
// when the user did not name path: the user may mean one of them. If an
// application is named, only its daemons count.
func (p *letterPlace) elsewhere(path string, cfg *config.Config) (all []holder) {
	if p.state != "" || p.c.env(stateEnv) != "" {
		return nil
	}
	for _, d := range daemons.Noted(p.c.env) {
		if app := p.meant(cfg); (app == "" || d.Application == app) && !daemons.SameFile(d.State, path) && isHeld(d.State) {
			if url, err := p.holderURL(d.State, cfg); err == nil {
				all = append(all, holder{d.State, url})
			}
		}
	}
	return all
}

// meant is the application that the user named, or the configuration, which may be nil;
// "" is any.
func (p *letterPlace) meant(cfg *config.Config) string {
	if p.application == "" && p.c.env(applicationEnv) == "" && (cfg == nil || cfg.Name == "") {
		return ""
	}
	return p.name(cfg)
}

// isHeld reports whether a process holds a state file.
func isHeld(path string) bool {
	store, err := openStateFile(path, time.Nanosecond)
	if err == nil {
		err = store.Close()
	}
	return errors.Is(err, boltstate.ErrLocked)
}

// stateAt returns the state file of the running daemon that listens at a URL, or
// "" if unknown.
func (p *letterPlace) stateAt(at string, cfg *config.Config) string {
	for _, d := range daemons.Noted(p.c.env) {
		if url, err := p.holderURL(d.State, cfg); err == nil && url == strings.TrimSuffix(at, "/") && isHeld(d.State) {
			return d.State
		}
	}
	return ""
}

// askElsewhere is for the only daemon that the user may mean, instead of a state
// file that no daemon holds. has describes that file's dead letters; "" if there
// is no file. For a change the user must say which is meant.
func (p *letterPlace) askElsewhere(path, has string, all []holder, cfg *config.Config) (*lettersOpen, error) {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	if len(all) > 1 || p.changes {
		choices := mapped(all, func(d holder) string { return fmt.Sprintf("--daemon %s, which holds %s", d.url, d.state) })
		if has != "" {
			choices = append(choices, "--state "+shellQuoted(path)+", which no daemon holds, and which has "+has)
		}
		return nil, fmt.Errorf("say which is meant:\n%s", strings.Join(choices, "\n"))
	}
	d := all[0]
	fmt.Fprintf(p.c.stderr, "no daemon holds %s: the one that holds %s is asked at %s", path, d.state, d.url)
	if has != "" {
		fmt.Fprintf(p.c.stderr, "; --state %s reads the former, which has %s", shellQuoted(path), has)
	}
	fmt.Fprintln(p.c.stderr)
	return p.ask(d.url, d.state, cfg, letterClient{state: d.state, app: p.meant(cfg)})
}
