package letters

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice/deadletter"
)

// ChoosesAll reports whether f chooses all.
func ChoosesAll(f deadletter.Filter) bool {
	return f.Kind == "" && f.Route == "" && f.Table == "" && len(f.Key) == 0 && f.Since.IsZero() && f.Until.IsZero() && f.Error == ""
}

// Query is f as the query of a URL, which [ParseFilter] reads.
func Query(f deadletter.Filter) url.Values {
	q := url.Values{}
	set := func(name, value string) {
		if value != "" {
			q.Add(name, value)
		}
	}
	set("kind", f.Kind)
	set("route", f.Route)
	set("table", f.Table)
	set("error", f.Error)
	for _, name := range slices.Sorted(maps.Keys(f.Key)) {
		set("key", name+"="+f.Key[name])
	}
	for name, t := range map[string]time.Time{"since": f.Since, "until": f.Until} {
		if !t.IsZero() {
			set(name, t.UTC().Format(time.RFC3339Nano))
		}
	}
	return q
}

// ParseFilter parses the parameters kind, route, table, key (name=value,
// repeatable), since, until (RFC 3339, or an age such as 30m) and error; it
// ignores others. An empty parameter is an error, because it would select all. The
// error names every mistake.
func ParseFilter(q url.Values, now time.Time) (deadletter.Filter, error) {
	f := deadletter.Filter{Kind: q.Get("kind"), Route: q.Get("route"), Table: q.Get("table"), Error: q.Get("error")}
	var errs []error
	for _, name := range []string{"kind", "route", "table", "since", "until", "error"} {
		switch values := q[name]; {
		case len(values) > 1:
			errs = append(errs, fmt.Errorf("%s: it is there %d times: want one", name, len(values)))
		case len(values) == 1 && values[0] == "":
			errs = append(errs, fmt.Errorf("%s: it is empty: leave it out for all", name))
		}
	}
	if f.Kind != "" && f.Kind != "record" && f.Kind != "gap" {
		errs = append(errs, fmt.Errorf("kind: %q is not one of record, gap", f.Kind))
	}
	for _, key := range q["key"] {
		name, value, ok := strings.Cut(key, "=")
		if !ok || name == "" {
			errs = append(errs, fmt.Errorf("key: %q is not the name of a key attribute and its value, such as pk=o-1", key))
			continue
		}
		if f.Key == nil {
			f.Key = make(map[string]string)
		}
		f.Key[name] = value
	}
	for name, t := range map[string]*time.Time{"since": &f.Since, "until": &f.Until} {
		if text := q.Get(name); text != "" {
			var err error
			if *t, err = parseTime(text, now); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", name, err))
			}
		}
	}
	return f, errors.Join(errs...)
}

func parseTime(text string, now time.Time) (time.Time, error) {
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, fmt.Errorf("%q is neither a time such as 2026-01-31T15:04:05Z nor how long ago it was, such as 30m", text)
	}
	return t, nil
}
