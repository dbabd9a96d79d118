package warehouse

import (
	"cmp"
	"errors"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/examples/internal/kit"
)

// date is an ISO 8601 date as somebody wrote it. Dates are compared by their
// time, since texts may have different zones and fractions, then by text. The
// zero date is none, and before all others.
type date struct {
	at   time.Time
	text string
}

// isoLayouts are the forms of ISO 8601 that are read; seconds may have a
// fraction.
var isoLayouts = []string{time.RFC3339, "2006-01-02T15:04:05Z0700", "2006-01-02T15:04Z07:00", time.DateOnly}

// parseDate reads a date; "" is none.
func parseDate(text string) (date, error) {
	if text == "" {
		return date{}, nil
	}
	for _, layout := range isoLayouts {
		if at, err := time.Parse(layout, text); err == nil {
			return date{at, text}, nil
		}
	}
	return date{}, sluice.Permanent(errors.New("create_date is no ISO 8601 date with a zone, such as 2026-01-31T12:00:00.000Z"))
}

// dateOf is the date of an event that has none of its own.
func dateOf(id EventID) date {
	at := id.Time().Truncate(time.Millisecond)
	return date{at, at.Format("2006-01-02T15:04:05.000Z")}
}

func (a date) compare(b date) int { return cmp.Or(a.at.Compare(b.at), strings.Compare(a.text, b.text)) }

// span is the smallest and the largest of dates.
type span struct{ from, to date }

// with returns the span with d in it.
func (s span) with(d date) span {
	switch {
	case d.text == "":
		return s
	case s.from.text == "" || d.compare(s.from) < 0:
		s.from = d
	}
	if d.compare(s.to) > 0 {
		s.to = d
	}
	return s
}

// spanOf is the span that an item has. A date there that cannot be read counts
// as none.
func spanOf(it sluice.Item) (s span) {
	for _, name := range []string{"create_date", "update_date"} {
		if d, err := parseDate(kit.Text(it, name)); err == nil {
			s = s.with(d)
		}
	}
	return s
}

// fields sets the span's dates in fields, which kit.Set takes.
func (s span) fields(fields map[string]any) {
	fields["create_date"], fields["update_date"] = kit.Given(s.from.text), kit.Given(s.to.text)
}
