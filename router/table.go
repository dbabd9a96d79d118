package router

import (
	"slices"

	"github.com/sluicehq/sluice"
)

// table answers which routes a type and an event have. It is made once, from
// the registered routes, and holds only the types that patterns name: types
// that come with records do not make it grow.
type table struct {
	all   []*sluice.Route
	exact map[string]*[events][]*route // of each type that a pattern names, those of `*` merged in
	other [events][]*route             // of every other type, and of none
	typed [events]bool                 // a pattern names a type
}

// fixed returns the table, and makes it at the first call.
func (r *Router) fixed() *table {
	if t := r.table.Load(); t != nil {
		return t
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := r.table.Load(); t != nil {
		return t
	}
	t := newTable(r.routes)
	r.table.Store(t)
	return t
}

func newTable(routes []*route) *table {
	t := &table{exact: make(map[string]*[events][]*route)}
	for _, rt := range routes {
		t.all = append(t.all, &rt.Route)
		for _, p := range rt.patterns {
			if p.typ != "" && t.exact[p.typ] == nil {
				t.exact[p.typ] = new([events][]*route)
			}
		}
	}
	for _, rt := range routes {
		for _, p := range rt.patterns {
			for e := range events {
				if !p.has(e) {
					continue
				}
				if p.typ != "" {
					t.typed[e] = true
					add(&t.exact[p.typ][e], rt)
					continue
				}
				add(&t.other[e], rt)
				for _, byEvent := range t.exact {
					add(&byEvent[e], rt)
				}
			}
		}
	}
	return t
}

// add appends rt unless it is there already, by another pattern of its own.
func add(list *[]*route, rt *route) {
	if !slices.Contains(*list, rt) {
		*list = append(*list, rt)
	}
}

func (t *table) lookup(typ []byte, event int) []*route {
	if byEvent := t.exact[string(typ)]; byEvent != nil {
		return byEvent[event]
	}
	return t.other[event]
}
