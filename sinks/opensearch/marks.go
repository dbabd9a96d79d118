package opensearch

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"

	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/internal/docrules"
)

// metaVersions is the member of a mapping's _meta that records how the documents of
// an index are versioned.
const metaVersions = "sluiceVersions"

// versions is that member.
type versions struct {
	By    string `json:"by"` // bySequence
	Field string `json:"field"`
	// ForgetDeleted says that deletions leave no tombstones. Writers of both kinds in
	// one index would restore what the others have deleted.
	ForgetDeleted bool `json:"forgetDeleted,omitempty"`
}

const bySequence = "sequence"

// unfit is the error for an index or alias that a program must not write to.
func unfit(name, reason, do string) error {
	return &docrules.SchemeError{Name: name, Reason: reason, Do: do}
}

// Marks creates and checks indices whose documents are versioned by sequence: each
// document has a [document.Mark]. Its methods are safe for concurrent use.
type Marks struct {
	// MustExist makes Check refuse a name that does not exist. Check then creates
	// no index. Set it before the first call.
	MustExist bool

	c     *Indices
	field string
	plain bool

	checks *checks
}

// Marks returns the Marks of indices that have them in that field. With plain,
// deleted documents leave no tombstones.
func (c *Indices) Marks(field string, plain bool) *Marks {
	m := &Marks{c: c, field: field, plain: plain}
	m.checks = newChecks(m.check)
	return m
}

// Writer wraps write: the first write to an index waits until Check has passed, and
// one write a minute checks again.
func (m *Marks) Writer(write func(context.Context, document.Op) error) func(context.Context, document.Op) error {
	return m.checks.writer(write)
}

// Check returns nil when the index or alias can hold marked documents: it maps the
// field, records how it is versioned, and hides tombstones. Else its error says why,
// and what to do. Check asks the cluster once a minute for each name. It creates an
// index that does not exist, unless MustExist is set: <name>-000001 behind the
// alias <name>.
func (m *Marks) Check(ctx context.Context, name string) error { return m.checks.pass(ctx, name) }

// Inspect is Check without changes. An index that does not exist passes.
func (m *Marks) Inspect(ctx context.Context, name string) error {
	d, err := m.c.describe(ctx, name)
	if err != nil || d == nil {
		return err
	}
	return m.judge(ctx, name, d)
}

func (m *Marks) check(ctx context.Context, name string) error {
	d, err := m.c.describe(ctx, name)
	if err == nil && d == nil && m.MustExist {
		return unfit(name, "the index or alias does not exist", "create it with sluice adopt, or list its file in the sink's indices")
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
		return unfit(name, fmt.Sprintf("the alias does not exist, but the index %s-000001 does", name), "give that index the alias, or delete it")
	case d.versions == versions{}:
		if err := m.judge(ctx, name, d); err != nil {
			return err
		}
		return m.adopt(ctx, name, d) // it is empty
	}
	return m.judge(ctx, name, d)
}

// judge returns a SchemeError if the index cannot hold marked documents. An empty
// index can be adopted.
func (m *Marks) judge(ctx context.Context, name string, d *described) error {
	if err := m.fits(name, d); err != nil {
		return err
	}
	switch {
	case d.versions == m.versions() && d.field[m.field] == nil:
		return unfit(name, fmt.Sprintf("its mapping lacks the field %q", m.field), m.toAdopt(name, d))
	case d.versions == m.versions():
		if !m.plain && !d.hides(d.alias(name), m.filter()) {
			return unfit(name, "its alias does not hide tombstones from searches", m.toAdopt(name, d)+", and search by the alias")
		}
		return nil
	case d.versions == versions{}:
		n, err := m.c.Count(ctx, d.index, "")
		if err == nil && n > 0 {
			err = unfit(name, fmt.Sprintf("its documents (%d) are not versioned by sequence", n),
				"write to a new index and backfill it; or "+m.toAdopt(name, d))
		}
		return err
	case d.versions == versions{bySequence, m.field, !m.plain}:
		has, program := "leave tombstones", "deletes documents (forgetDeleted)"
		if !m.plain {
			has, program = "delete documents (forgetDeleted)", "leaves tombstones"
		}
		return unfit(name, fmt.Sprintf("deletions of its items %s, and this program %s", has, program),
			"set the same forgetDeleted in all programs that write to it; or "+m.toAdopt(name, d))
	}
	return unfit(name, fmt.Sprintf("its documents have their marks in the field %q, and this program writes them to %q", d.versions.Field, m.field), "set the same mark in all programs that write to it")
}

