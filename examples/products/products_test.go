package products

import (
	"context"
	"encoding/json"
	"reflect"
	"testing"

	"go.uber.org/goleak"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/streamtest"
)

// Clients keep connections for the next request.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}

func load(t *testing.T, env map[string]string) *config.Config {
	t.Helper()
	c, err := config.Load("sluice.yaml", func(name string) (string, bool) { v, ok := env[name]; return v, ok })
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// noTables stands in for tables that no route of the file asks for.
type noTables struct{ config.Tables }

var (
	before = map[string]any{"sku": "p-1", "entityType": "product", "name": "Kettle", "price": 29, "version": 1, "cost": 11}
	after  = map[string]any{"sku": "p-1", "entityType": "product", "name": "Kettle", "price": 25, "version": 2, "cost": 11}
)

// The test runs the file without a server, and records its effects.
func TestFile(t *testing.T) {
	index := streamtest.NewIndex()
	var sent []string
	app, err := load(t, nil).Build(t.Context(), config.Setup{Fakes: config.Fakes{
		Tables: noTables{},
		Send: func(_ context.Context, queue string, m sluice.Message) error {
			sent = append(sent, queue+" "+m.Body)
			return nil
		},
		Write: func(ctx context.Context, _ string, op document.Op) error { return index.Write(ctx, op) },
	}})
	if err != nil {
		t.Fatal(err)
	}
	key := streamtest.WithKeys("sku")
	result := streamtest.Run(t.Context(), app.Router,
		streamtest.Insert("products", before, key), streamtest.Modify("products", before, after, key), streamtest.Snapshot("products", before, key))
	if result.Settled != 3 {
		t.Fatal(result)
	}
	doc := index.Get(document.Ref{Index: "products", ID: "p-1"})
	if doc.Version != 2 || !same(doc.Source, `{"sku":"p-1","name":"Kettle","price":25,"version":2}`) {
		t.Errorf("%+v %s", doc, doc.Source)
	}
	if len(sent) != 1 || sent[0] != `prices {"sku":"p-1","name":"Kettle","from":29,"to":25}` {
		t.Errorf("%q", sent)
	}
	gone := streamtest.Run(t.Context(), app.Router, streamtest.Remove("products", after, key))
	if doc := index.Get(document.Ref{Index: "products", ID: "p-1"}); doc.Found || gone.Settled != 1 || len(sent) != 1 {
		t.Errorf("%+v %v %q", doc, gone, sent)
	}
}

func same(a []byte, b string) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal([]byte(b), &y) == nil && reflect.DeepEqual(x, y)
}
