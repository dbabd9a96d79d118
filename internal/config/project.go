package config

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/handlers/projection"
	"github.com/sluicehq/sluice/internal/keyhash"
	"github.com/sluicehq/sluice/internal/versiontext"
	"github.com/sluicehq/sluice/router"
)

// Project keeps a document for each item.
type Project struct {
	// Sink of a cluster. Default: the only one.
	To string `yaml:"to"`
	// Index or alias, or a template: orders-{region|lower}.
	Index string `yaml:"index" is:"required"`
	// Most names that index may make in a process. Default 100.
	MaxIndices int `yaml:"maxIndices" is:"min=1" default:"100"`
	// Template, such as '{pk}|{sk}'.
	ID string `yaml:"id" is:"required"`
	// Template of the routing.
	Routing string `yaml:"routing"`
	// Hash ids over 512 bytes.
	HashLongIDs bool `yaml:"hashLongIds"`
	// "sequence", "none", or "attribute:<path>": a number or ISO 8601 time that
	// every change raises. "seconds:", "millis:" or "micros:<path>": a number that
	// is a time since 1970. "attribute:<created>,<counter>": a counter that may
	// restart with each item.
	Version string `yaml:"version" is:"required"`
	// Field of the sequence that a document shows, with version: sequence. Default
	// sluice.
	Mark string `yaml:"mark"`
	// Leave no tombstones, with version: sequence. A late record can then restore a
	// document.
	ForgetDeleted bool `yaml:"forgetDeleted"`
	// Expression over new (the item), such as new.status == "published": only these
	// items have documents.
	Only string `yaml:"only"`
	// Take SNAPSHOT records although version is none.
	UnfencedBackfill bool `yaml:"unfencedBackfill"`
	// Paths to write. Default all.
	Include Strings `yaml:"include"`
	// Paths to leave out; wins over include.
	Exclude Strings `yaml:"exclude"`
	// New names of attributes: path to name.
	Rename Texts `yaml:"rename"`
	// Maps whose attributes go into the document: path to prefix.
	Flatten Texts `yaml:"flatten"`
	// Fields before those of the item. A text is a template; "{price}" alone keeps
	// its type.
	Fields Fields `yaml:"fields"`
	// Fields of the document that replaces a deleted one.
	Tombstone Fields `yaml:"tombstone"`
	// Write documents that a change leaves as they were.
	WriteUnchanged bool `yaml:"writeUnchanged"`
}

// versions explains the choices of version.
const versions = "want sequence (the order of the stream; what most want), attribute:<path> (a number or an ISO 8601 time of the item that every change raises; also for what writes the index beside this), seconds:, millis: or micros:<path> (the same, a number that is a time since 1970), attribute:<path>,<counter> (when the item was made, and a number that every change raises and that begins anew with the next item), or none (the last write wins; no backfill beside the stream)"

