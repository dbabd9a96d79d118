package config

import (
	"crypto/x509"
	"encoding/json"
	"maps"
	"net"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/sinks/opensearch"
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

func (s Sink) kinds() (set []string) {
	for _, kind := range []struct {
		name string
		set  bool
	}{{"sqs", s.SQS != nil}, {"opensearch", s.OpenSearch != nil}, {"dynamodb", s.DynamoDB != nil}} {
		if kind.set {
			set = append(set, kind.name)
		}
	}
	return set
}

// ofKind returns the sorted names of the sinks of a kind.
func (c *Config) ofKind(kind string) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(c.Sinks)) {
		if slices.Contains(c.Sinks[name].kinds(), kind) {
			names = append(names, name)
		}
	}
	return names
}

func (c *Config) validateSink(path string, s Sink) {
	d := c.doc
	switch kinds := s.kinds(); {
	case len(kinds) > 1:
		d.add(path, "%s are both its kind; want one, and a sink for each", strings.Join(kinds, " and "))
	case len(kinds) == 0 && !d.bad[path+"?"] && !d.badBelow(path):
		d.add(path, "it has no kind; want one of sqs, opensearch and dynamodb")
	}
	if s.SQS != nil {
		c.validateQueue(path+".sqs.queue", s.SQS.Queue)
	}
	if s.OpenSearch != nil {
		c.validateOpenSearch(path+".opensearch", s.OpenSearch)
	}
	if s.DynamoDB != nil {
		for table := range s.DynamoDB.Budget {
			if !goodTable.MatchString(table) {
				at := join(path+".dynamodb.budget", table)
				d.add(at, "%s is no table's name", d.showName(at, table))
			}
		}
	}
}

func (c *Config) validateOpenSearch(path string, o *OpenSearch) {
	d := c.doc
	for i, u := range o.URLs {
		if !isURL(u) { // the error does not quote the URL: it may hold a password
			d.add(d.one(path+".urls", i), "it is no URL such as https://search.example.com:9200; want http or https and a host (in a user's name or password, characters such as @ : / # are percent-encoded)")
		}
	}
	at := opensearch.Connection{URLs: o.URLs, Password: o.Password, Service: o.Sign, AllowPlainHTTP: o.AllowPlainHTTP}
	for _, i := range at.Exposed() {
		d.add(d.one(path+".urls", i), "it is plain http to another host, and others could read the password or repeat signed requests; want https, or the host in allowPlainHTTP")
	}
	if (o.Username == "") != (o.Password == "") {
		d.add(path, "username and password go together, and one of them is missing")
	}
	if o.Sign != "" && o.Username != "" {
		d.add(path+".sign", "requests are signed, and there is a username, too; want one of the two")
	}
	if o.CAFile != "" {
		pem, err := readFile(c.file(o.CAFile))
		switch {
		case err != nil:
			d.add(path+".caFile", "%s: %s", d.show(path+".caFile", o.CAFile), reason(err))
		case !x509.NewCertPool().AppendCertsFromPEM(pem):
			d.add(path+".caFile", "%s has no certificate in PEM", d.show(path+".caFile", o.CAFile))
		}
	}
	for i, index := range o.Indices {
		at := element(path+".indices", i)
		if slices.ContainsFunc(o.Indices[:i], func(other Index) bool { return other.Alias == index.Alias }) {
			d.add(at+".alias", "%s is there twice", d.show(at+".alias", index.Alias))
		}
		if index.File == "" {
			continue
		}
		text, err := os.ReadFile(c.file(index.File))
		if err != nil {
			d.add(at+".file", "%s: %s", d.show(at+".file", index.File), reason(err))
			continue
		}
		var body map[string]any
		if err := json.Unmarshal(text, &body); err != nil {
			d.add(at+".file", "%s is no JSON object with settings and mappings: %v", d.show(at+".file", index.File), err)
		}
	}
}

// sink returns the sink of a name, and notes a wrong name.
func (c *Config) sink(path, name, kind string) (s Sink, ok bool) {
	d := c.doc
	names := c.ofKind(kind)
	if name == "" {
		return s, false
	}
	s, there := c.Sinks[name]
	switch {
	case d.bad["sinks"] || d.bad["sinks?"] || d.bad[join("sinks", name)] || d.badBelow(join("sinks", name)) || d.bad[join("sinks", name)+"?"]:
		return s, false
	case !there && len(names) == 0:
		d.add(path, "there is no sink %s; declare one: sinks: {%s: {%s: …}}", d.show(path, name), d.hide(path, name), kind)
	case !there:
		d.add(path, "there is no sink %s; %s", d.show(path, name), d.meant(path, name, names))
	case !slices.Contains(names, name):
		problem := "there is none"
		if len(names) > 0 {
			problem = "want " + either(names)
		}
		d.add(path, "the sink %s is of %s, and one of %s is needed here; %s", d.show(path, name), strings.Join(s.kinds(), " and "), kind, problem)
	default:
		return s, true
	}
	return s, false
}

// hide returns value, or NAME if the value may be a secret.
func (d *source) hide(path, value string) string {
	if _, ok := d.from[path]; ok {
		return "NAME"
	}
	return value
}

// standard notes a FIFO queue where a standard queue is needed.
func (c *Config) standard(path, name string) {
	if s, ok := c.sink(path, name, "sqs"); ok && s.SQS.fifo() {
		c.doc.add(path, "the sink %s is a FIFO queue, which cannot delay single messages; want a standard one", c.doc.show(path, name))
	}
}
