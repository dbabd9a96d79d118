package config

import (
	"maps"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/sluicehq/sluice"
)

// validate checks parsed values, alone and together. It makes no call.
func (c *Config) validate() {
	d := c.doc
	if len(c.Name) > 200 || strings.ContainsFunc(c.Name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		d.add("name", "%s is too long or has control characters; want up to 200 bytes", d.show("name", c.Name))
	}
	c.validateSource()
	c.validateType("entityType", c.EntityType)
	for service, endpoint := range c.AWS.Endpoints {
		path := join("aws.endpoints", service)
		if allowed := []string{"dynamodb", "sqs", "sts"}; !slices.Contains(allowed, service) {
			d.add(path, "there is no endpoint of that name; %s", meant(service, allowed))
		} else {
			c.validateEndpoint(path, endpoint)
		}
	}
	c.validateAccounts()
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

// one returns the path of an element of Strings, which may be a text without a list.
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

func (c *Config) anyTakes(event sluice.EventName) bool {
	return slices.ContainsFunc(c.Routes, func(r Route) bool { return r.takes(event) })
}

// badBelow reports whether a path below path has a mistake.
func (d *source) badBelow(path string) bool {
	for p := range d.bad {
		if strings.HasPrefix(p, path+".") {
			return true
		}
	}
	return false
}

// String formats as time.Duration does.
func (d Duration) String() string { return d.Duration().String() }
