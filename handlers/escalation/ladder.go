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

// StepAttributes name the attributes, or dotted paths, of a step, and say
// which items of the partition are steps.
type StepAttributes struct {
	TypeAttribute string // S; with Type says which items are steps (default: all are)
	Type          string
	Enabled       string // BOOL; a step without it is left out (default: no step is)

	ID          string // S, unique in the ladder
	Order       string // N, whole
	WaitSeconds string // N, whole, not negative

	// Contacts is a list or a set of texts (L of S, SS), which are called at the
	// same time. A step without it is one contact (default: every step is).
	Contacts string
}

// Step is one step of a ladder.
type Step struct {
	ID       string
	Order    int64
	Wait     time.Duration
	Contacts []string // none where the step itself is the contact
	Item     sluice.Item
}

// rank is a step's place in its ladder. It stays when other steps come and go.
type rank struct {
	order int64
	id    string
}

func (r rank) compare(o rank) int {
	return cmp.Or(cmp.Compare(r.order, o.order), cmp.Compare(r.id, o.id))
}

func (s Step) rank() rank { return rank{s.Order, s.ID} }

// ladder returns the steps of a partition in their order, and what is wrong
// with those that are none, by their places in the partition: keys are not logged.
// One bad step does not silence the others.
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
	if s.Order, err = integer(it, a.Order); err != nil {
		return s, fmt.Errorf("step %s: %w", keyhash.Text(s.ID), err)
	}
	seconds, err := integer(it, a.WaitSeconds)
	if err != nil {
		return s, fmt.Errorf("step %s: %w", keyhash.Text(s.ID), err)
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

// first returns the step that a round begins at: the first of the order at or of
// a later one, or the first of all.
func first(steps []Step, at *int64) Step {
	if at != nil {
		if i := slices.IndexFunc(steps, func(s Step) bool { return s.Order >= *at }); i >= 0 {
			return steps[i]
		}
	}
	return steps[0]
}

// after returns the first step that comes later than r.
func after(steps []Step, r rank) (Step, bool) {
	i := slices.IndexFunc(steps, func(s Step) bool { return s.rank().compare(r) > 0 })
	if i < 0 {
		return Step{}, false
	}
	return steps[i], true
}
