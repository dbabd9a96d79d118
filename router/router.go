package router

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/item"
)

// Router is a table of routes; [New] makes one. Register all routes first. The
// first call of Match, Routes or Dispatch fixes the table: Handle then panics, and
// the Router is safe for concurrent use.
type Router struct {
	resolver Resolver
	options  []Option // of every route
	unrouted []func(rec *sluice.Record, why Reason)
	counted  *[Filtered + 1]func(float64) // counts unrouted records; may be nil

	mu     sync.Mutex // guards routes until table is set
	routes []*route
	table  atomic.Pointer[table]
}

// route is one registration.
type route struct {
	sluice.Route
	patterns []pattern
	filters  []func(*sluice.Record) bool
	filtered []string  // option names of filters
	reads    item.View // images read by filters and handler; Needs also has those of the type
	site     string    // file:line of the registration

	passedOver func(float64) // counts records that filters refused; may be nil
}

// Reason says why a record takes no route.
type Reason uint8

const (
	NoRoute  Reason = iota // no route is registered for its type and event
	Untyped                // the same, and the record has no type
	Filtered               // the filters of all its routes refused it
)

// String returns "no route", "untyped" or "filtered".
func (r Reason) String() string { return [...]string{"no route", "untyped", "filtered"}[r] }

// New returns an empty router. The options apply to every route, before its own: a
// limit of a route replaces that of New, filters of both must pass, and the
// middleware of New is outside the route's. New panics if an option is invalid.
func New(opts ...Option) *Router {
	r := &Router{resolver: Attribute("entityType"), options: opts}
	c := config{route: new(route), resolver: &r.resolver}
	for _, o := range opts {
		o(&c)
	}
	if err := errors.Join(c.errs...); err != nil {
		panic("router: New: " + err.Error())
	}
	return r
}

// OnUnrouted adds a function that Match calls for each record without a route. It
// must be fast and safe for concurrent use. Call OnUnrouted before Match.
func (r *Router) OnUnrouted(f func(rec *sluice.Record, why Reason)) {
	r.unrouted = append(r.unrouted, f)
}

// Handle registers h under one or several space-separated patterns. It panics if
// the registration is invalid; see [Router.Add].
func (r *Router) Handle(patterns string, h sluice.Handler, opts ...Option) {
	site := "unknown location"
	if _, file, line, ok := runtime.Caller(1); ok {
		site = fmt.Sprintf("%s:%d", file, line)
	}
	if err := r.Add(site, patterns, h, opts...); err != nil {
		panic("router: " + err.Error())
	}
}

// Add is Handle for routes from a configuration: it returns an error where Handle
// panics. site is the place of the route, "file:line". It appears in the error,
// and in the error of a later route with the same name.
func (r *Router) Add(site, patterns string, h sluice.Handler, opts ...Option) error {
	rt, err := r.newRoute(site, patterns, h, opts)
	if err != nil {
		return fmt.Errorf("%s: %w", site, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.table.Load() != nil {
		return fmt.Errorf("%s: route %q is registered after the router has been used", site, rt.Name)
	}
	if i := slices.IndexFunc(r.routes, func(o *route) bool { return o.Name == rt.Name }); i >= 0 {
		return fmt.Errorf("%s: route %q is already registered at %s; give one of them another Name", site, rt.Name, r.routes[i].site)
	}
	rt.Index = len(r.routes)
	r.routes = append(r.routes, rt)
	return nil
}

func (r *Router) newRoute(site, patterns string, h sluice.Handler, opts []Option) (*route, error) {
	ps, err := parsePatterns(patterns)
	if err != nil {
		return nil, err
	}
	if h == nil {
		return nil, fmt.Errorf("pattern %q: nil handler", patterns)
	}
	c := config{route: &route{patterns: ps, site: site}, resolver: new(Resolver)}
	for _, o := range r.options {
		o(&c)
	}
	c.resolver = nil
	c.route.Name = strings.Join(strings.Fields(patterns), ",")
	for _, o := range opts {
		o(&c)
	}
	if err := errors.Join(c.errs...); err != nil {
		return nil, fmt.Errorf("route %q: %w", c.route.Name, err)
	}
	for _, mw := range slices.Backward(c.middleware) {
		if mw == nil {
			return nil, fmt.Errorf("route %q: nil middleware", c.route.Name)
		}
		if h = mw(h); h == nil {
			return nil, fmt.Errorf("route %q: middleware returned a nil handler", c.route.Name)
		}
	}
	c.route.Handler = r.outOfTurn(c.route, h)
	for _, p := range ps {
		v := imagesOf(p.events)
		c.route.Snapshot = c.route.Snapshot || p.has(snapshot)
		if c.readsImage {
			c.route.reads |= v
		}
		if p.typ != "" && r.resolver.readsImage("") {
			c.Needs |= v
		}
	}
	c.Needs |= c.route.reads
	if c.route.reads != item.KeysOnly {
		c.route.Handler = c.route.withImages(c.route.Handler)
	}
	return c.route, nil
}

// Routes lists all routes in order of registration, each at its Index.
func (r *Router) Routes() []*sluice.Route {
	return slices.Clone(r.fixed().all)
}
