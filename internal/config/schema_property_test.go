package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/sluicehq/sluice/internal/localtest"
)

// known are mistakes that only Parse finds: they depend on another field, on a grammar
// of Sluice, or on the machine.
var known = regexp.MustCompile(strings.Join([]string{
	`"[^"]*\$\{`, // values of variables, and empty variables
	`there is no sink|the sink ".*" is (of|a FIFO)|no sink is a cluster|several sinks are clusters|are all of dynamodb`, // names in other fields
	`is the name of routes\[|that of (children|numbers|routes)\[|is there twice`,                                        // uniqueness
	`no table or queue is named|no route names SNAPSHOT|no table is named that could be read`,                           // empty variables; routes
	`is no table's name|is not the ARN|is no queue|is no URL|is neither host:port`,                                      // grammars, and variables in them
	`pattern ".*": at|duplicate pattern|has no use for|cascade is for items that are deleted|on names no REMOVE`,        // patterns of on
	`template|is nothing of a record|no body|has a dot that separates nothing|is excluded|Upper|".*" .*index`,           // templates and paths
	`\.(when|only): |reads the item`,              // expressions
	`at least \d+|at most \d+|a duration such as`, // length of a duration
	`a whole number`,                              // 2.0, and more than 64 bits
	`a number of 64 bits`,
	`a name is empty|the type is empty`,                                    // from a variable
	`too long or has control|is no name; want 1 to 200`,                    // bytes
	`the table ".*" is not read|is not a table of numbers|leaves only one`, // tables of source
	`is not the (partition|sort) key|an index need a queue|would be those of all|it has no value; want from|would take the children`, // children
	`for a cascade with a queue|FIFO queue|for FIFO queues|is less than first|go together|want one of the two`,                       // two fields
	`only other routes than those of start may leave it out|it is for version none|a backfill may read|version`,                      // two fields
	`has a '#'|there is no such file|the variable .* is not set|names no variable|has no }`,
	`it has \d+ (names|attributes)`, // a list given as one text
	`routes\[\d+\]\.project: |project\.(fields|tombstone|rename|flatten|include|exclude|id|routing|index)`, // errors of package projection
	`routes\[\d+\]\.send\.body: `,
	`plain http to another host`,
	`send\.attributes`, // names and templates
	`profile and assumeRole are both|requests are not signed|a cluster is at its urls|is no Region|an external id|the name of a session`, // of aws
	`escalate\.(ladder|watch|kind): |deleteOrphans: (orphans|numbers|the key)|Serverless`,                                                // several places together
}, "|"))

