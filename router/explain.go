package router

import (
	"errors"
	"slices"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/item"
)

// Type returns the type by which rec is routed: from the resolver, or the kind of
// a message; "" if unknown.
func (r *Router) Type(rec *sluice.Record) (string, error) {
	if err := rec.Err(); err != nil {
		return "", err
	}
	typ, err := r.typeOf(nil, rec)
	return string(typ), err
}

// TakesMessages reports whether the route at index has a pattern for queue
// messages.
func (r *Router) TakesMessages(index int) bool {
	r.fixed()
	return slices.ContainsFunc(r.routes[index].patterns, func(p pattern) bool { return p.has(message) })
}

// Verdict reports whether a record takes a route.
type Verdict struct {
	Route *sluice.Route
	Takes bool

	// Pattern: no pattern of the route matches the record's type and event.
	// Redriven: the route refuses redriven records. Filter: name of the option
	// whose filter refused it, such as "Changed".
	Pattern, Redriven bool
	Filter            string

	// Err: the record lacks an image that the route needs. If the stream sends
	// that image, the route takes the record, and its handler fails for good.
	// If it does not, the record fails for all routes.
	Err error
}

// Explain returns a Verdict for every route, in order of registration, by the
// rules of [Router.Match]. Match fails a record as a whole if the stream lacks an
// image that one of its routes needs. Explain does not call hooks. An error
// concerns the record, which then takes no route.
func (r *Router) Explain(rec *sluice.Record) ([]Verdict, error) {
	t := r.fixed()
	if err := rec.Err(); err != nil {
		return nil, err
	}
	typ, event, err := r.classify(t, nil, rec)
	if err != nil {
		return nil, err
	}
	routes := t.lookup(typ, event)
	verdicts := make([]Verdict, len(r.routes))
	for i, rt := range r.routes {
		if slices.Contains(routes, rt) {
			verdicts[i] = rt.decide(rec, event)
		} else {
			verdicts[i] = Verdict{Route: &rt.Route, Pattern: true}
		}
	}
	return verdicts, nil
}

// decide returns the verdict of rt for rec, which matches one of its patterns.
func (rt *route) decide(rec *sluice.Record, event int) Verdict {
	v := Verdict{Route: &rt.Route}
	if rt.reads != item.KeysOnly {
		if v.Err = checkImages(rt, rec, event); v.Err != nil {
			v.Takes = errors.As(v.Err, new(*lostImageError)) // its handler fails; the other routes run
			return v
		}
	}
	v.Filter = rt.refusedBy(rec)
	v.Redriven = v.Filter == "" && rec.Origin == sluice.Redriven && !rt.Redrive && event != message
	v.Takes = v.Filter == "" && !v.Redriven
	return v
}

// refusedBy returns the first filter that refuses rec, or "".
func (rt *route) refusedBy(rec *sluice.Record) string {
	for i, pass := range rt.filters {
		if !pass(rec) {
			return rt.filtered[i]
		}
	}
	return ""
}