func (o *Project) check(c *Config, path string, r *Route) {
	d := c.doc
	c.only(path, r, sluice.Insert, sluice.Modify, sluice.Remove, sluice.Snapshot)
	switch clusters := c.ofKind("opensearch"); {
	case o.To != "":
		c.sink(path+".to", o.To, "opensearch")
	case len(clusters) == 0 && !d.bad["sinks"] && !d.badBelow("sinks"):
		d.add(path, "no sink is a cluster; declare one: sinks: {search: {opensearch: {urls: ['https://…']}}}")
	case len(clusters) > 1:
		d.add(path+".to", "it is missing, and several sinks are clusters; want %s", either(clusters))
	}

	if c.readsItem(r) {
		d.add(parent(path)+".when", "it reads the item, and a document of an item that no longer fulfils it would stay as it was; want project.only, which says which items have documents")
	}

	// package projection checks each option.
	good := projection.Options{Index: "x", ID: "{x}", Version: projection.BySequence()}
	try := func(at string, change func(*projection.Options)) {
		one := good
		change(&one)
		_, err := projection.New(nil, one)
		if err != nil && !d.bad[at] {
			d.add(at, "%s", d.detail(at, trim(err)))
		}
	}
	try(path+".index", func(p *projection.Options) { p.Index = cmp.Or(o.Index, p.Index) })
	try(path+".id", func(p *projection.Options) { p.ID = cmp.Or(o.ID, p.ID) })
	try(path+".routing", func(p *projection.Options) { p.Routing = o.Routing })
	for i, p := range o.Include {
		try(d.one(path+".include", i), func(all *projection.Options) { all.Include = []string{p} })
	}
	for i, p := range o.Exclude {
		try(d.one(path+".exclude", i), func(all *projection.Options) { all.Exclude = []string{p} })
	}
	for _, t := range o.Rename {
		try(join(path+".rename", t.Name), func(all *projection.Options) { all.Rename = []projection.Rename{{From: t.Name, To: t.Value}} })
	}
	for _, t := range o.Flatten {
		try(join(path+".flatten", t.Name), func(all *projection.Options) { all.Flatten = []projection.Flatten{{Path: t.Name, Prefix: t.Value}} })
	}
	for name, fields := range map[string]Fields{"fields": o.Fields, "tombstone": o.Tombstone} {
		for _, f := range fields {
			if text, ok := f.Value.(string); ok {
				try(join(join(path, name), f.Name), func(all *projection.Options) { all.First = []projection.Field{projection.Text(f.Name, text)} })
			}
		}
	}
	o.checkVersion(c, path, r)
	if d.badBelow(path) || d.bad[path+"?"] || d.hasBelow(path) {
		return
	}
	// package projection also checks the options together.
	all, err := o.options()
	if err == nil {
		_, err = projection.New(nil, all)
	}
	if err != nil {
		d.add(path, "%s", d.anyDetail(path, trim(err)))
	}
}

// trim removes from an error of package projection the part that Field repeats.
func trim(err error) error { return trimmed{err} }

type trimmed struct{ error }

func (t trimmed) Error() string {
	text := strings.TrimPrefix(t.error.Error(), "projection: ")
	if first, rest, ok := strings.Cut(text, ": "); ok && !strings.ContainsAny(first, " \"") {
		return rest
	}
	return text
}

func (o *Project) checkVersion(c *Config, path string, r *Route) {
	d := c.doc
	at := path + ".version"
	switch _, err := versiontext.Parse(o.Version); {
	case o.Version == "":
	case err != nil:
		d.add(at, "%s is not allowed; %s", d.show(at, o.Version), versions)
	case o.Version == "none":
		if i := slices.IndexFunc(r.On, func(on string) bool { return strings.HasSuffix(on, "#SNAPSHOT") }); i >= 0 && !o.UnfencedBackfill {
			d.add(d.one(parent(path)+".on", i), "a backfill may read an older item than the stream has written, and version none cannot tell: take another version, or stop the writers and set unfencedBackfill")
		}
	}
	if cl := c.Sinks[c.clusterOf(o)].OpenSearch; o.Version == "sequence" && cl != nil && cl.Sign == "aoss" {
		d.add(at, "OpenSearch Serverless keeps no revisions of documents (_seq_no), which version: sequence compares: take a version by attribute")
	}
	if o.UnfencedBackfill && o.Version != "none" && o.Version != "" {
		d.add(path+".unfencedBackfill", "it is for version none")
	}
}

// clusterOf returns the cluster of a projection.
func (c *Config) clusterOf(o *Project) string {
	if all := c.ofKind("opensearch"); o.To == "" && len(all) == 1 {
		return all[0]
	}
	return o.To
}

func (o *Project) build(b *builder, path string, r *Route) (*built, error) {
	cl := b.sinks.cluster(b.c.clusterOf(o))
	p, err := o.options()
	if err != nil {
		return nil, err
	}
	if o.Only != "" {
		if p.Only, err = b.c.itemWhen(path+".only", o.Only); err != nil {
			return nil, err
		}
	}
	p.Metrics = b.s.Metrics
	p.Lost = logLost(b.s.Logger, r.Name)
	p.Current = b.current()
	write, marks := cl.documents(o)
	made := &built{options: []router.Option{router.NeedsBoth()}, late: o.Version != "none"}
	if !strings.Contains(o.Index, "{") {
		if err := cl.claim(o.Index, marks, o); err != nil {
			return nil, b.c.wrong(path+".version", err)
		}
		made.Lacks = func(ctx context.Context, ask bool) error {
			if !ask {
				return nil
			}
			return cl.lacks(ctx, path+".index", o.Index)
		}
	}
	handler, err := projection.New(write, p)
	if err != nil {
		return nil, err
	}
	made.handle = handler.Handle
	made.Projection = &Projected{
		cluster: cl, Projection: handler, Options: p, Client: cl.client, Sink: cl.docs, Write: write, Marks: marks, Store: b.sinks.source.Store,
	}
	made.Explain = func(_ context.Context, rec *sluice.Record) (effects []Effect, err error) {
		ops, err := handler.Project(rec)
		for _, op := range ops {
			effects = append(effects, written(cl.sink, op))
		}
		return effects, err
	}
	return made, nil
}

