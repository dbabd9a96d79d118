// Package warehouse derives the status of builds from an event log, and keeps the
// newest heads, packages and release lines. Packages and builds can be searched.
//
// A build service appends status events and needs no other knowledge. All other
// data comes from the tables' streams. It is right in any order of arrival,
// because each write either commutes with the others or is conditional on the
// state that it replaces.
//
// [NewRouter] makes all routes; main runs them as a daemon or as a Lambda
// function.
package warehouse

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/examples/internal/kit"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/router"
)

// Deps are the dependencies of the routes.
type Deps struct {
	Store  Store
	Scan   func(ctx context.Context, table string, limit int, after sluice.Item) (dynamo.Page, error) // for Packages alone; see NewScan
	Send   func(ctx context.Context, m sluice.Message) error                                          // to subscribers of builds
	Prefix string                                                                                     // of the tables' names (default "wrhs_")

	Write       func(ctx context.Context, op document.Op) error // of documents
	IndexPrefix string                                          // of the indexes' names (default "wrhs-")
}

// Store is the access of the routes to the tables, such as sinks/dynamodb.Store.
type Store interface {
	Get(ctx context.Context, table string, key sluice.Item) (sluice.Item, error)
	Query(ctx context.Context, q dynamo.Query) (dynamo.Page, error)
	Write(ctx context.Context, op dynamo.Op) error
	Transact(ctx context.Context, ops ...dynamo.Op) error
	Once(ctx context.Context, u dynamo.Unit) (dynamo.Applied, error)
}

// DefaultPrefix begins the tables' names where no other is given.
const DefaultPrefix = "wrhs_"

// Warehouse is the tables of one warehouse. It is safe for concurrent use.
type Warehouse struct{ d Deps }

// New returns the warehouse on its tables.
func New(d Deps) *Warehouse {
	d.Prefix = cmp.Or(d.Prefix, DefaultPrefix)
	return &Warehouse{d}
}

// NewRouter returns the routes. They read before they write, or write under a
// condition or a version, so that they take redriven records.
func NewRouter(d Deps) (*router.Router, error) {
	if d.Store == nil || d.Send == nil || d.Write == nil {
		return nil, errors.New("warehouse: Deps.Store, Deps.Send and Deps.Write: want all three")
	}
	d.IndexPrefix = cmp.Or(d.IndexPrefix, DefaultIndexPrefix)
	packages, builds, err := projections(d)
	if err != nil {
		return nil, fmt.Errorf("warehouse: %w", err)
	}
	w := New(d)
	r := router.New(router.TypeFrom(router.Func(func(rec *sluice.Record) (string, error) {
		return strings.TrimPrefix(rec.Table, w.d.Prefix), nil
	})))
	r.Handle("status_event#INSERT", w.onEvent, router.Name("event"), router.Redrive(),
		router.When(func(rec *sluice.Record) bool { return kit.Text(rec.New, "event_type") != ignored }))
	r.Handle("status_counter#INSERT status_counter#MODIFY", w.onCounted, router.Name("counted"), router.Redrive(),
		router.When(func(rec *sluice.Record) bool { _, marker := rec.New.Lookup("marker"); return !marker }))
	r.Handle("status#INSERT status#MODIFY", w.onCounted, router.Name("total"), router.Redrive(),
		router.Changed("total"))
	r.Handle("status#INSERT status#MODIFY", w.announce, router.Name("announce"), router.Redrive(),
		router.Changed("total", "complete"))
	r.Handle("version#INSERT", w.onVersion, router.Name("package"), router.Redrive())
	r.Handle("release_line#INSERT", w.onReleaseLine, router.Name("release line"), router.Redrive())
	r.Handle("build#*", w.onBuild, router.Name("build head"), router.Redrive())
	r.Handle("package#* package#SNAPSHOT", packages.Handle, router.Name("index packages"), router.NeedsBoth(), router.Redrive())
	r.Handle("build#* build#SNAPSHOT", builds.Handle, router.Name("index builds"), router.NeedsBoth(), router.Redrive())
	return r, nil
}

// All names all tables.
func All(prefix string) []string {
	var names []string
	for _, s := range schemas {
		names = append(names, prefix+s.Name)
	}
	return names
}

// Tables names the tables whose streams the routes read.
func Tables(prefix string) []string { return schemas.Streams(prefix) }

// Types of events.
const (
	queued   = "queued"
	failed   = "error"
	complete = "complete"
	ignored  = "ignored"
)

func (w *Warehouse) table(name string) string { return w.d.Prefix + name }

// change updates an item: to what fields makes of the item as it is. It looks again when
// somebody else has changed one of the attributes with these names meanwhile. fields is nil
// for no change.
func (w *Warehouse) change(ctx context.Context, table string, k sluice.Item, names []string, fields func(it sluice.Item) (map[string]any, error)) error {
	for {
		it, err := w.d.Store.Get(ctx, w.table(table), k)
		if err != nil {
			return err
		}
		f, err := fields(it)
		if err != nil || f == nil {
			return err
		}
		op := kit.Set(dynamo.Update(w.table(table), k, ""), f)
		if err := w.d.Store.Write(ctx, kit.Same(op, it, names...)); !dynamo.IsCondition(err) {
			return err
		}
	}
}

// separator joins the parts of a key.
const separator = "!"

// join makes a key of its parts. A part that holds the separator could make
// the key of something else.
func join(parts ...string) (string, error) {
	for _, p := range parts {
		if p == "" || strings.Contains(p, separator) {
			return "", sluice.Permanent(fmt.Errorf("a part of a key is empty or holds %q", separator))
		}
	}
	return strings.Join(parts, separator), nil
}

func key(value string) sluice.Item { return item.Of(item.String("key", value)) }

// unless is err, but nil when it says that a condition did not hold: another
// write was there first, or later.
func unless(err error) error {
	if dynamo.IsCondition(err) {
		return nil
	}
	return err
}
