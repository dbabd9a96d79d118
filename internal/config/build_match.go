package config

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sluicehq/sluice/router"
)

// resolver finds the entity type of records.
func (t EntityType) resolver() (router.Resolver, error) {
	switch {
	case len(t.First) > 0:
		var chain []router.Resolver
		var errs []error
		for i, one := range t.First {
			r, err := one.resolver()
			if err != nil {
				errs = append(errs, fmt.Errorf("[%d]: %w", i, err))
			}
			chain = append(chain, r)
		}
		if err := errors.Join(errs...); err != nil {
			return router.Resolver{}, err
		}
		return router.Chain(chain...), nil
	case t.Attribute != "":
		return router.Attribute(t.Attribute), nil
	case t.Key != nil:
		return router.ParseKeyPattern(t.Key.Attribute, t.Key.Pattern)
	case t.Tables != nil:
		return router.Table(t.Tables), nil
	}
	return router.Attribute("entityType"), nil
}

// options are the route's name, filters and limits.
func (b *builder) options(rt *Route, field string, made *built) ([]router.Option, error) {
	o := append([]router.Option{router.Name(rt.name())}, made.options...)
	if rt.When != "" {
		w, err := b.c.when(field+".when", rt.When)
		if err != nil {
			return nil, err
		}
		o = append(o, w.options()...)
	}
	if len(rt.Changed) > 0 {
		o = append(o, router.Changed(rt.Changed...))
	}
	if rt.ChangedIgnoring != nil {
		o = append(o, router.ChangedIgnoring(rt.ChangedIgnoring...))
	}
	switch rt.TTL {
	case "":
	case "exclude":
		o = append(o, router.ExcludeTTL())
	case "only":
		o = append(o, router.OnlyTTL())
	default:
		return nil, b.c.wrong(field+".ttl", fmt.Errorf("%q is neither exclude nor only", rt.TTL))
	}
	if len(rt.Regions) > 0 {
		o = append(o, router.Regions(rt.Regions...))
	}
	if rt.Attempts != 0 {
		o = append(o, router.Attempts(rt.Attempts))
	}
	if rt.PoisonAfter != 0 {
		o = append(o, router.PoisonAfter(time.Duration(rt.PoisonAfter)))
	}
	if rt.Backoff != nil {
		first, most := time.Duration(rt.Backoff.First), time.Duration(rt.Backoff.Max)
		if first == 0 {
			first = 100 * time.Millisecond
		}
		if most == 0 {
			most = max(first, 30*time.Second)
		}
		o = append(o, router.Backoff(first, most))
	}
	if rt.Timeout != 0 {
		o = append(o, router.Timeout(time.Duration(rt.Timeout)))
	}
	if rt.Concurrency != 0 {
		o = append(o, router.Concurrency(rt.Concurrency))
	}
	if rt.Rate != nil {
		burst := rt.Rate.Burst
		if burst == 0 {
			burst = 1
		}
		o = append(o, router.Rate(rt.Rate.PerSecond, burst))
	}
	if rt.MaxAge != 0 {
		o = append(o, router.MaxAge(time.Duration(rt.MaxAge)))
	}
	if late := rt.Redrive; late == nil && made.late || late != nil && *late {
		o = append(o, router.Redrive())
	}
	return o, nil
}

// types are the entity types that the route is for; "*" is all.
func (rt *Route) types() []string {
	var types []string
	for _, pattern := range strings.Fields(strings.Join(rt.On, " ")) {
		if i := strings.LastIndexByte(pattern, '#'); i >= 0 {
			types = append(types, pattern[:i])
		}
	}
	return unique(types)
}

// takes reports whether one of the route's patterns is for an event.
func (rt *Route) takes(event string) bool {
	for _, pattern := range strings.Fields(strings.Join(rt.On, " ")) {
		of := pattern[strings.LastIndexByte(pattern, '#')+1:]
		if of == event || of == "*" && (event == "INSERT" || event == "MODIFY" || event == "REMOVE") {
			return true
		}
	}
	return false
}

func unique(texts []string) []string {
	var all []string
	seen := map[string]bool{}
	for _, t := range texts {
		if !seen[t] {
			seen[t] = true
			all = append(all, t)
		}
	}
	return all
}
