// Package pauses keeps in a state which routes of an application its operators have
// paused or slowed, and until when.
package pauses

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice/state"
)

const (
	// Longest is the longest pause: a stream forgets its records after 24 hours.
	Longest = 12 * time.Hour
	// ReadEvery is how often a worker reads the pauses although it heard of no change.
	ReadEvery = time.Minute

	name    = "routes/pauses" // of the value that has all pauses of an application
	version = 1
	// keep is how long a pause is stored after its end, by a clock that may be wrong.
	keep  = 24 * time.Hour
	tries = 20 // of a change, beside those of other operators
)

// Pause pauses a route, or slows it: with Concurrency or Rate.
type Pause struct {
	ID          string        `json:"id"`
	Route       string        `json:"route"`
	Concurrency int           `json:"concurrency,omitempty"` // calls at a time of each worker
	Rate        float64       `json:"rate,omitempty"`        // records a second of each worker
	Since       time.Time     `json:"since"`                 // by the clock of the operator's machine
	For         time.Duration `json:"nanoseconds"`
}

// New returns a Pause that begins now.
func New(route string, length time.Duration, concurrency int, rate float64) Pause {
	return Pause{ID: rand.Text(), Route: route, Concurrency: concurrency, Rate: rate, Since: time.Now().UTC().Truncate(time.Millisecond), For: length}
}

// Check returns the mistake in p.
func (p Pause) Check() error {
	switch {
	case p.For <= 0 || p.For > Longest:
		return fmt.Errorf("for: %v: want more than 0, and %v at most, because the stream forgets a record 24 hours after its change", p.For, Longest)
	case p.Concurrency < 0:
		return fmt.Errorf("concurrency: %d: want 1 or more calls at a time", p.Concurrency)
	case p.Rate < 0 || math.IsNaN(p.Rate) || math.IsInf(p.Rate, 0):
		return fmt.Errorf("rate: %v: want more than 0 records a second", p.Rate)
	}
	return nil
}

// Paused reports whether p starts no call at all.
func (p Pause) Paused() bool { return p.Concurrency == 0 && p.Rate == 0 }

// Until is the end of p, by the clock of the operator's machine.
func (p Pause) Until() time.Time { return p.Since.Add(p.For) }

type stored struct {
	Version int     `json:"version"`
	Pauses  []Pause `json:"pauses"`
}

// Read returns the stored pauses, ordered by route. Some may be over.
func Read(ctx context.Context, store state.Values, app string) ([]Pause, error) {
	all, _, err := read(ctx, store, app)
	return all, err
}

func read(ctx context.Context, store state.Values, app string) (all []Pause, seen []byte, err error) {
	data, ok, err := store.GetValue(ctx, app, name)
	if err != nil || !ok {
		return nil, nil, err
	}
	var s stored
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, nil, fmt.Errorf("value %s of application %s: %w", name, app, err)
	}
	if s.Version > version {
		return nil, nil, fmt.Errorf("value %s of application %s is of version %d, written by a newer program; this one reads versions up to %d: run the newer program", name, app, s.Version, version)
	}
	return s.Pauses, data, nil
}

// shared is a state of several processes.
type shared interface {
	SwapValue(ctx context.Context, app, name string, seen, data []byte) (bool, error)
	// Announce has other workers read what was written.
	Announce(ctx context.Context, app string) (deaf []string, err error)
}

// ErrDeaf is wrapped by a warning: the change is stored, and these workers read it
// within ReadEvery.
var ErrDeaf = errors.New("could not be told, and follow within a minute")

// Set stores p in place of the pause of its route, and tells all workers. It returns
// the pause that it replaced, or nil. Other processes may change pauses meanwhile; in
// this one the caller must see to it that nobody does. After an ErrDeaf p is stored.
func Set(ctx context.Context, store state.Values, app string, p Pause) (before *Pause, err error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	return change(ctx, store, app, p.Route, "", &p)
}

// End removes the pause of a route, and tells all workers. It returns the pause, or nil
// if there was none. It is otherwise like Set.
func End(ctx context.Context, store state.Values, app, route string) (before *Pause, err error) {
	return change(ctx, store, app, route, "", nil)
}

// Over removes p, unless the route has another pause now. Every worker knows by itself.
func Over(ctx context.Context, store state.Values, app string, p Pause) error {
	_, err := change(ctx, store, app, p.Route, p.ID, nil)
	return err
}

// change replaces the pause of a route. With an id it does so only for that pause.
func change(ctx context.Context, store state.Values, app, route, id string, by *Pause) (before *Pause, err error) {
	several, isShared := store.(shared)
	for range tries {
		all, seen, err := read(ctx, store, app)
		if err != nil {
			return nil, err
		}
		before = nil
		if i := slices.IndexFunc(all, func(p Pause) bool { return p.Route == route }); i >= 0 {
			old := all[i]
			before = &old
		}
		if before == nil && by == nil || id != "" && (before == nil || before.ID != id) {
			return before, nil
		}
		all = slices.DeleteFunc(all, func(p Pause) bool { return p.Route == route || time.Since(p.Until()) > keep })
		if by != nil {
			all = append(all, *by)
		}
		slices.SortFunc(all, func(a, b Pause) int { return strings.Compare(a.Route, b.Route) })
		data, err := json.Marshal(stored{version, all})
		if err != nil {
			return nil, err
		}
		if !isShared {
			return before, store.PutValue(ctx, app, name, data)
		}
		swapped, err := several.SwapValue(ctx, app, name, seen, data)
		if err != nil {
			return nil, err
		}
		if !swapped {
			continue
		}
		if id != "" {
			return before, nil
		}
		deaf, err := several.Announce(ctx, app)
		if err != nil {
			return before, fmt.Errorf("other workers %w: %w", ErrDeaf, err)
		}
		if len(deaf) > 0 {
			return before, fmt.Errorf("workers %s %w", strings.Join(deaf, ", "), ErrDeaf)
		}
		return before, nil
	}
	return nil, errors.New("other operators change the pauses all the time: try again")
}
