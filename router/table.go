package router

import (
	"slices"

	"github.com/sluicehq/sluice"
)

// table maps a type and an event to routes. It is built once from the registered
// routes and contains only types that patterns name. Types of records do not make
// it grow.
type table struct {
	all   []*sluice.Route
	exact map[string]*[events][]*route // by each type in a pattern, with the routes of `*` merged
	other [events][]*route             // for every other type, and for none
	typed [events]bool                 // a pattern names a type
}

// fixed returns the table and builds it on the first call.
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

// add appends rt, unless another of its patterns already did.
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
