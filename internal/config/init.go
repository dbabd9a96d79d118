package config

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"text/template"
)

// SchemaURL is the published schema. The first line of Init's file points editors to
// it.
const SchemaURL = "https://raw.githubusercontent.com/sluicehq/sluice/main/deploy/schema/sluice.schema.json"

// InitOptions describe a first file. The zero value makes a file that logs a line for
// each change of the table orders.
type InitOptions struct {
	Name       string   // name of the application (default "sluice")
	Tables     []string // tables to read: names, or ARNs of streams (default orders)
	Start      string   // where to begin a stream that was never read (default LATEST)
	EntityType string   // attribute of the entity type (default entityType)
	Types      []string // entity types of the routes (default order)
	Key        []string // key attributes of the tables, for project and cascade (default pk)
	Handlers   []string // send, project, cascade, count or log: a route for each (default by Queue and Cluster, else log)
	Queue      string   // name or URL of the queue of send, else of cascade (default jobs)
	Cluster    string   // of project, a URL, in which ${NAME} and ${NAME:-default} are variables (default http://127.0.0.1:9200)
	Schema     string   // path or URL of the schema (default SchemaURL)
}

// InitHandlers are the valid names in InitOptions.Handlers.
var InitHandlers = []string{"send", "project", "cascade", "count", "log"}

func (o InitOptions) withDefaults() InitOptions {
	if len(o.Handlers) == 0 {
		o.Handlers = nil // do not append to the caller's array
		if o.Queue != "" {
			o.Handlers = append(o.Handlers, "send")
		}
		if o.Cluster != "" {
			o.Handlers = append(o.Handlers, "project")
		}
	}
	o.Name = cmp.Or(o.Name, "sluice")
	o.Start = cmp.Or(o.Start, "LATEST")
	o.EntityType = cmp.Or(o.EntityType, "entityType")
	o.Queue = cmp.Or(o.Queue, "jobs")
	o.Cluster = cmp.Or(o.Cluster, "http://127.0.0.1:9200")
	o.Schema = cmp.Or(o.Schema, SchemaURL)
	for _, list := range []struct {
		of  *[]string
		def []string
	}{{&o.Tables, []string{"orders"}}, {&o.Types, []string{"order"}}, {&o.Key, []string{"pk"}}, {&o.Handlers, []string{"log"}}} {
		if len(*list.of) == 0 {
			*list.of = list.def
		}
	}
	return o
}

// Init makes a valid first file, with comments. Its error names the options that no
// file can have.
func Init(o InitOptions) ([]byte, error) {
	given := o
	o = o.withDefaults()
	for i, h := range o.Handlers {
		switch {
		case !slices.Contains(InitHandlers, h):
			return nil, fmt.Errorf("there is no handler %q; %s", h, meant(h, InitHandlers))
		case slices.Contains(o.Handlers[:i], h):
			return nil, fmt.Errorf("the handler %s is there twice", h)
		}
	}
	if err := o.useless(given); err != nil {
		return nil, err
	}
	if len(o.Key) > 2 {
		return nil, fmt.Errorf("a table has one key attribute or two, not %d", len(o.Key))
	}
	if strings.ContainsFunc(o.Schema, func(r rune) bool { return r <= ' ' }) {
		return nil, fmt.Errorf("the schema's place %q has a space", o.Schema)
	}
	// Not a package variable: a program without Init does not link text/template.
	templates := template.Must(template.New("").Funcs(template.FuncMap{
		"quote": quote, "quoteAll": quoteAll, "quoteURL": quoteURL,
	}).Parse(initFile))
	var b bytes.Buffer
	for _, part := range slices.Concat([]string{"head"}, o.Handlers, []string{"tail"}) {
		if err := templates.ExecuteTemplate(&b, part, initData{o}); err != nil {
			return nil, err
		}
	}
	text := b.Bytes()
	if _, err := Parse("", "", text, o.variable); err != nil {
		return nil, err // without places: nobody has seen the file
	}
	return text, nil
}

var variables = regexp.MustCompile(`\$\{[A-Za-z_][A-Za-z0-9_]*(:-[^${}]*)?\}`)

