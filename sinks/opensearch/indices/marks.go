package indices

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluicehq/sluice/document"
	"github.com/sluicehq/sluice/sinks/opensearch"
)

// metaVersions is the member of a mapping's _meta in which an index says by what
// its documents are versioned. Writers that go by something else refuse it.
const metaVersions = "sluiceVersions"

// versions is that member.
type versions struct {
	By    string `json:"by"` // bySequence
	Field string `json:"field"`
}

const bySequence = "sequence"

const showsTombstones = "searches show its tombstones: its alias does not leave them out"

// SchemeError says that the documents of an index cannot be compared by their
// sequence numbers, or by nothing else.
type SchemeError struct {
	Name   string // of the index or alias
	Reason string
	Do     string
}

func (e *SchemeError) Error() string {
	return fmt.Sprintf("indices: %s: %s: %s", e.Name, e.Reason, e.Do)
}

// Marks looks after indices whose documents are versioned by sequence: each has a
// [document.Mark]. It is safe for concurrent use.
type Marks struct {
	// MustExist has Check refuse a name that is not there, and make nothing.
	MustExist bool

	c     *Cluster
	field string
	plain bool

	turn  chan struct{} // of one check at a time
	mu    sync.Mutex
	known map[string]told
}

// told is the last answer about an index.
type told struct {
	err error
	at  time.Time
}

// askAgain is how long a bad answer counts.
const askAgain = 5 * time.Second

// Marks returns what looks after indices whose marks are in that field; plain says
// that deleted documents leave no tombstones.
func (c *Cluster) Marks(field string, plain bool) *Marks {
	return &Marks{c: c, field: field, plain: plain, turn: make(chan struct{}, 1), known: map[string]told{}}
}

// Unmarked returns what looks after indices whose documents are versioned
// otherwise: it refuses those that are versioned by sequence, and aliases of
// several indices.
func (c *Cluster) Unmarked() *Marks { return c.Marks("", false) }

// Equal reports whether both look after the same kind of documents; nil is any that
// is not versioned by sequence.
func (m *Marks) Equal(o *Marks) bool {
	if m == nil || o == nil {
		return m == o
	}
	return m.field == o.field && m.plain == o.plain
}

// Writer returns write for indices that have been checked: each name is, before
// the first write to it.
func (m *Marks) Writer(write func(context.Context, document.Op) error) func(context.Context, document.Op) error {
	return func(ctx context.Context, op document.Op) error {
		if err := m.Check(ctx, op.Index); err != nil {
			return err
		}
		return write(ctx, op)
	}
}