// current returns a function that reads the item of a record.
func (b *builder) current() func(context.Context, *sluice.Record) (sluice.Item, error) {
	if tables := b.s.Fakes.Tables; tables != nil {
		return func(ctx context.Context, rec *sluice.Record) (sluice.Item, error) {
			return tables.Get(ctx, rec.Table, rec.Keys)
		}
	}
	return b.sinks.source.Current
}

// written returns the effect of op.
func written(sink string, op document.Op) Effect {
	does := fmt.Sprintf("write document %s of %s", op.ID, op.Index)
	if op.Action == document.Delete {
		does = fmt.Sprintf("delete document %s of %s", op.ID, op.Index)
	}
	if op.Routing != "" {
		does += " with the routing " + op.Routing
	}
	switch op.Fence {
	case document.NoFence:
	case document.Exact:
		does += ", unless a later change is there"
	default:
		does += fmt.Sprintf(" as version %d", op.Version)
	}
	return Effect{Does: does, Sink: sink, Target: op.Index, Key: op.ID, Detail: string(op.Body)}
}

// options returns the options of package projection.
func (p *Project) options() (projection.Options, error) {
	o := projection.Options{
		Mark: p.Mark, ForgetDeleted: p.ForgetDeleted, Index: p.Index, MaxIndices: p.MaxIndices, ID: p.ID, Routing: p.Routing, HashLongIDs: p.HashLongIDs,
		UnfencedBackfill: p.UnfencedBackfill, Include: p.Include, Exclude: p.Exclude, WriteUnchanged: p.WriteUnchanged,
	}
	var err error
	if o.Version, err = versiontext.Parse(p.Version); err != nil {
		return o, fmt.Errorf("version is %q: %w", p.Version, err)
	}
	for _, t := range p.Rename {
		o.Rename = append(o.Rename, projection.Rename{From: t.Name, To: t.Value})
	}
	for _, t := range p.Flatten {
		o.Flatten = append(o.Flatten, projection.Flatten{Path: t.Name, Prefix: t.Value})
	}
	if o.First, err = p.Fields.fields("fields"); err != nil {
		return o, err
	}
	o.Tombstone, err = p.Tombstone.fields("tombstone")
	return o, err
}

// fields converts fields for package projection.
func (f Fields) fields(name string) ([]projection.Field, error) {
	var fields []projection.Field
	for _, one := range f {
		source, isText := one.Value.(string)
		if !isText {
			fields = append(fields, projection.Constant(one.Name, one.Value))
			continue
		}
		t, err := projection.ParseTemplate(source)
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %w", name, one.Name, err)
		}
		if path, ok := t.Single(); ok {
			fields = append(fields, projection.Copy(one.Name, path))
		} else {
			fields = append(fields, projection.Text(one.Name, source))
		}
	}
	return fields, nil
}

// logLost returns a function that logs lost changes: one an hour for each reason.
func logLost(logger *slog.Logger, route string) func(*sluice.Record, projection.Loss) {
	reasons := map[projection.Loss]string{
		projection.NotRaised: "a change is not in its document: its version is not above that of the change before it",
		projection.BeganAnew: "an item is not in its document: it was deleted and made again, and its version began anew below that of its deletion",
	}
	hourly := map[projection.Loss]*rate.Sometimes{}
	for why := range reasons {
		hourly[why] = &rate.Sometimes{Interval: time.Hour}
	}
	return func(rec *sluice.Record, why projection.Loss) {
		hourly[why].Do(func() {
			logger.Warn(reasons[why], "route", route, "table", rec.Table, "key", keyhash.Item(rec.Keys),
				"sequence", string(rec.Sequence), "todo", "run sluice audit; docs/projection.md says which version loses none")
		})
	}
}
