package config

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// SchemaURL is where the schema of files is published; an editor reads it by the
// first line of a file that Init makes.
const SchemaURL = "https://raw.githubusercontent.com/sluicehq/sluice/main/deploy/schema/sluice.schema.json"

// InitOptions say what a first file is about; the zero value makes one that
// writes a line to the log for each change of the table orders.
type InitOptions struct {
	Name       string   // of the application (default "sluice")
	Tables     []string // whose streams are read: names, or ARNs of streams (default orders)
	Start      string   // where a stream begins that was never read (default LATEST)
	EntityType string   // attribute that tells the entity type (default entityType)
	Types      []string // entity types that the routes are for (default order)
	Key        []string // key attributes of the tables, for project and cascade (default pk)
	Handlers   []string // of send, project, cascade, count and log, a route each (default what Queue and Cluster are for, or else log)
	Queue      string   // of send, or of cascade where that is alone, by name or URL (default jobs)
	Cluster    string   // of project, a URL, in which ${NAME} and ${NAME:-default} are variables (default http://127.0.0.1:9200)
	Schema     string   // path or URL of the schema (default SchemaURL)
}

// InitHandlers are what InitOptions.Handlers takes.
var InitHandlers = []string{"send", "project", "cascade", "count", "log"}

func (o InitOptions) withDefaults() InitOptions {
	if len(o.Handlers) == 0 {
		o.Handlers = nil // append to no array of the caller's
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

// Init makes a first file, with comments, that is valid as it stands. Its error
// says what of o cannot be in one.
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
	w := initWriter{o: o}
	w.head()
	w.sinks()
	w.line("", "# Every route that a record matches runs.", "routes:")
	for _, h := range o.Handlers {
		map[string]func(){"send": w.send, "project": w.project, "cascade": w.cascade, "count": w.count, "log": w.log}[h]()
	}
	w.tail()
	text := []byte(w.b.String())
	if _, err := Parse("", "", text, o.variable); err != nil {
		return nil, err // without places, of a file that nobody has seen
	}
	return text, nil
}

var variables = regexp.MustCompile(`\$\{[A-Za-z_][A-Za-z0-9_]*(:-[^${}]*)?\}`)

// variable stands in for those that Cluster names, which are set when the file is
// read: a URL for one that is the whole of it, and what may stand anywhere in a
// URL for others. One with a default is left to that.
func (o InitOptions) variable(name string) (string, bool) {
	switch {
	case strings.Contains(o.Cluster, "${"+name+":-"):
		return "", false
	case o.Cluster == "${"+name+"}":
		return "http://127.0.0.1:9200", true
	}
	return "1", true
}

// useless is an error for what was given and none of the handlers takes: it would
// be left out of the file without a word.
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

type initWriter struct {
	o InitOptions
	b strings.Builder
}

// line writes lines, which hold values that are quoted already.
func (w *initWriter) line(lines ...string) {
	for _, l := range lines {
		w.b.WriteString(l + "\n")
	}
}

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

// quoteURL is quote for a value whose variables stay what they are.
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
	_ = e.Encode(s) // a string always can be
	return strings.TrimSpace(b.String())
}

