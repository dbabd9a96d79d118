package routed

import "github.com/sluicehq/sluice"

// Rewrite returns a Matcher as m whose routes are copies that change has changed. It
// is called once for each, in their order.
func Rewrite(m sluice.Matcher, change func(own *sluice.Route)) sluice.Matcher {
	w := &rewritten{Matcher: m, theirs: m.Routes()}
	for _, r := range w.theirs {
		own := *r // another flow may run m's routes, too
		change(&own)
		w.routes = append(w.routes, &own)
	}
	return w
}

// rewritten has routes of its own in place of those of Matcher.
type rewritten struct {
	sluice.Matcher
	theirs, routes []*sluice.Route
}

func (w *rewritten) Routes() []*sluice.Route { return w.routes }

func (w *rewritten) Match(dst []*sluice.Route, rec *sluice.Record) ([]*sluice.Route, error) {
	n := len(dst)
	dst, err := w.Matcher.Match(dst, rec)
	for i, r := range dst[min(n, len(dst)):] {
		if r != nil && r.Index >= 0 && r.Index < len(w.theirs) && w.theirs[r.Index] == r { // flow refuses others
			dst[n+i] = w.routes[r.Index]
		}
	}
	return dst, err
}

// Name returns the name of a route, or "" for nil.
func Name(route *sluice.Route) string {
	if route == nil {
		return ""
	}
	return route.Name
}
