package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/item"
)

// Limits of an event source mapping: the number of filters, one of which must
// pass, and the length of each.
const (
	maxFilters = 5
	maxPattern = 4096
)

// errNoStream says that a mapping of the table's stream would have nothing to do.
var errNoStream = fmt.Errorf("no route takes a record of the stream: routes for SNAPSHOT and MESSAGE come by other ways")

// lambdaFilters returns the patterns of filters that drop no record of a route; none:
// all records pass. They know events, types and deletions by time to live, and pass
// everything else. If the limits are too narrow for the routes, they pass more.
func lambdaFilters(cfg *config.Config, table string, view item.View, viewKnown bool) ([]string, error) {
	w, err := wanted(cfg.Routes)
	if err != nil {
		return nil, err
	}
	f := filterMaker{resolver: cfg.EntityType, table: table, view: view, viewKnown: viewKnown}
	for _, groups := range [][]group{w.groups(), w.merged(), w.eventsOnly()} {
		patterns := f.patterns(groups)
		if len(patterns) == 0 {
			return nil, errNoStream // of this table
		}
		if slices.Contains(patterns, "{}") {
			return nil, nil
		}
		tooLong := slices.ContainsFunc(patterns, func(p string) bool { return len(p) > maxPattern })
		if len(patterns) <= maxFilters && !tooLong {
			return patterns, nil
		}
	}
	return nil, nil
}

// eventSet is INSERT, MODIFY and REMOVE, by their bits.
type eventSet uint8

const (
	insertBit eventSet = 1 << iota
	modifyBit
	removeBit
	allEvents = insertBit | modifyBit | removeBit
)

var streamEvents = []sluice.EventName{sluice.Insert, sluice.Modify, sluice.Remove}

func (s eventSet) names() (names []string) {
	for i, e := range streamEvents {
		if s&(1<<i) != 0 {
			names = append(names, string(e))
		}
	}
	return names
}

// wants holds the events that the routes take, by entity type, where "*" is any
// type: all events, and deletions by the time to live.
type wants struct{ all, ttl map[string]eventSet }

func wanted(routes []config.Route) (wants, error) {
	w := wants{all: map[string]eventSet{}, ttl: map[string]eventSet{}}
	for _, r := range routes {
		for _, word := range strings.Fields(strings.Join(r.On, " ")) {
			if err := w.add(word, r); err != nil {
				return w, fmt.Errorf("route %s: %w", r.Name, err)
			}
		}
	}
	return w, nil
}

// add adds what one pattern of a route takes.
func (w *wants) add(pattern string, r config.Route) error {
	sep := strings.LastIndexByte(pattern, '#')
	if sep < 0 {
		return fmt.Errorf("pattern %q has no event", pattern)
	}
	typ, event := pattern[:sep], pattern[sep+1:]
	var set eventSet
	if event == "*" {
		set = allEvents
	} else if i := slices.Index(streamEvents, sluice.EventName(event)); i >= 0 {
		set = 1 << i
	}
	if len(r.Changed) > 0 {
		set &^= removeBit // of a removed item no attribute has changed
	}
	of := w.all
	if r.TTL == "only" {
		of, set = w.ttl, set&removeBit
	}
	if set != 0 {
		of[typ] |= set
	}
	return nil
}

// group is what one filter is to let pass, or several: the events of some types;
// no type is any.
type group struct {
	events eventSet
	ttl    bool
	types  []string // sorted
}

// groups returns exactly the records of the routes, as far as filters can.
func (w wants) groups() (list []group) {
	ofAny := w.all["*"]
	if ofAny != 0 {
		list = append(list, group{events: ofAny})
	}
	byEvents := map[eventSet][]string{}
	for _, typ := range slices.Sorted(maps.Keys(w.all)) {
		if rest := w.all[typ] &^ ofAny; rest != 0 {
			byEvents[rest] = append(byEvents[rest], typ)
		}
	}
	for _, set := range slices.Sorted(maps.Keys(byEvents)) {
		list = append(list, group{events: set, types: byEvents[set]})
	}
	ttl := slices.DeleteFunc(slices.Sorted(maps.Keys(w.ttl)), func(typ string) bool { return (w.all[typ]|ofAny)&removeBit != 0 })
	switch {
	case slices.Contains(ttl, "*"):
		list = append(list, group{events: removeBit, ttl: true})
	case len(ttl) > 0:
		list = append(list, group{events: removeBit, ttl: true, types: ttl})
	}
	return list
}

// merged is one group of all types with the events of any of them.
func (w wants) merged() []group {
	g := w.eventsOnly()
	if w.all["*"]|w.ttl["*"] == 0 {
		types := maps.Clone(w.all)
		maps.Copy(types, w.ttl)
		g[0].types = slices.Sorted(maps.Keys(types))
	}
	return g
}

