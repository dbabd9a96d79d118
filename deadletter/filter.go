package deadletter

import (
	"strings"
	"time"

	"github.com/sluicehq/sluice"
)

// Filter selects entries that match all of its fields. The zero Filter selects
// all.
type Filter struct {
	Kind  string            // "record" for entries with a record or a reference, or "gap"
	Route string            // name; an entry for all routes has none
	Table string            // name; of a message, the queue's name
	Key   map[string]string // key attributes by name, each value as text, binary in base64
	Since time.Time         // parked at or after
	Until time.Time         // parked before
	Error string            // part of the first or the last error text, ignoring case
}

// Matches reports whether f selects e.
func (f *Filter) Matches(e *Entry) bool {
	switch {
	case f.Kind != "" && (f.Kind == kindGap) != (e.Gap != nil),
		f.Route != "" && f.Route != e.Route,
		f.Table != "" && f.Table != e.Table,
		!f.Since.IsZero() && e.ParkedAt.Before(f.Since),
		!f.Until.IsZero() && !e.ParkedAt.Before(f.Until),
		f.Error != "" && !contains(e.First.Error, f.Error) && !contains(e.Last.Error, f.Error):
		return false
	case len(f.Key) == 0:
		return true
	}
	return f.matchesKey(e.Record().Keys)
}

func (f *Filter) matchesKey(keys sluice.Item) bool {
	found := 0
	for name, v := range keys.All() {
		want, ok := f.Key[name]
		if !ok {
			continue
		}
		if text, ok := v.AppendText(nil); !ok || string(text) != want {
			return false
		}
		found++
	}
	return found == len(f.Key)
}

func contains(text, part string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(part))
}
