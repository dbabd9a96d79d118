package config

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/awsclient"
	"github.com/sluicehq/sluice/router"
)

// validate notes what is wrong with values that are understood one by one. It
// makes no call.
func (c *Config) validate() {
	d := c.doc
	if len(c.Name) > 200 || strings.ContainsFunc(c.Name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		d.add("name", "%s is too long or has control characters; want up to 200 bytes", d.show("name", c.Name))
	}
	c.validateSource()
	c.validateType("entityType", c.EntityType)
	for service, endpoint := range c.AWS.Endpoints {
		path := join("aws.endpoints", service)
		if allowed := []string{"dynamodb", "sqs"}; !slices.Contains(allowed, service) {
			d.add(path, "there is no endpoint of that name; %s", meant(service, allowed))
		} else if !isURL(endpoint) {
			d.add(path, "%s is no URL such as http://127.0.0.1:8000", d.show(path, endpoint))
		} else if awsclient.Exposed(endpoint) {
			d.add(path, "it is plain http to AWS, where others could read items and repeat requests; want https")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Sinks)) {
		c.validateSink(join("sinks", name), c.Sinks[name])
	}
	if len(c.ofKind("dynamodb")) > 1 {
		d.add("sinks", "%s are all of dynamodb; handlers take the only one, so that there can be no second", strings.Join(c.ofKind("dynamodb"), ", "))
	}
	c.validateRoutes()
	if q := c.DeadLetter.Queue; q != "" {
		c.validateQueue("deadLetter.queue", q)
		if strings.HasSuffix(q, ".fifo") {
			d.add("deadLetter.queue", "it is a FIFO queue; want a standard one: dead letters have no order")
		}
	}
	if at := c.Daemon.Listen; at != "" && at != "off" {
		if _, _, err := net.SplitHostPort(at); err != nil {
			d.add("daemon.listen", "%s is neither host:port nor off", d.show("daemon.listen", at))
		}
	}
}

var (
	goodTable = regexp.MustCompile(`^[A-Za-z0-9_.-]{3,255}$`)
	goodARN   = regexp.MustCompile(`^arn:[^:]+:dynamodb:[^:]+:[^:]*:table/[^/]+/stream/.+$`)
	goodQueue = regexp.MustCompile(`^[A-Za-z0-9_-]{1,80}$`)
)

func (c *Config) validateSource() {
	d, s := c.doc, c.Source
	if _, there := d.at["source"]; there && len(s.Tables) == 0 && len(s.Queues) == 0 && !d.bad["source?"] && !d.bad["source.tables"] && !d.bad["source.queues"] {
		d.add("source", "no table or queue is named, so that nothing would be read; name one: tables: [orders]")
	}
	for i, t := range s.Tables {
		path := d.one("source.tables", i)
		switch {
		case strings.HasPrefix(t, "arn:") && !goodARN.MatchString(t):
			d.add(path, "%s is not the ARN of a stream; want arn:aws:dynamodb:REGION:ACCOUNT:table/TABLE/stream/LABEL, or the table's name", d.show(path, t))
		case !strings.HasPrefix(t, "arn:") && !goodTable.MatchString(t):
			d.add(path, "%s is no table's name; want 3 to 255 letters, digits, _, - and dots, or the ARN of a stream", d.show(path, t))
		}
	}
	for i, q := range s.Queues {
		c.validateQueue(d.one("source.queues", i), q)
	}
	switch {
	case s.Backfill && len(s.Tables) == 0:
		d.add("source.backfill", "no table is named that could be read")
	case s.Backfill && !d.bad["routes"] && !c.anyTakes(sluice.Snapshot):
		d.add("source.backfill", "no route names SNAPSHOT, so that nothing would become of what is read; name it beside the others: on: [order#*, order#SNAPSHOT]")
	}
}

// one is the path of an element of Strings, which may stand there without a list.
func (d *source) one(path string, i int) string {
	if _, ok := d.at[element(path, i)]; ok {
		return element(path, i)
	}
	return path
}

func (c *Config) validateQueue(path, queue string) {
	if queue == "" {
		return
	}
	if strings.Contains(queue, "/") {
		if u, err := url.Parse(queue); err != nil || !isURL(queue) || strings.Trim(u.Path, "/") == "" {
			c.doc.add(path, "%s is no URL of a queue, such as https://sqs.us-east-1.amazonaws.com/123456789012/jobs", c.doc.show(path, queue))
		}
		return
	}
	if !goodQueue.MatchString(strings.TrimSuffix(queue, ".fifo")) {
		c.doc.add(path, "%s is no queue; want its URL, or its name of up to 80 letters, digits, _ and -", c.doc.show(path, queue))
	}
}

func isURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != ""
}

