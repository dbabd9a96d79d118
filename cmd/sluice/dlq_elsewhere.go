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
		if (!p.named(cfg) || d.Application == p.name(cfg)) && !daemons.SameFile(d.State, path) && isHeld(d.State) {
			if url, err := p.holderURL(d.State, cfg); err == nil {
				all = append(all, holder{d.State, url})
			}
		}
	}
	return all
}

// named reports whether the user named an application.
func (p *letterPlace) named(cfg *config.Config) bool {
	return p.application != "" || p.c.env(applicationEnv) != "" || cfg != nil && cfg.Name != ""
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
		var choices []string
		for _, d := range all {
			choices = append(choices, fmt.Sprintf("--daemon %s, which holds %s", d.url, d.state))
		}
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
	o, err := p.ask(d.url, d.state, cfg)
	if err != nil {
		return nil, err
	}
	o.api.state = d.state
	if p.named(cfg) {
		o.api.app = p.name(cfg)
	}
	return o, nil
}