// Check returns nil when the index or alias of that name has the field, says so
// and hides tombstones, and a *[SchemeError] when it does not. It asks once, and
// makes an index that is not there, unless it MustExist: <name>-000001, behind the
// alias <name>.
func (m *Marks) Check(ctx context.Context, name string) error {
	if is, ok := m.told(name); ok {
		return is.err
	}
	select {
	case m.turn <- struct{}{}:
		defer func() { <-m.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if is, ok := m.told(name); ok {
		return is.err
	}
	err := m.check(ctx, name)
	if ctx.Err() == nil {
		m.mu.Lock()
		m.known[name] = told{err, time.Now()}
		m.mu.Unlock()
	}
	return err
}

func (m *Marks) told(name string) (told, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	is, ok := m.known[name]
	return is, ok && (is.err == nil || time.Since(is.at) < askAgain)
}

func (m *Marks) check(ctx context.Context, name string) error {
	if m.field == "" {
		err := m.c.Scheme(ctx, name, nil)
		var status *opensearch.StatusError
		if errors.As(err, &status) && (status.Status == http.StatusForbidden || status.Status == http.StatusUnauthorized) {
			return nil // who may not look, may write
		}
		return err
	}
	d, err := m.c.describe(ctx, name)
	if err == nil && d == nil && m.MustExist {
		return &SchemeError{name, "there is no such index or alias", "make it, with sluice adopt or by a file of the sink's indices"}
	}
	if err == nil && d == nil {
		if err = m.make(ctx, name); err == nil {
			d, err = m.c.describe(ctx, name)
		}
	}
	switch {
	case err != nil:
		return err
	case d == nil:
		return &SchemeError{name, fmt.Sprintf("there is no such alias, and the index %s-000001 is there", name), "give that index the alias, or delete it"}
	case d.versions == versions{}:
		if err := m.judge(ctx, name, d); err != nil {
			return err
		}
		return m.adopt(ctx, name, d) // it is empty
	}
	return m.judge(ctx, name, d)
}

// judge returns a *SchemeError when an index cannot take documents with marks. One
// without documents can.
func (m *Marks) judge(ctx context.Context, name string, d *described) error {
	if !d.source.keeps(m.field) {
		return &SchemeError{name, fmt.Sprintf("its mapping does not store the field %q in _source, where marks are read", m.field), "map _source without includes, and without excludes that match it"}
	}
	if is, ok := d.field[m.field]; ok && !contained(is, map[string]any{"properties": map[string]any{"sequence": map[string]any{"type": "keyword"}, "deleted": map[string]any{"type": "date"}}}) {
		return &SchemeError{name, fmt.Sprintf("its field %q is mapped as something else than a mark", m.field), "map it as an object with sequence as keyword and deleted as date, in a new index"}
	}
	switch d.versions {
	case versions{bySequence, m.field}:
		if !m.plain && !d.hides(d.alias(name), m.filter()) {
			return &SchemeError{name, showsTombstones, "run sluice adopt, and search by the alias"}
		}
		return nil
	case versions{}:
		n, err := m.c.Count(ctx, d.index, "")
		if err == nil && n > 0 {
			err = &SchemeError{name, fmt.Sprintf("it has %d documents, and does not say that they are versioned by sequence", n),
				"write to a new index and backfill that, or stop all programs that write to this one and run sluice adopt: live changes then go over documents without a mark"}
		}
		return err
	}
	return &SchemeError{name, fmt.Sprintf("its documents are versioned by %s, with marks in the field %q, and this program's marks are in %q", d.versions.By, d.versions.Field, m.field), "give all programs that write to it the same mark"}
}

// contained reports whether all members of want are in have.
func contained(have any, want map[string]any) bool {
	is, _ := have.(map[string]any)
	for name, w := range want {
		if object, ok := w.(map[string]any); ok {
			if !contained(is[name], object) {
				return false
			}
		} else if is[name] != w {
			return false
		}
	}
	return true
}

// Adopt has an index that is there take documents with marks. Those that are in
// it without one are older than every change: no other program may write there
// any more.
func (m *Marks) Adopt(ctx context.Context, name string) error {
	d, err := m.c.describe(ctx, name)
	switch {
	case err != nil:
		return err
	case d == nil:
		return m.make(ctx, name)
	case d.versions == versions{}: // its documents are what Adopt is for
		d.versions = versions{bySequence, m.field}
		var scheme *SchemeError
		if err := m.judge(ctx, name, d); errors.As(err, &scheme) && scheme.Reason != showsTombstones {
			return err
		}
	}
	return m.adopt(ctx, name, d)
}

func (m *Marks) adopt(ctx context.Context, name string, d *described) error {
	if name == d.index && !m.plain && !d.hides("", m.filter()) { // no alias may have the name of an index
		return &SchemeError{name, "it is an index, whose tombstones every search shows", "give it an alias of another name, and write to that and search by it; or set forgetDeleted"}
	}
	meta := maps.Clone(d.meta)
	if meta == nil {
		meta = map[string]json.RawMessage{}
	}
	meta[metaVersions] = m.says()
	mapping := map[string]any{"properties": m.properties(), "_meta": meta}
	if err := m.c.change(ctx, http.MethodPut, "/"+url.PathEscape(d.index)+"/_mapping", mapping); err != nil {
		return fmt.Errorf("indices: mapping the field %s of index %s: %w", m.field, d.index, err)
	}
	if m.plain || d.hides(d.alias(name), m.filter()) {
		return nil
	}
	kept, err := m.c.alias(ctx, d.index, name)
	if err != nil {
		return err
	}
	add := map[string]any{}
	for member, v := range kept {
		add[member] = v
	}
	add["index"], add["alias"], add["filter"] = d.index, name, m.filter()
	if own, ok := kept["filter"]; ok { // which stays
		add["filter"] = map[string]any{"bool": map[string]any{"filter": []any{own, m.filter()}}}
	}
	if err := m.c.change(ctx, http.MethodPost, "/_aliases", map[string]any{"actions": []any{map[string]any{"add": add}}}); err != nil {
		return fmt.Errorf("indices: hiding tombstones behind the alias %s: %w", name, err)
	}
	return nil
}

// make makes the index behind an alias.
func (m *Marks) make(ctx context.Context, name string) error {
	mappings := map[string]any{"properties": m.properties(), "_meta": map[string]any{metaVersions: m.says()}}
	alias := map[string]any{}
	if !m.plain {
		alias["filter"] = m.filter()
	}
	body, err := json.Marshal(map[string]any{
		"settings": Options{}.withDefaults().complete(map[string]string{}),
		"mappings": mappings,
		"aliases":  map[string]any{name: alias},
	})
	if err != nil {
		return err
	}
	_, err = m.c.Create(ctx, name+"-000001", body)
	return err
}

func (m *Marks) says() json.RawMessage {
	text, _ := json.Marshal(versions{bySequence, m.field})
	return text
}

// properties is the mapping of the field.
func (m *Marks) properties() map[string]any {
	return map[string]any{m.field: map[string]any{"properties": map[string]any{
		"sequence": map[string]any{"type": "keyword"},
		"deleted":  map[string]any{"type": "date"},
	}}}
}

// complete adds the field to the mappings of a file, which may be nil.
func (m *Marks) complete(mappings map[string]any) map[string]any {
	all, properties, meta := maps.Clone(mappings), m.properties(), map[string]any{}
	if all == nil {
		all = map[string]any{}
	}
	maps.Copy(properties, object(all["properties"]))
	maps.Copy(meta, object(all["_meta"]))
	meta[metaVersions] = m.says()
	all["properties"], all["_meta"] = properties, meta
	return all
}

// filter leaves out tombstones.
func (m *Marks) filter() map[string]any {
	return noTombstones(m.field)
}

// noTombstones is a query of all others.
func noTombstones(field string) map[string]any {
	return map[string]any{"bool": map[string]any{"must_not": map[string]any{"exists": map[string]any{"field": field + ".deleted"}}}}
}

// sourceMapping says what of a document is stored.
type sourceMapping struct {
	Enabled            *bool
	Includes, Excludes []string
}

// keeps reports whether the field is stored. Patterns are taken for more than they
// may match.
func (s sourceMapping) keeps(field string) bool {
	return (s.Enabled == nil || *s.Enabled) && len(s.Includes) == 0 && !slices.ContainsFunc(s.Excludes, func(pattern string) bool {
		return strings.HasPrefix(pattern, field) || strings.HasPrefix(pattern, "*")
	})
}

// described is the one index behind a name.
type described struct {
	index    string
	meta     map[string]json.RawMessage
	versions versions
	aliases  map[string]struct{ Filter any }
	source   sourceMapping
	field    map[string]any // the mapping of each field
}

// alias is the name if it is that of an alias, else empty.
func (d *described) alias(name string) string {
	if name == d.index {
		return ""
	}
	return name
}

// hides reports whether the alias leaves out tombstones, by that filter or one of
// several in a bool; or any alias where the index itself is written to.
func (d *described) hides(alias string, filter map[string]any) bool {
	for name, is := range d.aliases {
		if (alias == "" || name == alias) && contains(is.Filter, filter) {
			return true
		}
	}
	return false
}

func contains(have any, filter map[string]any) bool {
	if reflect.DeepEqual(have, filter) {
		return true
	}
	all, _ := have.(map[string]any)
	is, _ := all["bool"].(map[string]any)
	for _, part := range []string{"must", "filter"} {
		switch parts := is[part].(type) {
		case []any:
			if slices.ContainsFunc(parts, func(p any) bool { return contains(p, filter) }) {
				return true
			}
		case map[string]any:
			if contains(parts, filter) {
				return true
			}
		}
	}
	want := filter["bool"].(map[string]any)["must_not"]
	not, _ := is["must_not"].([]any)
	return reflect.DeepEqual(is["must_not"], want) || slices.ContainsFunc(not, func(p any) bool { return reflect.DeepEqual(p, want) })
}

// describe returns what is behind the name of an index or an alias; nil when there
// is nothing.
func (c *Cluster) describe(ctx context.Context, name string) (*described, error) {
	var out map[string]struct {
		Aliases  map[string]struct{ Filter any }
		Mappings struct {
			Meta       map[string]json.RawMessage `json:"_meta"`
			Source     sourceMapping              `json:"_source"`
			Properties map[string]any
		}
	}
	err := c.c.Call(ctx, http.MethodGet, "/"+url.PathEscape(name), nil, &out)
	if isMissing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("indices: asking for %s: %w", name, err)
	}
	if len(out) != 1 {
		return nil, &SchemeError{name, fmt.Sprintf("it is an alias of %d indices (%s), so that a change could make a second document, and a deletion leave one", len(out), strings.Join(slices.Sorted(maps.Keys(out)), ", ")),
			"write to an alias of one index; for searches over all give them another alias"}
	}
	for index, is := range out {
		d := &described{index: index, meta: is.Mappings.Meta, aliases: is.Aliases, source: is.Mappings.Source, field: is.Mappings.Properties}
		if raw, ok := d.meta[metaVersions]; ok {
			if err := json.Unmarshal(raw, &d.versions); err != nil {
				return nil, fmt.Errorf("indices: _meta.%s of index %s: %w", metaVersions, index, err)
			}
		}
		return d, nil
	}
	return nil, nil
}

// Scheme returns a *[SchemeError] when an index or alias that is there cannot take
// what a program writes whose documents have these marks, or none where marks is
// nil: changes could be lost, or stand twice. It changes nothing.
func (c *Cluster) Scheme(ctx context.Context, name string, marks *Marks) error {
	d, err := c.describe(ctx, name)
	switch {
	case err != nil || d == nil:
		return err
	case marks != nil:
		return marks.judge(ctx, name, d)
	case d.versions != versions{}:
		return &SchemeError{name, "its documents are versioned by " + d.versions.By, "have this program go by that, too, or write to another index"}
	}
	return nil
}