// bases are the files that the test begins with and changes.
var bases = []string{
	whole,
	minimal("- {name: x, on: 'a#*', log: {level: debug, message: m}}\n- {name: y, on: 'a#INSERT', changed: [a, b.c], ttl: exclude, regions: [r], concurrency: 2, maxAge: 1h, send: {to: f, group: '{a}', dedupe: '{b}', body: new, attributes: {k: '{c}', l: x}}}\n"),
	"source: {queues: q}\nentityType: {tables: {orders: order}}\naws: {profile: p, endpoints: {dynamodb: 'http://h:1'}}\nsinks: {q: {sqs: {queue: q, aws: {region: r, profile: p, endpoint: 'http://h:1'}}}, s: {opensearch: {urls: ['https://h'], sign: es, aws: {assumeRole: {arn: 'arn:aws:iam::123456789012:role/r', externalId: e1, sessionName: s1}}, requireAlias: true, inFlight: 2, maxBytes: 2048, timeout: 1s}}}\nroutes: [{name: x, on: 'a#*', project: {index: i, id: '{a}', version: 'attribute:v', only: new.a == 1, include: [a, b], rename: {b: c}, flatten: {a: x_}, tombstone: {t: 1}}}]\ndeadLetter: {park: item}\n",
	"source: {tables: [orders], start: LATEST, backfill: true, backfillUnits: 5}\nentityType: [kind, {key: {attribute: pk, pattern: '{type}#*'}}]\nroutes: [{name: x, on: 'a#SNAPSHOT', log: {}}]\nlimits: {window: 5, windowBytes: 5, heldBytes: 5, maxAhead: 7, order: shard, stuckAfter: 1s}\ndaemon: {state: s.db, listen: 'off', logFormat: json, logLevel: warn}\n",
	"source: {tables: [rows]}\nsinks: {calls: {sqs: {queue: calls}}, watch: {sqs: {queue: watch}}}\nroutes:\n- {name: x, on: 'a#INSERT', escalate: {do: start, kind: k, queue: calls, expireAfter: 1m, watch: watch, watchAfter: 20m, alarm: calls, repeat: 1, ladder: {key: {pk: '{id}'}, steps: {pk: '{ladder}'}, escalation: {id: pk, ladder: l, started: s, status: t, active: a}, step: {id: i, order: o, waitSeconds: w, typeAttribute: t, type: x}, attempt: {key: {pk: '{id}{round}{number}'}, escalation: e, number: n, order: o, stepId: s, at: a, set: {entityType: b}}}}}\n- {name: y, on: 'b#MODIFY', escalate: {do: next}}\n- {name: z, on: 'k.attempt#MESSAGE k.expire#MESSAGE', escalate: {do: contact, contact: {url: '{step.url}', body: new, timeout: 20s, lease: 1m, giveUpAfter: 5m, allowHttp: true, allowPrivate: false}}}\n",
	"source: {tables: [rows]}\nroutes:\n- {name: x, on: 'a#*', count: {id: c, markers: mmm, life: 30h, table: rows, deleteOrphans: ppp, numbers: [{table: ppp, attribute: n, key: [a, b], of: x, create: true, index: i, partition: a}]}}\n- {name: y, on: 'a#REMOVE', cascade: {table: rows, key: [a, b], children: [{name: k, table: ttt, key: [p, s], partition: {name: p, from: a}, sort: {name: s, from: b, before: x, after: '#'}}]}}\n",
}

// site is a value in a file, with its schema.
type site struct {
	schema map[string]any
	get    any
	set    func(any) // nil for the file itself
	remove func()    // nil unless the value is a field
}

// maker makes and changes files by a schema.
type maker struct {
	root map[string]any
	rnd  *rand.Rand
}

