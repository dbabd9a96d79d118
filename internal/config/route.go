package config

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/router"
)

// Route says which records one handler gets. Set one of send, project, cascade,
// count, escalate and log.
type Route struct {
	// Unique name in metrics, logs and dead letters.
	Name string `yaml:"name" is:"required"`
	// Entity type and event: search#INSERT, "*#REMOVE". Event * is INSERT, MODIFY and
	// REMOVE.
	On Strings `yaml:"on" is:"required"`

	// Expression that a record must fulfil.
	When string `yaml:"when"`
	// One of these attributes (or dotted paths) has changed.
	Changed Strings `yaml:"changed"`
	// Another attribute than these has changed.
	ChangedIgnoring Strings `yaml:"changedIgnoring"`
	// Deletions by time to live: leave out, or take only these.
	TTL string `yaml:"ttl" is:"one of=exclude|only"`
	// Regions of a global table to take writes from. Default all.
	Regions Strings `yaml:"regions"`

	// Failures before a record can be parked as poison. More conditions:
	// guides/failure-semantics.md#poison.
	Attempts int `yaml:"attempts" is:"min=1" default:"8"`
	// Time for which its item fails before that, while the route works. Default 10m.
	PoisonAfter Duration `yaml:"poisonAfter" is:"min=1s" default:"10m"`
	// Waits between attempts.
	Backoff *Backoff `yaml:"backoff"`
	// Time limit of a call. Default none.
	Timeout Duration `yaml:"timeout" is:"min=1ms"`
	// Records handled at once. Default: no limit.
	Concurrency int `yaml:"concurrency" is:"min=1"`
	// Rate of calls.
	Rate *Rate `yaml:"rate"`
	// Age at which a failing record is parked. Default: deadLetter.maxAge.
	MaxAge Duration `yaml:"maxAge" is:"min=1s"`
	// Allow redrives although the item may have changed. Default: false for send and
	// for project without a version, else true.
	Redrive *bool `yaml:"redrive"`

	// Send a message for each record.
	Send *Send `yaml:"send"`
	// Keep a document for each item.
	Project *Project `yaml:"project"`
	// Delete children with their parent.
	Cascade *Cascade `yaml:"cascade"`
	// Keep numbers on parents.
	Count *Count `yaml:"count"`
	// Call one contact after another.
	Escalate *Escalate `yaml:"escalate"`
	// Write a log line for each record.
	Log *Log `yaml:"log"`
}

// Backoff is the wait between attempts. It doubles each time, with full jitter.
type Backoff struct {
	// First wait. Default 100ms.
	First Duration `yaml:"first" is:"min=1ms" default:"100ms"`
	// Longest wait. Default 30s.
	Max Duration `yaml:"max" is:"min=1ms" default:"30s"`
}

// Rate limits calls.
type Rate struct {
	// Calls a second on average.
	PerSecond float64 `yaml:"perSecond" is:"required,above=0"`
	// Calls at once. Default 1.
	Burst int `yaml:"burst" is:"min=1" default:"1"`
}

func (r *Route) patterns() []string { return strings.Fields(strings.Join(r.On, " ")) }

func (c *Config) validateRoutes() {
	d := c.doc
	if _, there := d.at["routes"]; there && len(c.Routes) == 0 {
		d.add("routes", "it has no route: nothing would be handled")
	}
	names := map[string]int{}
	for i := range c.Routes {
		r, path := &c.Routes[i], element("routes", i)
		if first, twice := names[r.Name]; twice && r.Name != "" {
			d.add(path+".name", "%s is the name of routes[%d], too (line %d)", d.show(path+".name", r.Name), first, d.where(element("routes", first)+".name").line)
		} else {
			names[r.Name] = i
		}
		c.validateRoute(path, r)
	}
}

func (c *Config) validateRoute(path string, r *Route) {
	d := c.doc
	c.validatePatterns(path, r)
	switch handlers := r.handlers(); {
	case len(handlers) > 1:
		d.add(path, "%s are both its handler; want one, and a route for each", r.Kind())
	case len(handlers) == 0 && !d.bad[path+"?"] && !d.badBelow(path):
		d.add(path, "it has no handler; want one of %s", strings.Replace(either(Kinds()), " or ", " and ", 1))
	}
	for _, list := range []struct {
		name  string
		paths Strings
	}{{"changed", r.Changed}, {"changedIgnoring", r.ChangedIgnoring}} {
		for i, p := range list.paths {
			if strings.HasPrefix(p, ".") || strings.HasSuffix(p, ".") || strings.Contains(p, "..") {
				at := d.one(join(path, list.name), i)
				d.add(at, "%s has a dot that separates nothing", d.show(at, p))
			}
		}
	}
	if r.TTL == "only" && len(r.On) > 0 && !r.takes(sluice.Remove) {
		d.add(path+".ttl", "only deletions are by TTL, and on names no REMOVE")
	}
	if b := r.Backoff; b != nil && b.First > 0 && b.Max > 0 && b.Max < b.First {
		d.add(path+".backoff.max", "%s is less than first", d.show(path+".backoff.max", b.Max.String()))
	}
	for _, h := range r.handlers() {
		h.check(c, path+"."+h.name, r)
	}
	for _, one := range r.conditions() {
		c.validateWhen(path+one.field, one.text, one.names...)
	}
}