func (c *Config) validateType(path string, t EntityType) {
	d := c.doc
	n := 0
	for _, set := range []bool{t.Attribute != "", t.Key != nil, t.Tables != nil, t.First != nil} {
		if set {
			n++
		}
	}
	if _, there := d.at[path]; there && n != 1 && !d.bad[path+"?"] && !d.bad[path+".tables?"] && !d.badBelow(path) {
		d.add(path, "want one of attribute, key and tables, and there are %d", n)
	}
	if t.Key != nil {
		if _, err := router.ParseKeyPattern(t.Key.Attribute, t.Key.Pattern); err != nil && t.Key.Attribute != "" {
			d.add(path+".key.pattern", "%s", d.detail(path+".key.pattern", err))
		}
	}
	for table, typ := range t.Tables {
		if typ == "" {
			d.add(join(path+".tables", table), "the type is empty")
		}
	}
	for i, one := range t.First {
		c.validateType(element(path, i), one)
	}
}

func (c *Config) anyTakes(event sluice.EventName) bool {
	return slices.ContainsFunc(c.Routes, func(r Route) bool { return r.takes(string(event)) })
}

func (r Route) patterns() []string { return strings.Fields(strings.Join(r.On, " ")) }

// kinds are the handlers that a route has.
func (r Route) kinds() (set []string) {
	for _, k := range []struct {
		name string
		set  bool
	}{
		{"send", r.Send != nil}, {"project", r.Project != nil}, {"cascade", r.Cascade != nil},
		{"count", r.Count != nil}, {"escalate", r.Escalate != nil}, {"log", r.Log != nil},
	} {
		if k.set {
			set = append(set, k.name)
		}
	}
	return set
}

func (c *Config) validateRoutes() {
	d := c.doc
	if _, there := d.at["routes"]; there && len(c.Routes) == 0 {
		d.add("routes", "there is no route, so that nothing would be handled")
	}
	names := map[string]int{}
	for i, r := range c.Routes {
		path := element("routes", i)
		if first, twice := names[r.Name]; twice && r.Name != "" {
			d.add(path+".name", "%s is the name of routes[%d], too (line %d)", d.show(path+".name", r.Name), first, d.where(element("routes", first)+".name").line)
		} else {
			names[r.Name] = i
		}
		c.validateRoute(path, r)
	}
}

func (c *Config) validateRoute(path string, r Route) {
	d := c.doc
	c.validatePatterns(path, r)
	switch kinds := r.kinds(); {
	case len(kinds) > 1:
		d.add(path, "%s are both its handler; want one, and a route for each", strings.Join(kinds, " and "))
	case len(kinds) == 0 && !d.bad[path+"?"] && !d.badBelow(path):
		d.add(path, "it has no handler; want one of send, project, cascade, count, escalate and log")
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
	if r.TTL == "only" && len(r.On) > 0 && !r.takes(string(sluice.Remove)) {
		d.add(path+".ttl", "only deletions are by TTL, and on names no REMOVE")
	}
	if b := r.Backoff; b != nil && b.First > 0 && b.Max > 0 && b.Max < b.First {
		d.add(path+".backoff.max", "%s is less than first", d.show(path+".backoff.max", b.Max.String()))
	}
	if r.When != "" {
		c.validateWhen(path+".when", r.When)
	}
	switch {
	case r.Send != nil:
		c.validateSend(path+".send", r)
	case r.Project != nil:
		c.validateProject(path+".project", r)
	case r.Cascade != nil:
		c.validateCascade(path+".cascade", r)
	case r.Count != nil:
		c.validateCount(path+".count", r)
	case r.Escalate != nil:
		c.validateEscalate(path+".escalate", r)
	}
}

// badBelow reports whether something within path was not understood.
func (d *source) badBelow(path string) bool {
	for p := range d.bad {
		if strings.HasPrefix(p, path+".") {
			return true
		}
	}
	return false
}

// validatePatterns asks the router itself.
func (c *Config) validatePatterns(path string, r Route) {
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

// only notes patterns of events that a handler has no use for.
func (c *Config) only(path string, r Route, handler string, events ...sluice.EventName) {
	for i, on := range r.On {
		for _, p := range strings.Fields(on) {
			event := p[strings.LastIndexByte(p, '#')+1:]
			if event != "*" && !slices.Contains(events, sluice.EventName(event)) {
				names := make([]string, len(events))
				for i, e := range events {
					names[i] = string(e)
				}
				at := c.doc.one(parent(path)+".on", i)
				c.doc.add(at, "%s has no use for %s; want %s", handler, c.doc.shown(at, event), either(names))
			}
		}
	}
}

// String is that of time.Duration.
func (d Duration) String() string { return d.Duration().String() }