// variable returns a sample value for a variable of Cluster, to check the file before
// the variable is set. A variable that is the whole of Cluster gets a URL, others a
// text that fits anywhere in a URL. A variable with a default gets none.
func (o InitOptions) variable(name string) (string, bool) {
	switch {
	case strings.Contains(o.Cluster, "${"+name+":-"):
		return "", false
	case o.Cluster == "${"+name+"}":
		return "http://127.0.0.1:9200", true
	}
	return "1", true
}

// useless returns an error for an option that none of the handlers uses: the file would
// lack it silently.
func (o InitOptions) useless(given InitOptions) error {
	for _, one := range []struct {
		what  string
		given bool
		of    []string
	}{
		{"queue", given.Queue != "", []string{"send", "cascade"}},
		{"cluster", given.Cluster != "", []string{"project"}},
		{"key", len(given.Key) > 0, []string{"project", "cascade"}},
	} {
		if one.given && !slices.ContainsFunc(one.of, func(h string) bool { return slices.Contains(o.Handlers, h) }) {
			return fmt.Errorf("the %s has no effect: it is of %s, and the handlers are %s", one.what, strings.Join(one.of, " and "), strings.Join(o.Handlers, ", "))
		}
	}
	return nil
}

// initFile has a template for each handler, and for the parts before and after the
// routes.
//
//go:embed init.yaml.tmpl
var initFile string

var bareWord = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]*$`)

// quote writes a value as YAML.
func quote(s string) string {
	switch strings.ToLower(s) {
	case "true", "false", "null", "yes", "no", "on", "off", "y", "n":
	default:
		if bareWord.MatchString(s) {
			return s
		}
	}
	return inQuotes(strings.ReplaceAll(s, "$", "$$"))
}

// quoteURL is quote for a value that may have variables, which stay.
func quoteURL(s string) string {
	var b strings.Builder
	end := 0
	for _, at := range variables.FindAllStringIndex(s, -1) {
		b.WriteString(strings.ReplaceAll(s[end:at[0]], "$", "$$") + s[at[0]:at[1]])
		end = at[1]
	}
	return inQuotes(b.String() + strings.ReplaceAll(s[end:], "$", "$$"))
}

func inQuotes(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // encoding a string cannot fail
	return strings.TrimSpace(b.String())
}

func quoteAll(list []string) string {
	quoted := make([]string, len(list))
	for i, s := range list {
		quoted[i] = quote(s)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// initData has the values for the templates.
type initData struct{ InitOptions }

// On returns the patterns of all types for events.
func (o initData) On(events ...string) string {
	var patterns []string
	for _, typ := range o.Types {
		for _, e := range events {
			patterns = append(patterns, typ+"#"+e)
		}
	}
	return quoteAll(patterns)
}

// DocumentID returns the id's template, made of the key.
func (o initData) DocumentID() string {
	parts := make([]string, len(o.Key))
	for i, k := range o.Key {
		parts[i] = "{" + escapeTemplate.Replace(k) + "}"
	}
	return quote(strings.Join(parts, "|"))
}

var escapeTemplate = strings.NewReplacer(`\`, `\\`, "{", `\{`, "}", `\}`, "|", `\|`, ":", `\:`)

// Has reports whether there is a route of one of these handlers.
func (o initData) Has(handlers ...string) bool {
	return slices.ContainsFunc(o.Handlers, func(h string) bool { return slices.Contains(handlers, h) })
}

// CascadeQueue returns a separate standard queue for the cascade, which cannot handle
// messages of send.
func (o initData) CascadeQueue() string {
	if o.Has("send") {
		return strings.TrimSuffix(o.Queue, ".fifo") + "-cascade"
	}
	return o.Queue
}

// Table returns the name of the first table.
func (o initData) Table() string { return tableName(o.Tables[0]) }

// Index returns a name that fits all items: of the only type, else of the table.
func (o initData) Index() string {
	of := ""
	switch {
	case len(o.Types) == 1:
		of = o.Types[0]
	case len(o.Tables) == 1:
		of = o.Table()
	}
	index := regexp.MustCompile(`[^a-z0-9_-]+`).ReplaceAllString(strings.ToLower(of), "-")
	return cmp.Or(strings.Trim(index, "-_"), "items")
}
