package config

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/handlers/projection"
	"github.com/sluicehq/sluice/internal/versiontext"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/sinks/opensearch"
)

type writeDocument = func(context.Context, document.Op) error

func always(document.Op) bool { return true }

func (b *builder) project(rt *Route, field string) (*built, error) {
	cl, err := b.sinks.cluster(rt.Project.To, field+".to")
	if err != nil {
		return nil, err
	}
	o, err := rt.Project.options()
	if err != nil {
		return nil, b.c.wrong(field, err)
	}
	if only := rt.Project.Only; only != "" {
		if o.Only, err = b.c.itemWhen(field+".only", only); err != nil {
			return nil, err
		}
	}
	o.Metrics = b.s.Metrics
	o.Lost = (&lostLog{logger: b.s.Logger, route: rt.name(), last: map[projection.Loss]time.Time{}}).lost
	o.Current = b.current()
	index, sequenced := rt.Project.Index, rt.Project.Version == "sequence"
	if sequenced && cl.o.Sign == "aoss" {
		return nil, b.c.wrong(field+".version", errors.New("OpenSearch Serverless keeps no revisions of documents (_seq_no), which version: sequence compares: take a version by attribute"))
	}
	write, err := cl.writer(len(o.Tombstone) > 0 || sequenced && !o.ForgetDeleted)
	if err != nil {
		return nil, b.c.wrong(field, err)
	}
	var marks *opensearch.Marks
	if sequenced {
		marks = cl.indices.Marks(cmp.Or(o.Mark, projection.DefaultMark), o.ForgetDeleted)
		marks.MustExist = cl.o.RequireAlias
	}
	switch {
	case cl.fake != nil:
	case sequenced:
		write = marks.Writer(write)
	default:
		write = cl.indices.Unmarked(write)
	}
	if !strings.Contains(index, "{") {
		if err := cl.claim(index, marks, rt.Project); err != nil {
			return nil, b.c.wrong(field+".version", err)
		}
	}
	p, err := projection.New(write, o)
	if err != nil {
		return nil, b.c.wrong(field, err)
	}
	made := &built{
		handle: p.Handle, options: []router.Option{router.NeedsBoth()}, late: rt.Project.Version != "none",
	}
	made.Projection = &Projected{
		Projection: p, Options: o, Client: cl.client, Sink: cl.docs, Write: write, Marks: marks, Store: b.sinks.store, Types: rt.types(),
	}
	if !strings.Contains(index, "{") {
		made.CheckIndex = func(ctx context.Context) error {
			missing := ""
			if marks == nil || cl.o.RequireAlias { // else it is made
				missing = cl.missing(ctx, index)
			}
			if missing == "" {
				inspect := cl.indices.CheckUnmarked
				if marks != nil {
					inspect = marks.Inspect
				}
				var scheme *opensearch.SchemeError
				if err := inspect(ctx, index); errors.As(err, &scheme) {
					return b.c.wrong(field+".index", scheme)
				}
				return nil
			}
			return b.c.fault(field+".index", "%s", b.c.source().masked(missing))
		}
	}
	made.Explain = func(_ context.Context, rec *sluice.Record) ([]Effect, error) {
		ops, err := p.Project(rec)
		if err != nil {
			return nil, err
		}
		var effects []Effect
		for _, op := range ops {
			effects = append(effects, written(cl.sink, op))
		}
		return effects, nil
	}
	return made, nil
}

// current reads an item as it is now.
func (b *builder) current() func(context.Context, *sluice.Record) (sluice.Item, error) {
	if tables := b.s.Fakes.Tables; tables != nil {
		return func(ctx context.Context, rec *sluice.Record) (sluice.Item, error) {
			return tables.Get(ctx, rec.Table, rec.Keys)
		}
	}
	return b.sinks.store.Current
}

// claim notes how a route versions the documents of an index. All routes of an index
// must do it in the same way.
func (cl *cluster) claim(index string, marks *opensearch.Marks, p *Project) error {
	how := "otherwise"
	if marks != nil {
		how = fmt.Sprintf("sequence, mark %q, forgetDeleted %t", cmp.Or(p.Mark, projection.DefaultMark), p.ForgetDeleted)
	}
	if before, ok := cl.versions[index]; ok && before != how {
		return fmt.Errorf("another route versions the documents of %s in another way: set the same version, mark and forgetDeleted", index)
	}
	cl.versions[index], cl.names[index] = how, marks
	return nil
}

// missing says what becomes of documents for an index or alias that is not there,
// and "" when it is. A cluster that cannot be asked is no matter here.
func (cl *cluster) missing(ctx context.Context, index string) string {
	if cl.o.RequireAlias {
		if behind, err := cl.indices.Behind(ctx, index); err == nil && len(behind[index]) == 0 {
			return fmt.Sprintf("there is no alias %s, and requireAlias writes to no other name: every document waits until there is one", index)
		}
		return ""
	}
	var status *opensearch.StatusError
	err := cl.client.Call(ctx, http.MethodHead, "/"+url.PathEscape(index), nil, nil)
	if errors.As(err, &status) && status.Status == http.StatusNotFound {
		return fmt.Sprintf("there is no index or alias %s: OpenSearch makes an index with the first document, and guesses its mappings; to choose them, name a file in indices of the sink", index)
	}
	return ""
}

// written is the effect of op.
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

// options are those of a projection.
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

// fields are those of a projection.
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
