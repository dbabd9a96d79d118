package opensearch

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// difference is where something is not as a file says.
type difference struct {
	path       string
	want, have any // nil: nothing
}

// diffSettings looks for the settings that a file names in those of an index.
// What else the index has is the cluster's, or somebody's who runs it.
func diffSettings(want, have map[string]string) *difference {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if h, ok := have[name]; !ok {
			return &difference{path: "settings." + name, want: want[name]}
		} else if h != want[name] && !sameDuration(h, want[name]) {
			return &difference{path: "settings." + name, want: want[name], have: h}
		}
	}
	return nil
}

var duration = regexp.MustCompile(`^([0-9]+)(ms|s|m|h|d)$`)

// sameDuration reports whether two texts are one time, such as 60m and 1h.
func sameDuration(a, b string) bool {
	x, okX := parseDuration(a)
	y, okY := parseDuration(b)
	return okX && okY && x == y
}

func parseDuration(s string) (time.Duration, bool) {
	m := duration.FindStringSubmatch(s)
	if m == nil {
		return 0, false
	}
	n, err := strconv.ParseInt(m[1], 10, 32)
	unit := map[string]time.Duration{"ms": time.Millisecond, "s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour}[m[2]]
	return time.Duration(n) * unit, err == nil
}

// defaults tells, of a field's full name, every parameter that it has, those that
// nobody set included.
type defaults func(field string) map[string]any

// diffMapping compares a mapping, or an object's, with what a file says. What
// dynamic mapping has added is no difference where it may add.
func diffMapping(at, field string, want, have map[string]any, full defaults) *difference {
	for _, name := range union(want, have) {
		w, h := want[name], have[name]
		where := at + "." + name
		switch {
		case name == "properties" || name == "fields":
			closed := name == "fields" || isClosed(want, have)
			if d := diffFields(where, field, jsonObject(w), jsonObject(h), closed, full); d != nil {
				return d
			}
		case name == "_meta" && at == "mappings":
			// What a file says is there; reindex adds to it.
			if d := diffPart(where, w, h); d != nil {
				return d
			}
		case name == "type" && text(w) == "object" && h == nil, name == "type" && text(h) == "object" && w == nil:
			// That an object is one goes without saying, as soon as it has fields.
		case name == "enabled" && text(w) == "true" && h == nil:
		case h == nil && w != nil && field != "" && text(full(field)[name]) == text(w):
			// The file says what is the default anyway.
		default:
			if d := diffWhole(where, w, h); d != nil {
				return d
			}
		}
	}
	return nil
}

// isClosed reports whether an object takes no fields by itself.
func isClosed(want, have map[string]any) bool {
	dynamic := want["dynamic"]
	if dynamic == nil {
		dynamic = have["dynamic"]
	}
	return text(dynamic) == "strict" || text(dynamic) == "false"
}

func diffFields(at, parent string, want, have map[string]any, closed bool, full defaults) *difference {
	for _, name := range union(want, have) {
		w, inWant := want[name]
		h, inHave := have[name]
		where := at + "." + name
		switch {
		case !inWant && !closed:
		case !inWant:
			return &difference{path: where, have: h}
		case !inHave:
			return &difference{path: where, want: w}
		default:
			if d := diffMapping(where, strings.TrimPrefix(parent+"."+name, "."), jsonObject(w), jsonObject(h), full); d != nil {
				return d
			}
		}
	}
	return nil
}

// diffPart looks for what want says in have.
func diffPart(at string, want, have any) *difference {
	w, ok := want.(map[string]any)
	if !ok {
		if want == nil {
			return nil
		}
		return diffWhole(at, want, have)
	}
	h := jsonObject(have)
	for _, name := range slices.Sorted(maps.Keys(w)) {
		if d := diffPart(at+"."+name, w[name], h[name]); d != nil {
			return d
		}
	}
	return nil
}

// diffWhole compares two values. Those that are no objects and no lists are
// equal by their text: the cluster writes true as "true", and 256 for "256".
func diffWhole(at string, want, have any) *difference {
	switch w := want.(type) {
	case map[string]any:
		h, ok := have.(map[string]any)
		if !ok {
			return &difference{path: at, want: want, have: have}
		}
		for _, name := range union(w, h) {
			if d := diffWhole(at+"."+name, w[name], h[name]); d != nil {
				return d
			}
		}
		return nil
	case []any:
		h, ok := have.([]any)
		if !ok || len(w) != len(h) {
			return &difference{path: at, want: want, have: have}
		}
		for i := range w {
			if d := diffWhole(fmt.Sprintf("%s[%d]", at, i), w[i], h[i]); d != nil {
				return d
			}
		}
		return nil
	}
	if (want == nil) != (have == nil) || text(want) != text(have) {
		return &difference{path: at, want: want, have: have}
	}
	return nil
}

// error says that an index or a template is not as its file says.
func (d *difference) error(file, name string) error {
	return fmt.Errorf("opensearch: %s is not what %s says: at %s it has %s, the file %s; nothing is changed by itself: reindex into a new index, or mend the one or the other by hand", name, file, d.path, shown(d.have), shown(d.want))
}

// shown is v in JSON, cut if it is long.
func shown(v any) string {
	if v == nil {
		return "nothing"
	}
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	if len(text) > 200 {
		return string(text[:200]) + "…"
	}
	return string(text)
}

func text(v any) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

func jsonObject(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

func union(a, b map[string]any) []string {
	names := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(names)
	return slices.Compact(names)
}