func quoteAll(list []string) string {
	quoted := make([]string, len(list))
	for i, s := range list {
		quoted[i] = quote(s)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// on are the patterns of all types for events.
func (w *initWriter) on(events ...string) string {
	var patterns []string
	for _, typ := range w.o.Types {
		for _, e := range events {
			patterns = append(patterns, typ+"#"+e)
		}
	}
	return quoteAll(patterns)
}

// id is the template of the key.
func (w *initWriter) id() string {
	parts := make([]string, len(w.o.Key))
	for i, k := range w.o.Key {
		parts[i] = "{" + escapeTemplate.Replace(k) + "}"
	}
	return quote(strings.Join(parts, "|"))
}

var escapeTemplate = strings.NewReplacer(`\`, `\\`, "{", `\{`, "}", `\}`, "|", `\|`, ":", `\:`)

func (w *initWriter) has(handlers ...string) bool {
	return slices.ContainsFunc(w.o.Handlers, func(h string) bool { return slices.Contains(handlers, h) })
}

func (w *initWriter) head() {
	w.line("# yaml-language-server: $schema="+w.o.Schema,
		"#",
		"# What is read, which changes take which handler, and where effects go.",
		"# sluice validate    says what is wrong with this file",
		"# sluice run         reads the streams and runs the routes",
		"",
		"# Keeps positions and dead letters apart from those of other applications.",
		"name: "+quote(w.o.Name),
		"",
		"source:",
		"  # Tables whose streams are read, by name or by the ARN of the stream.",
		"  tables: "+quoteAll(w.o.Tables),
		"  # Where a stream begins that was never read: LATEST is now, TRIM_HORIZON the",
		"  # oldest record, up to 24 hours ago.",
		"  start: "+quote(w.o.Start))
	if w.has("project") {
		w.line("  # Reads the tables whole, once, for the routes that name SNAPSHOT.",
			"  # backfill: true")
	}
	w.line("",
		"# The attribute that tells what an item is: the first half of the patterns of on.",
		"# For tables where a key tells, such as order#17: {key: {attribute: pk, pattern: \"{type}#**\"}}",
		"entityType: "+quote(w.o.EntityType))
}

func (w *initWriter) sinks() {
	if !w.has("send", "cascade", "project") {
		return
	}
	w.line("", "# Where routes write, by names of yours.", "sinks:")
	if w.has("send") {
		w.line("  queue:", "    sqs:", "      queue: "+quote(w.o.Queue)+" # by name or URL")
	}
	if w.has("cascade") {
		queue := w.o.Queue
		if w.has("send") { // whose messages are no tasks of a cascade
			queue = strings.TrimSuffix(queue, ".fifo") + "-cascade" // a standard one always
		}
		w.line("  cascades:", "    sqs:", "      queue: "+quote(queue)+" # of the cascade alone")
	}
	if w.has("project") {
		w.line("  search:", "    opensearch:", "      urls: "+"["+quoteURL(w.o.Cluster)+"]",
			"      # username: sluice",
			"      # password: ${OPENSEARCH_PASSWORD}",
			"      # sign: es                             # in place of a password: by AWS credentials",
			"      # indices: [{alias: "+w.index()+", file: "+w.index()+".index.json}]")
	}
}

func (w *initWriter) log() {
	w.line("",
		"  # A line in the log for each change: a hash of its key, never its contents.",
		"  - name: log",
		"    on: "+w.on("*"),
		"    log: {}")
}

func (w *initWriter) send() {
	w.line("",
		"  # A message for each new item.",
		"  - name: send",
		"    on: "+w.on("INSERT"),
		"    # when: new.status == \"active\"          # and only where this is true",
		"    send:",
		"      to: queue",
		"      body: record                         # or a template: '{\"id\":\"{pk}\"}'",
		"      # delay: 5m")
}

// index is named by what the items have in common, as far as that has a name.
func (w *initWriter) index() string {
	of := ""
	switch {
	case len(w.o.Types) == 1:
		of = w.o.Types[0]
	case len(w.o.Tables) == 1:
		of = tableName(w.o.Tables[0])
	}
	index := regexp.MustCompile(`[^a-z0-9_-]+`).ReplaceAllString(strings.ToLower(of), "-")
	return cmp.Or(strings.Trim(index, "-_"), "items")
}

func (w *initWriter) project() {
	w.line("",
		"  # A document of each item, written when it changes and deleted with it.",
		"  - name: project",
		"    on: "+w.on("*", "SNAPSHOT"),
		"    project:",
		"      to: search",
		"      index: "+quote(w.index()),
		"      id: "+w.id(),
		"      # What tells the later of two states: sequence, attribute:<path> of a number",
		"      # that every change raises, or none.",
		"      version: sequence",
		"      # exclude: [secret]",
		"      # rename: {created_at: createdAt}")
}

func (w *initWriter) cascade() {
	w.line("",
		"  # The children of a deleted item are deleted, too.",
		"  - name: cascade",
		"    on: "+w.on("REMOVE"),
		"    cascade:",
		"      table: "+quote(tableName(w.o.Tables[0])),
		"      key: "+quoteAll(w.o.Key),
		"      queue: cascades                      # large cascades go on there",
		"      children:",
		"        - table: children                  # change this: the table of the children,",
		"          key: [parentId, id]              # its key attributes,",
		"          partition:                       # and what of the parent they are found by",
		"            name: parentId",
		"            from: "+quote(w.o.Key[0]))
}

func (w *initWriter) count() {
	w.line("",
		"  # How many items a parent has, kept on it. sluice recount compares the numbers",
		"  # with the items, and sets them right with --repair.",
		"  - name: count",
		"    on: "+w.on("*"),
		"    count:",
		"      id: count                            # never change it: what was counted is known by it",
		"      table: "+quote(tableName(w.o.Tables[0])),
		"      markers: markers                     # change this: a table with the key pk (S), TTL on ttl",
		"      numbers:",
		"        - table: parents                   # change this: the table of the parents,",
		"          attribute: itemCount             # the number on them,",
		"          key: {id: parentId}              # and their key: attribute to the item's.",
		"          index: byParent                  # change this: the index of the items by which",
		"          partition: parentId              # a recount finds those of a parent, and its key")
}

func (w *initWriter) tail() {
	w.line("",
		"# What is not said here has a default: docs/configuration.md lists all.",
		"# deadLetter: {park: item}                 # later changes of a failed item wait behind it",
		"# limits: {concurrency: 64}",
		"# daemon: {state: sluice.db, listen: 127.0.0.1:9464}")
}