// validatePatterns checks patterns by the router itself.
func (c *Config) validatePatterns(path string, r *Route) {
	d := c.doc
	try := func(on string, opts ...router.Option) error {
		nothing := func(context.Context, *sluice.Record) error { return nil }
		err := router.New().Add("", on, nothing, opts...)
		if err != nil {
			err = fmt.Errorf("%s", strings.TrimPrefix(err.Error(), ": "))
		}
		return err
	}
	if r.Name != "" {
		if err := try("*#*", router.Name(r.Name)); err != nil {
			d.add(path+".name", "%s is no name; want 1 to 200 bytes without control characters", d.show(path+".name", r.Name))
		}
	}
	good := len(r.On) > 0
	for i, on := range r.On {
		if err := try(on); err != nil {
			at := d.one(path+".on", i)
			d.add(at, "%s", d.detail(at, err))
			good = false
		}
	}
	if good {
		if err := try(strings.Join(r.patterns(), " ")); err != nil {
			d.add(path+".on", "%s", d.detail(path+".on", err))
		}
	}
}

// only notes patterns of events that the handler at path does not use.
func (c *Config) only(path string, r *Route, events ...sluice.EventName) {
	for i, on := range r.On {
		for _, p := range strings.Fields(on) {
			event := p[strings.LastIndexByte(p, '#')+1:]
			if event != "*" && !slices.Contains(events, sluice.EventName(event)) {
				names := make([]string, len(events))
				for i, e := range events {
					names[i] = string(e)
				}
				at := c.doc.one(parent(path)+".on", i)
				c.doc.add(at, "%s has no use for %s; want %s", path[len(parent(path))+1:], c.doc.shown(at, event), either(names))
			}
		}
	}
}

// options returns the route's name, filters and limits.
func (r *Route) options(c *Config, path string, made *built) ([]router.Option, error) {
	o := append([]router.Option{router.Name(r.Name)}, made.options...)
	if r.When != "" {
		w, err := c.when(path+".when", r.When)
		if err != nil {
			return nil, err
		}
		made.When = w.match
		o = append(o, w.options()...)
	}
	add := func(set bool, option router.Option) {
		if set {
			o = append(o, option)
		}
	}
	add(len(r.Changed) > 0, router.Changed(r.Changed...))
	add(r.ChangedIgnoring != nil, router.ChangedIgnoring(r.ChangedIgnoring...))
	add(r.TTL == "exclude", router.ExcludeTTL())
	add(r.TTL == "only", router.OnlyTTL())
	add(len(r.Regions) > 0, router.Regions(r.Regions...))
	add(r.Attempts != 0, router.Attempts(r.Attempts))
	add(r.PoisonAfter != 0, router.PoisonAfter(time.Duration(r.PoisonAfter)))
	if r.Backoff != nil {
		first := cmp.Or(time.Duration(r.Backoff.First), 100*time.Millisecond)
		add(true, router.Backoff(first, cmp.Or(time.Duration(r.Backoff.Max), max(first, 30*time.Second))))
	}
	add(r.Timeout != 0, router.Timeout(time.Duration(r.Timeout)))
	add(r.Concurrency != 0, router.Concurrency(r.Concurrency))
	if r.Rate != nil {
		add(true, router.Rate(r.Rate.PerSecond, cmp.Or(r.Rate.Burst, 1)))
	}
	add(r.MaxAge != 0, router.MaxAge(time.Duration(r.MaxAge)))
	late := made.late
	if r.Redrive != nil {
		late = *r.Redrive
	}
	add(late, router.Redrive())
	return o, nil
}

// Types returns the entity types of the route's patterns, each once; "*" is all.
func (r *Route) Types() (types []string) {
	for _, pattern := range r.patterns() {
		if i := strings.LastIndexByte(pattern, '#'); i >= 0 && !slices.Contains(types, pattern[:i]) {
			types = append(types, pattern[:i])
		}
	}
	return types
}

// takes reports whether one of the route's patterns matches an event.
func (r *Route) takes(event sluice.EventName) bool {
	return slices.ContainsFunc(r.patterns(), func(pattern string) bool {
		of := sluice.EventName(pattern[strings.LastIndexByte(pattern, '#')+1:])
		return of == event || of == "*" && (event == sluice.Insert || event == sluice.Modify || event == sluice.Remove)
	})
}

// tableOf returns the table of the route's records, if the file names it; else "".
func (c *Config) tableOf(r *Route, named string) string {
	var tables []string
	for table, typ := range c.EntityType.Tables {
		if slices.Contains(r.Types(), typ) {
			tables = append(tables, table)
		}
	}
	switch {
	case named != "":
		return named
	case len(tables) == 1:
		return tables[0]
	case len(tables) == 0 && len(c.Source.Tables) == 1:
		return tableName(c.Source.Tables[0])
	}
	return ""
}

// ownTable notes a table that the source does not read, or a missing table where the
// source reads several.
func (c *Config) ownTable(path string, r *Route, table, whose string) {
	d, tables := c.doc, c.tables()
	switch {
	case d.bad["source"] || d.badBelow("source"):
	case c.tableOf(r, table) == "":
		if len(tables) > 0 {
			whose += ": " + either(c.shownTables())
		}
		d.add(path, "it is missing, and neither source nor entityType leaves only one; say which has %s", whose)
	case table != "" && len(tables) > 0 && !slices.Contains(tables, table):
		d.add(path, "the table %s is not read; %s", d.show(path, table), d.meant(path, table, c.shownTables()))
	}
}

// tables returns the names of the source's tables.
func (c *Config) tables() []string {
	var names []string
	for _, t := range c.Source.Tables {
		names = append(names, tableName(t))
	}
	return names
}

// shownTables returns the source's tables as the file writes them.
func (c *Config) shownTables() []string {
	names := c.tables()
	for i := range names {
		names[i] = c.doc.shown(c.doc.one("source.tables", i), names[i])
	}
	return names
}