func (w wants) eventsOnly() []group {
	var set eventSet
	for _, of := range []map[string]eventSet{w.all, w.ttl} {
		for _, s := range of {
			set |= s
		}
	}
	return []group{{events: set}}
}

// filterMaker writes groups as patterns.
type filterMaker struct {
	resolver  config.EntityType
	table     string
	view      item.View // of the stream
	viewKnown bool
}

// patterns are those of all groups; "{}" lets everything pass.
func (f filterMaker) patterns(groups []group) (list []string) {
	for _, g := range groups {
		if len(g.types) == 0 {
			list = append(list, pattern(g.events, g.ttl, nil))
			continue
		}
		list = append(list, f.ofTypes(f.resolver, g)...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// ofTypes are the patterns for records that the resolver may give one of g's
// types.
func (f filterMaker) ofTypes(r config.EntityType, g group) (list []string) {
	switch {
	case len(r.First) > 0: // any of them may find it
		for _, one := range r.First {
			list = append(list, f.ofTypes(one, g)...)
		}
	case r.Tables != nil:
		if slices.Contains(g.types, r.Tables[f.table]) {
			list = append(list, pattern(g.events, g.ttl, nil))
		}
	case r.Key != nil:
		list = append(list, pattern(g.events, g.ttl, at("Keys", r.Key.Attribute, keyValues(r.Key.Pattern, g.types))))
	default:
		attribute := cmp.Or(r.Attribute, "entityType")
		if strings.Contains(attribute, ".") {
			// It may stand in a map or a list, which patterns cannot follow.
			return []string{pattern(g.events, g.ttl, nil)}
		}
		values := mapped(g.types, func(typ string) any { return typ })
		for _, image := range []string{"NewImage", "OldImage", "Keys"} {
			if set := g.events & f.in(image); set != 0 {
				list = append(list, pattern(set, g.ttl, at(image, attribute, values)))
			}
		}
	}
	return list
}

// in are the events whose type may stand in an image: in the new one where there
// is one, else in the old one, else in the keys, as the router looks for it.
func (f filterMaker) in(image string) eventSet {
	if !f.viewKnown {
		return map[string]eventSet{"NewImage": insertBit | modifyBit, "OldImage": modifyBit | removeBit, "Keys": allEvents}[image]
	}
	set := map[string]eventSet{}
	set["Keys"] = allEvents
	if f.view&item.OldImage != 0 {
		set["OldImage"] = modifyBit | removeBit
	}
	if f.view&item.NewImage != 0 {
		set["NewImage"] = insertBit | modifyBit
		set["OldImage"] &^= modifyBit
	}
	set["Keys"] &^= set["NewImage"] | set["OldImage"]
	return set[image]
}

// at is the condition that a string attribute of an image has one of the values.
func at(image, attribute string, values []any) map[string]any {
	return map[string]any{image: map[string]any{attribute: map[string]any{"S": values}}}
}

// pattern is one filter.
func pattern(events eventSet, ttl bool, where map[string]any) string {
	p := map[string]any{}
	if events != allEvents {
		p["eventName"] = events.names()
	}
	if ttl {
		p["userIdentity"] = map[string]any{"type": []string{"Service"}, "principalId": []string{"dynamodb.amazonaws.com"}}
	}
	if where != nil {
		p["dynamodb"] = where
	}
	var b strings.Builder
	_ = printLine(&b, p) // maps of text never fail
	return strings.TrimSpace(b.String())
}

// keyValues returns the values of a key that may have one of the types, by a
// pattern of package router. The text before the first wildcard decides, else the
// text after the last.
func keyValues(pattern string, types []string) []any {
	var values []any
	for _, typ := range types {
		before, after, wild := literals(pattern, typ)
		switch {
		case !wild:
			values = append(values, before)
		case before != "":
			values = append(values, map[string]string{"prefix": before})
		case after != "":
			values = append(values, map[string]string{"suffix": after})
		default:
			return []any{map[string]bool{"exists": true}}
		}
	}
	return values
}

// literals are the text before the first wildcard and behind the last one, once
// the type is put in; without a wildcard the first is the whole.
func literals(pattern, typ string) (before, after string, wild bool) {
	head, tail, found := strings.Cut(pattern, "{type}")
	text := head + "\x00" + tail // a byte that no pattern and no key's text has
	if !found {
		text = pattern
	}
	first, last := strings.IndexByte(text, '*'), strings.LastIndexByte(text, '*')
	put := func(s string) string { return strings.ReplaceAll(s, "\x00", typ) }
	if first < 0 {
		return put(text), "", false
	}
	return put(text[:first]), put(text[last+1:]), true
}
