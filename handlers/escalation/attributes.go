package escalation

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/item"
)

// attempt is an attempted step.
type attempt struct {
	escalation            string
	round, repeat, number int64
	rank                  rank
	at                    time.Time
}

// tryKey is the key of an attempt; round 0 is the first.
func tryKey(id string, round, number int64) string {
	return dedupeKey(id, strconv.FormatInt(number, 10), round)
}

func (a AttemptAttributes) read(it sluice.Item) (at attempt, err error) {
	f := fields{it: it}
	field(&f, &at.escalation, text, a.Escalation)
	field(&f, &at.number, integer, a.Number)
	field(&f, &at.round, count, a.Round)
	field(&f, &at.repeat, count, a.Repeat)
	field(&f, &at.rank.order, integer, a.Order)
	field(&f, &at.rank.id, text, a.StepID)
	field(&f, &at.at, moment, a.At)
	return at, f.err
}

// read returns the escalation and whether it is active. It reads nothing else of
// an inactive one. A bad value in an optional attribute is reported as a problem,
// but does not stop the calls.
func (a EscalationAttributes) read(id string, it sluice.Item) (e Escalation, active bool, err error) {
	e = Escalation{ID: id, Item: it}
	status, err := text(it, a.Status)
	if err != nil || status != a.Active {
		return e, false, err
	}
	f := fields{it: it}
	field(&f, &e.Round, count, a.Round)
	field(&f, &e.Ladder, text, a.Ladder)
	field(&f, &e.Started, moment, a.Started)
	if f.err != nil {
		return e, true, f.err
	}
	if began, ok := optional(&e, moment, a.RoundStarted); ok && began.After(e.Started) {
		e.Started = began
	}
	e.SnoozedUntil, _ = optional(&e, moment, a.SnoozedUntil)
	if order, ok := optional(&e, integer, a.ResumeAt); ok {
		e.resumeAt = &order
	}
	if n, ok := optional(&e, count, a.Repeat); ok {
		e.repeat = &n
	}
	return e, true, nil
}

// StillIn returns op with the condition that its escalation is active and in the
// round that escalation shows. It uses the placeholders #active, :active, #round
// and :round.
func (a EscalationAttributes) StillIn(escalation sluice.Item, op dynamo.Op) dynamo.Op {
	name := cmp.Or(a.Round, defaultRound)
	op = op.Name("#active", a.Status).Value(":active", a.Active).Name("#round", name)
	if round, there := escalation.Lookup(name); there {
		return op.If("#active = :active AND #round = :round").Value(":round", round)
	}
	return op.If("#active = :active AND attribute_not_exists(#round)")
}

// optional reads an attribute by one of the functions below. It returns false if the item
// lacks the attribute, or if its value is bad, which is a problem.
func optional[T any](e *Escalation, read func(sluice.Item, string) (T, error), path string) (v T, ok bool) {
	if _, there := e.Item.Lookup(path); path == "" || !there {
		return v, false
	}
	v, err := read(e.Item, path)
	if err != nil {
		e.problems = append(e.problems, err)
	}
	return v, err == nil
}

// fields reads attributes of an item, up to the first that is wrong.
type fields struct {
	it  sluice.Item
	err error
}

// field reads an attribute by one of the functions below.
func field[T any](f *fields, into *T, read func(sluice.Item, string) (T, error), path string) {
	if f.err == nil {
		*into, f.err = read(f.it, path)
	}
}

func text(it sluice.Item, path string) (string, error) {
	v, err := typed(it, path, item.S)
	return v.Str(), err
}

func integer(it sluice.Item, path string) (int64, error) {
	v, err := typed(it, path, item.N)
	if err != nil {
		return 0, err
	}
	n, ok := v.Int64()
	if !ok {
		return 0, fmt.Errorf("attribute %q is a number, but no whole one of 64 bits", path)
	}
	return n, nil
}

// count reads an integer of 0 or more; a missing one is 0.
func count(it sluice.Item, path string) (int64, error) {
	if _, there := it.Lookup(path); !there {
		return 0, nil
	}
	n, err := integer(it, path)
	if err == nil && n < 0 {
		return 0, fmt.Errorf("attribute %q is %d, want 0 or more", path, n)
	}
	return n, err
}

func moment(it sluice.Item, path string) (time.Time, error) {
	s, err := text(it, path)
	if err != nil {
		return time.Time{}, err
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}, fmt.Errorf("attribute %q is no time in RFC 3339, such as 2019-12-30T19:32:14Z", path)
	}
	return t, nil
}

// texts reads the distinct texts of a list or string set; at least one.
func texts(it sluice.Item, path string) (all []string, err error) {
	v, ok := it.Lookup(path)
	if !ok {
		return nil, fmt.Errorf("attribute %q is missing", path)
	}
	elements := v.List()
	if v.Kind() == item.SS {
		elements = v.Set()
	} else if v.Kind() != item.L {
		return nil, fmt.Errorf("attribute %q is of type %v, want L or SS", path, v.Kind())
	}
	for e := range elements {
		if e.Kind() != item.S || e.Str() == "" {
			return nil, fmt.Errorf("attribute %q has an element that is no text", path)
		}
		if !slices.Contains(all, e.Str()) {
			all = append(all, e.Str())
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("attribute %q is empty", path)
	}
	return all, nil
}

func typed(it sluice.Item, path string, want item.Kind) (item.Value, error) {
	v, ok := it.Lookup(path)
	if !ok {
		return v, fmt.Errorf("attribute %q is missing", path)
	}
	if v.Kind() != want {
		return v, fmt.Errorf("attribute %q is of type %v, want %v", path, v.Kind(), want)
	}
	return v, nil
}

// formatTime formats a time as messages and attributes have it.
func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
