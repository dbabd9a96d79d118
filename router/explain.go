package router

import (
	"errors"
	"fmt"
	"slices"

	"github.com/sluicehq/sluice"
)

// Type returns the type that rec is routed by: what the resolver says, or the
// kind of a message; "" when it is unknown.
func (r *Router) Type(rec *sluice.Record) (string, error) {
	if err := rec.Err(); err != nil {
		return "", err
	}
	typ, err := r.typeOf(nil, rec)
	return string(typ), err
}

// TakesMessages reports whether the route of that index has a pattern for messages of
// queues.
func (r *Router) TakesMessages(index int) bool {
	r.fixed()
	return slices.ContainsFunc(r.routes[index].patterns, func(p pattern) bool { return p.has(message) })
}

// Verdict says whether a record takes a route.
type Verdict struct {
	Route *sluice.Route
	Takes bool

	// Why it does not. Pattern: none of the route's patterns is for the record's
	// type and event. Filter: the option whose filter refused it, such as
	// "Changed". Redriven: the route refuses what was redriven.
	Pattern, Redriven bool
	Filter            string

	// Err: the record lacks an image that the route needs. When the stream sends that
	// image, the route takes the record, and its handler fails for good. When it does
	// not, the record fails for all routes.
	Err error
}

// Explain says of every route, in order of registration, whether rec takes it
// and why not, as [Router.Match] decides it. Match fails a record
// altogether when the stream does not send an image that one of its routes needs. The
// hooks are not called. An error is one of the record, which takes no route.
func (r *Router) Explain(rec *sluice.Record) ([]Verdict, error) {
	t := r.fixed()
	if err := rec.Err(); err != nil {
		return nil, err
	}
	event := eventIndex(rec.EventName)
	if event < 0 {
		return nil, fmt.Errorf("%s: unknown event name %q", where(rec), rec.EventName)
	}
	if rec.Origin == sluice.Backfilled {
		event = snapshot
	}
	typ, err := r.typeOf(nil, rec)
	if err != nil {
		return nil, fmt.Errorf("%s: type of the record: %w", where(rec), err)
	}
	if len(typ) == 0 {
		if err := r.untyped(t, rec, event); err != nil {
			return nil, err
		}
	}
	routed := make(map[*route]bool)
	for _, rt := range t.lookup(typ, event) {
		routed[rt] = true
	}
	verdicts := make([]Verdict, len(r.routes))
	for i, rt := range r.routes {
		if routed[rt] {
			verdicts[i] = rt.decide(rec, event)
		} else {
			verdicts[i] = Verdict{Route: &rt.Route, Pattern: true}
		}
	}
	return verdicts, nil
}

// decide says whether rec takes rt, one of whose patterns is for it.
func (rt *route) decide(rec *sluice.Record, event int) Verdict {
	v := Verdict{Route: &rt.Route}
	if rt.reads != sluice.KeysOnly {
		if v.Err = checkImages(rt, rec, event); v.Err != nil {
			v.Takes = errors.As(v.Err, new(*lostImageError)) // for its handler to fail: the other routes go on
			return v
		}
	}
	v.Filter = rt.refusedBy(rec)
	v.Redriven = v.Filter == "" && rec.Origin == sluice.Redriven && !rt.Redrive && event != message
	v.Takes = v.Filter == "" && !v.Redriven
	return v
}

// refusedBy names the first filter that refuses rec; "" is none.
func (rt *route) refusedBy(rec *sluice.Record) string {
	for i, pass := range rt.filters {
		if !pass(rec) {
			return rt.filtered[i]
		}
	}
	return ""
}
