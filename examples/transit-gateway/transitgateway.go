// Package transitgateway keeps gateways that are attached to route tables:
// versioned writes, a document of each gateway in a search index, and the gateways
// of a route table.
//
// Writers save a gateway on condition that it still has the version that they
// read. Creation time and version make one number, the fence. It grows with every
// state of the gateway, also across deletion and re-creation. Everything derived
// from the table's stream carries the fence, so that a state never replaces a
// later one.
//
// [New] returns the reads and writes, and [NewRouter] the routes; main runs them
// as a daemon or as a Lambda function.
package transitgateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/effect/message"
	"github.com/sluicehq/sluice/examples/internal/kit"
	"github.com/sluicehq/sluice/handlers/projection"
	"github.com/sluicehq/sluice/router"
)

// Store is the access to the tables, such as sinks/dynamodb.Store.
type Store interface {
	Get(ctx context.Context, table string, key sluice.Item) (sluice.Item, error)
	Query(ctx context.Context, q dynamo.Query) (dynamo.Page, error)
	Write(ctx context.Context, op dynamo.Op) error
	Transact(ctx context.Context, ops ...dynamo.Op) error
}

// DefaultIndex is the index where no other is given.
const DefaultIndex = "tgw"

// Deps are the dependencies of the routes.
type Deps struct {
	Store  Store
	Prefix string // of the tables' names (default none)

	Write func(ctx context.Context, op document.Op) error // of documents
	Index string                                          // or an alias (default DefaultIndex)

	Send func(ctx context.Context, m sluice.Message) error // the way back to the janitor

	Now    func() time.Time // default time.Now
	Logger *slog.Logger     // default slog.Default()
}

// NewRouter returns the routes. All their writes are fenced, or conditional on the
// replaced state. So they accept redriven records.
func NewRouter(d Deps) (*router.Router, error) {
	if d.Store == nil || d.Write == nil || d.Send == nil {
		return nil, errors.New("transitgateway: Deps.Store, Deps.Write and Deps.Send: want all three")
	}
	d.Index = cmp.Or(d.Index, DefaultIndex)
	d.Logger = cmp.Or(d.Logger, slog.Default())
	documents, err := projection.New(d.Write, projection.Options{
		Index: d.Index, ID: "{owner_id}|{tgw_id}", Version: projection.ByFunc(Fence),
	})
	if err != nil {
		return nil, fmt.Errorf("transitgateway: %w", err)
	}
	g := New(d.Store, d.Prefix, d.Now)
	j := janitor{Gateways: g, later: message.Later(d.Send, message.Options{Now: d.Now})}
	r := router.New(router.TypeFrom(router.Func(func(rec *sluice.Record) (string, error) {
		return strings.TrimPrefix(rec.Table, d.Prefix), nil
	})))
	const changes = "tgw#INSERT tgw#MODIFY tgw#REMOVE tgw#SNAPSHOT"
	// A function calls no route after a failing one. OpenSearch comes last, so
	// that the other routes run without it.
	r.Handle(changes, g.onRouteTables, router.Name("route tables"), router.NeedsBoth(), router.Redrive())
	r.Handle("tgw#INSERT tgw#MODIFY", reportBypass(d.Logger), router.Name("bypassed"), router.When(bypassed), router.NeedsBoth(), router.Redrive())
	r.Handle("tgw_name#INSERT", j.onClaim, router.Name("claim"), router.NeedsNew(), router.Redrive())
	r.Handle(claimKind+"#MESSAGE", j.look, router.Name("janitor"), router.Use(message.Hop(d.Send, message.Options{Now: d.Now})))
	r.Handle(changes, documents.Handle, router.Name("document"), router.NeedsBoth(), router.Redrive())
	return r, nil
}

// bypassed reports whether a write bypassed the library: its version does not
// follow the one before. The index may refuse it as old.
func bypassed(rec *sluice.Record) bool {
	now, ok := kit.Number(rec.New, "version")
	if rec.EventName == sluice.Insert {
		return !ok || now != 0
	}
	before, had := kit.Number(rec.Old, "version")
	return !ok || !had || now != before+1
}

// reportBypass names the gateway by the hash of its key, as /lanes of the daemon does:
// an item's values are in no log. The metrics count the records of its route.
func reportBypass(logger *slog.Logger) sluice.Handler {
	return func(ctx context.Context, rec *sluice.Record) error {
		before, _ := kit.Number(rec.Old, "version")
		now, _ := kit.Number(rec.New, "version")
		logger.WarnContext(ctx, "a writer has bypassed the library: the version does not follow the one before",
			"keyHash", fmt.Sprintf("%016x", rec.Keys.Hash()), "before", before, "now", now)
		return nil
	}
}
