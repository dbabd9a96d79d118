package escalation

import (
	"fmt"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/item"
)

// attempt is a step that was tried.
type attempt struct {
	escalation string
	number     int64
	rank       rank
	at         time.Time
}

func (a AttemptAttributes) read(it sluice.Item) (at attempt, err error) {
	if at.escalation, err = text(it, a.Escalation); err != nil {
		return at, err
	}
	if at.number, err = integer(it, a.Number); err != nil {
		return at, err
	}
	if at.rank.order, err = integer(it, a.Order); err != nil {
		return at, err
	}
	if at.rank.id, err = text(it, a.StepID); err != nil {
		return at, err
	}
	at.at, err = moment(it, a.At)
	return at, err
}

// read returns the escalation and whether it is active; of one that is not,
// nothing else is read.
func (a EscalationAttributes) read(id string, it sluice.Item) (e Escalation, active bool, err error) {
	status, err := text(it, a.Status)
	if err != nil || status != a.Active {
		return e, false, err
	}
	e = Escalation{ID: id, Item: it}
	if e.Ladder, err = text(it, a.Ladder); err != nil {
		return e, true, err
	}
	e.Started, err = moment(it, a.Started)
	return e, true, err
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
		return 0, fmt.Errorf("attribute %q is %s, want a whole number of 64 bits", path, v.Str())
	}
	return n, nil
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

func typed(it sluice.Item, path string, want item.Kind) (sluice.Value, error) {
	v, ok := it.Lookup(path)
	if !ok {
		return v, fmt.Errorf("attribute %q is missing", path)
	}
	if v.Kind() != want {
		return v, fmt.Errorf("attribute %q is of type %v, want %v", path, v.Kind(), want)
	}
	return v, nil
}
