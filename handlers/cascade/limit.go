package cascade

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/item"
)

// Limit keeps children that were written after the parent was put again. Each
// delete has a condition, so the limit holds at the moment of the write. A child
// without the attribute Name is deleted. A child whose attribute has another type
// than the limit stays, and fails the record or message permanently. Set one of
// From and Time.
type Limit struct {
	// Name is the children's top-level attribute, a number or text.
	Name string
	// From is an attribute, or dotted path, of the parent's old image: a
	// version that grows whenever the parent is put again. A child is deleted
	// if its attribute is at most that. If the parent lacks it, all children
	// are deleted.
	From string
	// Time is the form of a time: "seconds" or "milliseconds" since 1970, or
	// "rfc3339" in UTC. A child is deleted if it was written before the end of
	// the second in which the parent was deleted; the record is not more
	// precise.
	Time string
}

var timeForms = []string{"seconds", "milliseconds", "rfc3339"}

func (l Limit) faults(key []string) (faults []string) {
	bad := func(format string, args ...any) { faults = append(faults, ".NotNewer"+fmt.Sprintf(format, args...)) }
	switch {
	case l == Limit{}:
	case l.Name == "":
		bad(".Name is missing")
	case (l.From == "") == (l.Time == ""):
		bad(" has From %q and Time %q; set one of them", l.From, l.Time)
	case slices.Contains(key, l.From):
		bad(".From is %q, which is of the parent's key: it is the same when the parent is put again", l.From)
	case l.Time != "" && !slices.Contains(timeForms, l.Time):
		bad(".Time is %q; want one of %q", l.Time, timeForms)
	}
	return faults
}

// operator compares a child's attribute with the limit.
func (l Limit) operator() string {
	if l.Time != "" {
		return "<"
	}
	return "<="
}

// of returns the limit for the children of a parent; absent without a limit.
func (l Limit) of(image sluice.Item, deleted time.Time) (sluice.Item, error) {
	switch {
	case l.From != "":
		v, ok := image.Lookup(l.From)
		switch {
		case !ok && !image.Exists():
			return sluice.Item{}, fmt.Errorf("attribute %q of the parent is not known, and there is no image: the stream must have old images", l.From)
		case !ok, v.Kind() == item.NULL, v.Kind() == item.S && v.Len() == 0:
			return sluice.Item{}, nil
		case v.Kind() == item.S, v.Kind() == item.N:
			return item.Of(attributeOf(l.Name, v)), nil
		}
		return sluice.Item{}, fmt.Errorf("attribute %q of the parent is of type %v; a limit is a number or text", l.From, v.Kind())
	case l.Time == "":
		return sluice.Item{}, nil
	case deleted.IsZero():
		return sluice.Item{}, errors.New("the record does not say when the parent was deleted")
	}
	end := deleted.UTC().Truncate(time.Second).Add(time.Second)
	switch l.Time {
	case "milliseconds":
		return item.Of(item.Number(l.Name, strconv.FormatInt(end.UnixMilli(), 10))), nil
	case "rfc3339":
		// Without a zone, it sorts before all times of its second, with or
		// without a fraction.
		return item.Of(item.String(l.Name, end.Format("2006-01-02T15:04:05"))), nil
	}
	return item.Of(item.Number(l.Name, strconv.FormatInt(end.Unix(), 10))), nil
}

// incomparable is the failure of a row whose attribute has another type than the
// limit. The delete's condition never holds for it, and the row would stay
// unnoticed.
func (t *target) incomparable(row sluice.Item) error {
	limit, limited := t.limit.Lookup(t.child.NotNewer.Name)
	v, ok := row.Lookup(t.child.NotNewer.Name)
	if !limited || !ok || v.Kind() == limit.Kind() {
		return nil
	}
	return sluice.Permanent(fmt.Errorf("its attribute %q is of type %v, and the limit of NotNewer is of type %v, so that it stays; write it with the limit's type", t.child.NotNewer.Name, v.Kind(), limit.Kind()))
}

// newer reports whether a row is certainly beyond the limit. In doubt the
// condition of the delete decides.
func (t *target) newer(row sluice.Item) bool {
	limit, limited := t.limit.Lookup(t.child.NotNewer.Name)
	v, ok := row.Lookup(t.child.NotNewer.Name)
	if !limited || !ok {
		return false
	}
	if v.Kind() == item.S {
		return bytes.Compare(v.Text(), limit.Text()) > 0
	}
	n, _ := v.Float64()
	most, _ := limit.Float64()
	return n > most
}
