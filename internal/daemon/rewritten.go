package daemon

import "github.com/sluicehq/sluice"

// rewritten returns a Matcher as m whose routes have the handlers that handler
// returns, which is called once for each, in their order.
func rewritten(m sluice.Matcher, handler func(*sluice.Route) sluice.Handler) sluice.Matcher {
	w := &rewrittenMatcher{Matcher: m, theirs: m.Routes()}
	for _, r := range w.theirs {
		own := *r // another flow may run m's routes, too
		own.Handler = handler(r)
		w.routes = append(w.routes, &own)
	}
	return w
}

// rewrittenMatcher has routes of its own in place of those of Matcher.
type rewrittenMatcher struct {
	sluice.Matcher
	theirs, routes []*sluice.Route
}

func (w *rewrittenMatcher) Routes() []*sluice.Route { return w.routes }

func (w *rewrittenMatcher) Match(dst []*sluice.Route, rec *sluice.Record) ([]*sluice.Route, error) {
	n := len(dst)
	dst, err := w.Matcher.Match(dst, rec)
	for i, r := range dst[min(n, len(dst)):] {
		if r != nil && r.Index >= 0 && r.Index < len(w.theirs) && w.theirs[r.Index] == r { // flow refuses others
			dst[n+i] = w.routes[r.Index]
		}
	}
	return dst, err
}