func (m *maker) resolve(s map[string]any) map[string]any {
	for {
		ref, ok := s["$ref"].(string)
		if !ok {
			return s
		}
		s = m.root["$defs"].(map[string]any)[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
	}
}

// sites lists a value and all values below it.
func (m *maker) sites(all []site, s map[string]any, v any, set func(any), remove func()) []site {
	s = m.resolve(s)
	all = append(all, site{s, v, set, remove})
	branches := []map[string]any{s}
	for _, one := range list(s["anyOf"]) {
		branches = append(branches, m.resolve(one))
	}
	switch v := v.(type) {
	case map[string]any:
		for _, b := range branches {
			properties, _ := b["properties"].(map[string]any)
			additional, _ := b["additionalProperties"].(map[string]any)
			for _, name := range slices.Sorted(maps.Keys(v)) {
				of, ok := properties[name].(map[string]any)
				if !ok {
					of = additional
				}
				if of != nil {
					all = m.sites(all, of, v[name], func(to any) { v[name] = to }, func() { delete(v, name) })
				}
			}
		}
	case []any:
		for _, b := range branches {
			if items, ok := b["items"].(map[string]any); ok {
				for i := range v {
					all = m.sites(all, items, v[i], func(to any) { v[i] = to }, nil)
				}
				break
			}
		}
	}
	return all
}

func list(v any) (all []map[string]any) {
	items, _ := v.([]any)
	for _, one := range items {
		if o, ok := one.(map[string]any); ok {
			all = append(all, o)
		}
	}
	return all
}

var someTexts = []string{
	"", "a", "orders", "jobs", "search", "f", "x y", "a#INSERT", "a#*", "*#REMOVE", "new.a == 1", "new.a ==", "{a}", "{", "${A}", "${A:-1s}", "${N}", "${EMPTY}", "${NO}", "$", "$$", "${",
	"0", "0s", "1ns", "0.1ms", "1ms", "1s", "-1s", "+1s", "15m", "16m", "24h", "25h", "99h", ".5h", "1.h", "1h30m", "1 h", "9999999h", "1d", "http://h", "off", "none", "sequence", "attribute:", "LATEST", "item", "record", "true", "é\u0000", "start", "next", "es", "ünï#x",
}

func (m *maker) pick(from ...any) any { return from[m.rnd.IntN(len(from))] }

func (m *maker) text() any { return someTexts[m.rnd.IntN(len(someTexts))] }

// make makes a value that is usually valid by the schema.
func (m *maker) make(s map[string]any, depth int) any {
	s = m.resolve(s)
	if any := list(s["anyOf"]); any != nil && s["properties"] == nil {
		return m.make(any[m.rnd.IntN(len(any))], depth)
	}
	if enum, ok := s["enum"].([]any); ok {
		return m.pick(enum...)
	}
	typ, _ := s["type"].(string)
	switch typ {
	case "object":
		made := map[string]any{}
		required, _ := s["required"].([]any)
		properties, _ := s["properties"].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			if slices.Contains(required, any(name)) || depth < 3 && m.rnd.IntN(5) == 0 {
				made[name] = m.make(properties[name].(map[string]any), depth+1)
			}
		}
		if of, ok := s["additionalProperties"].(map[string]any); ok {
			for range m.rnd.IntN(3) {
				made[fmt.Sprint(m.text())] = m.make(of, depth+1)
			}
		}
		return made
	case "array":
		made := []any{}
		for range m.rnd.IntN(3) {
			made = append(made, m.make(s["items"].(map[string]any), depth+1))
		}
		return made
	case "integer":
		return m.pick(-1, 0, 1, 2, 1023, 1024, 5000, int64(1)<<40)
	case "number":
		return m.pick(-0.5, 0, 0.5, 1, 1000)
	case "boolean":
		return m.rnd.IntN(2) == 0
	}
	return m.text()
}

// change makes one random change.
func (m *maker) change(file map[string]any) {
	sites := m.sites(nil, m.root, file, nil, nil)
	at := sites[m.rnd.IntN(len(sites))]
	switch object, isObject := at.get.(map[string]any); {
	case isObject && m.rnd.IntN(4) == 0: // an unknown field
		object[m.pick("zzz", "Name", "tables", "x-y").(string)] = m.pick(1, "x", nil)
	case isObject && m.rnd.IntN(3) > 0 && at.schema["properties"] != nil: // another field
		properties := at.schema["properties"].(map[string]any)
		name := slices.Sorted(maps.Keys(properties))[m.rnd.IntN(len(properties))]
		object[name] = m.make(properties[name].(map[string]any), 1)
	case at.remove != nil && m.rnd.IntN(4) == 0:
		at.remove()
	case at.set == nil:
	case m.rnd.IntN(3) == 0: // a value of another type
		at.set(m.pick(nil, 5, -1, 2.5, "x", "", true, []any{}, []any{"x"}, []any{"x", "x"}, map[string]any{}, map[string]any{"a": 1}, []any{[]any{}}, m.text()))
	default:
		at.set(m.make(at.schema, 1))
	}
}

