// Package meadowlark makes the documents of an education-data API searchable, and
// watches the references between them.
//
// One table holds documents, such as schools and courses. Package writer writes
// them, so that no document refers to a missing one. The table's stream keeps a
// copy of each document in OpenSearch, in an index per type. A deletion that
// bypasses the writer leaves dangling references: a queue gets a message about
// them, and the rest is cleaned up.
//
// [NewRouter] makes all routes; main runs them as a daemon or as a Lambda
// function.
package meadowlark

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/effect/message"
	"github.com/sluicehq/sluice/examples/meadowlark/writer"
	"github.com/sluicehq/sluice/handlers/projection"
	"github.com/sluicehq/sluice/metrics"
	"github.com/sluicehq/sluice/router"
)

// Deps are the dependencies of the routes.
type Deps struct {
	Store     writer.Store
	Table     string // default writer.DefaultTable
	Resources writer.Resources

	// Write makes a write of a document durable.
	Write       func(ctx context.Context, op document.Op) error
	IndexPrefix string // stands before the names of indices

	Alert func(ctx context.Context, m sluice.Message) error // to who watches over the data
	Check func(ctx context.Context, m sluice.Message) error // to ourselves: a queue that is consumed by these routes

	Now     func() time.Time          // default time.Now
	Dropped func(table, field string) // a document's field with a reserved name; nil: not reported
	Metrics metrics.Meter             // nil: none
	Logger  *slog.Logger              // default slog.Default()
}

// app is shared by the handlers.
type app struct {
	d      Deps
	writer *writer.Writer
	later  func(context.Context, message.Check) error
}

// NewRouter returns the routes. They take records that come twice, late, or from
// the dead letters.
func NewRouter(d Deps) (*router.Router, error) {
	if d.Store == nil || d.Write == nil || d.Alert == nil || d.Check == nil {
		return nil, errors.New("meadowlark: Deps.Store, Write, Alert and Check: want all of them")
	}
	d.Logger = cmp.Or(d.Logger, slog.Default())
	w, err := writer.New(writer.Config{Store: d.Store, Table: d.Table, Resources: d.Resources, Now: d.Now})
	if err != nil {
		return nil, fmt.Errorf("meadowlark: %w", err)
	}
	a := &app{d: d, writer: w, later: message.Later(d.Check, message.Options{Now: d.Now})}
	o := Projection(d.IndexPrefix)
	o.Dropped, o.Metrics = d.Dropped, d.Metrics
	p, err := projection.New(d.Write, o)
	if err != nil {
		return nil, fmt.Errorf("meadowlark: %w", err)
	}
	r := router.New(router.TypeFrom(router.Func(func(rec *sluice.Record) (string, error) {
		return writer.Kind(rec.Keys), nil
	})))
	// A function calls no route after a failing one. OpenSearch comes last, so
	// that the other routes run without it.
	r.Handle("entity#REMOVE", a.removed, router.Name("dangling"), router.NeedsOld(), router.Redrive())
	r.Handle("entity#REMOVE", a.clean, router.Name("clean up"), router.Redrive())
	r.Handle("fref#INSERT", a.referred, router.Name("reference"), router.Redrive())
	r.Handle("fref#REMOVE", a.unreferred, router.Name("last reference"), router.NeedsOld(), router.Redrive())
	r.Handle(checkKind+"#MESSAGE", a.lookAgain, router.Name("look again"),
		router.Use(message.Hop(d.Check, message.Options{Now: d.Now})))
	r.Handle("entity#INSERT entity#MODIFY entity#REMOVE entity#SNAPSHOT", p.Handle, router.Name("document"), router.NeedsBoth(), router.Redrive())
	return r, nil
}
