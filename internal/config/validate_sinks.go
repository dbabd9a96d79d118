package config

import (
	"crypto/x509"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/sluicehq/sluice/sinks/opensearch"
)

func (s Sink) kinds() (set []string) {
	if s.SQS != nil {
		set = append(set, "sqs")
	}
	if s.OpenSearch != nil {
		set = append(set, "opensearch")
	}
	if s.DynamoDB != nil {
		set = append(set, "dynamodb")
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