// block writes a value as YAML, a line for each.
func block(b *strings.Builder, v any, indent string) {
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 {
			b.WriteString(" {}\n")
			return
		}
		b.WriteString("\n")
		for _, name := range slices.Sorted(maps.Keys(v)) {
			b.WriteString(indent + string(quoted(name)) + ":")
			block(b, v[name], indent+"  ")
		}
	case []any:
		if len(v) == 0 {
			b.WriteString(" []\n")
			return
		}
		b.WriteString("\n")
		for _, one := range v {
			b.WriteString(indent + "-")
			block(b, one, indent+"  ")
		}
	default:
		b.WriteString(" " + string(quoted(v)) + "\n")
	}
}

func quoted(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}

// agreement compares the verdicts of the schema and Parse on random files.
type agreement struct {
	t      testing.TB
	root   map[string]any
	schema *jsonschema.Schema
	bases  [][]byte // as JSON
	counts map[string]int
}

func newAgreement(t testing.TB) *agreement {
	a := &agreement{t: t, schema: compiled(t), counts: map[string]int{}}
	if err := json.Unmarshal(schemaFile(t), &a.root); err != nil {
		t.Fatal(err)
	}
	for _, base := range bases {
		data, err := yaml.YAMLToJSON([]byte(base))
		if err != nil {
			t.Fatal(err)
		}
		a.bases = append(a.bases, data)
	}
	return a
}

func (a *agreement) check(seed uint64) {
	m := &maker{root: a.root, rnd: rand.New(rand.NewPCG(seed, 7))}
	file := map[string]any{}
	if err := json.Unmarshal(a.bases[m.rnd.IntN(len(a.bases))], &file); err != nil {
		a.t.Fatal(err)
	}
	for range m.rnd.IntN(3) {
		m.change(file)
	}
	var b strings.Builder
	block(&b, file, "")
	text := strings.TrimPrefix(b.String(), "\n")
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(quoted(file)))
	if err != nil {
		a.t.Fatal(err)
	}
	refused := a.schema.Validate(value)
	_, err = Parse("f", "", []byte(text), environ(map[string]string{"A": "2s", "N": "4", "PW": "p", "EMPTY": ""}))
	switch {
	case err == nil && refused == nil:
		a.counts["both take it"]++
		return
	case err == nil:
		a.t.Errorf("seed %d: Parse takes what the schema refuses: %v\n%s", seed, refused, text)
		return
	case refused != nil:
		a.counts["both refuse it"]++
	default:
		a.counts["Parse alone refuses it"]++
	}
	all := Errors{}
	if !errors.As(err, &all) || len(all) == 0 {
		a.t.Fatalf("seed %d: %T %v", seed, err, err)
	}
	lines := strings.Count(text, "\n")
	for _, e := range all {
		if e.Line < 1 || e.Column < 1 || e.Line > lines || e.Problem == "" || e.File != "f" {
			a.t.Errorf("seed %d: no place: %+v\n%s", seed, e, text)
		}
		if refused == nil && !known.MatchString(e.Error()) {
			a.t.Errorf("seed %d: the schema does not see: %v", seed, e)
		}
	}
}

// The schema accepts every file that Parse accepts. A mistake that only Parse finds is
// in known, and has a place.
func TestSchemaAgrees(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	schemaAgrees(t, 1000)
}

func schemaAgrees(t *testing.T, seeds int) {
	a := newAgreement(t)
	for seed := range uint64(seeds) {
		a.check(seed)
	}
	t.Log(a.counts)
	for kind, least := range map[string]int{"both take it": 350, "both refuse it": 300, "Parse alone refuses it": 75} {
		if a.counts[kind] < least*seeds/1000 {
			t.Errorf("%s %d times: the seeds try too little", kind, a.counts[kind])
		}
	}
}

// Run it for long with -fuzz FuzzSchemaAgrees.
func FuzzSchemaAgrees(f *testing.F) {
	f.Add(uint64(3001))
	a := newAgreement(f) // compiling the schema takes longer than many checks
	f.Fuzz(func(t *testing.T, seed uint64) {
		of := *a
		of.t, of.counts = t, map[string]int{}
		of.check(seed)
	})
}