// fits returns a SchemeError if the mapping of the index leaves no room for the
// field.
func (m *Marks) fits(name string, d *described) error {
	if !d.source.keeps(m.field) {
		return unfit(name, fmt.Sprintf("its mapping does not store the field %q in _source", m.field), "remove includes from _source, and excludes that match the field")
	}
	if is, ok := d.field[m.field]; ok && !contained(is, map[string]any{"properties": map[string]any{"sequence": map[string]any{"type": "keyword"}, "deleted": map[string]any{"type": "date"}}}) {
		return unfit(name, fmt.Sprintf("its mapping of the field %q does not fit a mark", m.field), "create a new index that maps it as an object, with sequence as keyword and deleted as date")
	}
	return nil
}

// toAdopt says what to do before the index can be adopted, and how.
func (m *Marks) toAdopt(name string, d *described) string {
	if m.needsAlias(name, d) {
		return "create an alias for it, name the alias in the projection, stop all other writers and run sluice adopt --index ALIAS (docs/projection.md)"
	}
	return "stop all other writers and run sluice adopt --index " + name
}

// needsAlias reports whether searches would show tombstones: only an alias hides
// them, and no alias may have the name of an index.
func (m *Marks) needsAlias(name string, d *described) bool {
	return name == d.index && !m.plain && !d.hides("", m.filter())
}

// Adopt prepares an existing index for marked documents. From then on every change
// replaces a document without a mark, so stop all other writers first. It creates an
// index that does not exist.
func (m *Marks) Adopt(ctx context.Context, name string) (created bool, err error) {
	d, err := m.c.describe(ctx, name)
	switch {
	case err != nil:
		return false, err
	case d == nil:
		return true, m.make(ctx, name)
	}
	if err := m.fits(name, d); err != nil {
		return false, err
	}
	return false, m.adopt(ctx, name, d)
}

func (m *Marks) adopt(ctx context.Context, name string, d *described) error {
	if m.needsAlias(name, d) {
		return unfit(name, "searches of an index show its tombstones", m.toAdopt(name, d)+"; or set forgetDeleted")
	}
	meta := maps.Clone(d.meta)
	if meta == nil {
		meta = map[string]json.RawMessage{}
	}
	meta[metaVersions] = m.says()
	mapping := map[string]any{"properties": m.properties(), "_meta": meta}
	if err := m.c.change(ctx, http.MethodPut, "/"+url.PathEscape(d.index)+"/_mapping", mapping); err != nil {
		return fmt.Errorf("opensearch: mapping the field %s of index %s: %w", m.field, d.index, err)
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
	if own, ok := kept["filter"]; ok { // keep it
		add["filter"] = map[string]any{"bool": map[string]any{"filter": []any{own, m.filter()}}}
	}
	if err := m.c.change(ctx, http.MethodPost, "/_aliases", map[string]any{"actions": []any{map[string]any{"add": add}}}); err != nil {
		return fmt.Errorf("opensearch: hiding tombstones behind the alias %s: %w", name, err)
	}
	return nil
}

// make creates the index behind an alias.
func (m *Marks) make(ctx context.Context, name string) error {
	o := IndexOptions{Marks: map[string]*Marks{name: m}}.withDefaults()
	_, err := m.c.makeIndex(ctx, file{name: name}, o, map[string]string{})
	return err
}

func (m *Marks) versions() versions { return versions{bySequence, m.field, m.plain} }

func (m *Marks) says() json.RawMessage {
	text, _ := json.Marshal(m.versions())
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
	maps.Copy(properties, jsonObject(all["properties"]))
	maps.Copy(meta, jsonObject(all["_meta"]))
	meta[metaVersions] = m.says()
	all["properties"], all["_meta"] = properties, meta
	return all
}

// filter hides tombstones.
func (m *Marks) filter() map[string]any {
	return noTombstones(m.field)
}
