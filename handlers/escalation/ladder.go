package escalation

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/keyhash"
)

// StepAttributes name the attributes, or dotted paths, of a step, and identify the
// steps in a partition.
type StepAttributes struct {
	TypeAttribute string // S; with Type identifies steps (default: all items are steps)
	Type          string
	Enabled       string // BOOL; a step without it is skipped (default: no step is)

	ID          string // S, unique in the ladder
	Order       string // N, integer
	WaitSeconds string // N, integer, 0 or more

	// Contacts is a list or set of texts (L of S, or SS), called concurrently.
	// A step without it is one contact (default: every step is).
	Contacts string
}

// Step is one step of a ladder.
type Step struct {
	ID       string
	Order    int64
	Wait     time.Duration
	Contacts []string // empty if the step itself is the contact
	Item     sluice.Item
}

// rank is a step's place in its ladder. It does not depend on other steps.
type rank struct {
	order int64
	id    string
}

func (r rank) compare(o rank) int {
	return cmp.Or(cmp.Compare(r.order, o.order), cmp.Compare(r.id, o.id))
}

func (s Step) rank() rank { return rank{s.Order, s.ID} }

// ladder returns the steps of a partition in order, and errors for bad ones by
// their place in the partition, because keys are not logged. A bad step does not
// affect the others.
func (a StepAttributes) ladder(partition []sluice.Item) (steps []Step, bad []error) {
	for i, it := range partition {
		if a.Type != "" {
			if v, ok := it.Lookup(a.TypeAttribute); !ok || v.Str() != a.Type {
				continue
			}
		}
		if a.Enabled != "" {
			if v, ok := it.Lookup(a.Enabled); !ok || !v.Bool() {
				continue
			}
		}
		s, err := a.step(it)
		if err != nil {
			bad = append(bad, fmt.Errorf("item %d of %d: %w", i+1, len(partition), err))
			continue
		}
		steps = append(steps, s)
	}
	slices.SortFunc(steps, func(s, t Step) int { return s.rank().compare(t.rank()) })
	return steps, bad
}

func (a StepAttributes) step(it sluice.Item) (s Step, err error) {
	s.Item = it
	if s.ID, err = text(it, a.ID); err != nil {
		return s, fmt.Errorf("a step: %w", err)
	}
	var seconds int64
	f := fields{it: it}
	field(&f, &s.Order, integer, a.Order)
	field(&f, &seconds, integer, a.WaitSeconds)
	if f.err != nil {
		return s, fmt.Errorf("step %s: %w", keyhash.Text(s.ID), f.err)
	}
	if seconds < 0 || seconds > math.MaxInt64/int64(time.Second) {
		return s, fmt.Errorf("step %s: attribute %q is %d, no number of seconds to wait", keyhash.Text(s.ID), a.WaitSeconds, seconds)
	}
	s.Wait = time.Duration(seconds) * time.Second
	if _, several := it.Lookup(a.Contacts); a.Contacts != "" && several {
		if s.Contacts, err = texts(it, a.Contacts); err != nil {
			return s, fmt.Errorf("step %s: %w", keyhash.Text(s.ID), err)
		}
	}
	return s, nil
}

// first returns the step at which a round begins: the first at or after the given
// order, or the first of all.
func first(steps []Step, at *int64) Step {
	if at != nil {
		if i := slices.IndexFunc(steps, func(s Step) bool { return s.Order >= *at }); i >= 0 {
			return steps[i]
		}
	}
	return steps[0]
}

// after returns the first step after r.
func after(steps []Step, r rank) (Step, bool) {
	i := slices.IndexFunc(steps, func(s Step) bool { return s.rank().compare(r) > 0 })
	if i < 0 {
		return Step{}, false
	}
	return steps[i], true
}
