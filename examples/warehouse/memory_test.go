package warehouse

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/internal/tabletest"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/streamtest"
)

// A client of OpenSearch keeps connections for its next requests, and has nothing
// to close.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}

// memory is a warehouse on tables in memory. It handles one record at a time, in the
// order of the writes or in a random one.
type memory struct {
	*tabletest.World
	*Warehouse
	t      *testing.T
	router *router.Router
	told   map[string]string // bodies by dedupeKey

	index  []sluice.Item // what the index of builds has, if it lags
	lags   bool
	before func() // called once, before the next transaction
}

func newMemory(t *testing.T) *memory {
	t.Helper()
	m := &memory{World: &tabletest.World{}, t: t, told: make(map[string]string)}
	for _, s := range schemas {
		m.Create(DefaultPrefix+s.Name, s.Keys[0], strings.Join(s.Keys[1:], ""))
	}
	send := func(_ context.Context, msg sluice.Message) error {
		m.told[msg.Attributes["dedupeKey"].Value] = msg.Body
		return nil
	}
	d := Deps{Store: m, Scan: m.page, Send: send, Write: streamtest.NewIndex().Write}
	m.Warehouse = New(d)
	var err error
	if m.router, err = NewRouter(d); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *memory) Query(ctx context.Context, q dynamo.Query) (page dynamo.Page, err error) {
	if q.Index != buildIndex {
		return m.World.Query(ctx, q)
	}
	from := m.index
	if !m.lags {
		from = m.Items(m.table("build"))
	}
	want := item.Of(q.Partition, q.Sort.Key)
	for _, it := range from {
		if want.Equal(it.Only("name", "env")) {
			page.Items = append(page.Items, it.Only(q.Attributes...))
		}
	}
	return page, nil
}

// Write knows sets of strings, too, which tabletest does not.
func (m *memory) Write(ctx context.Context, op dynamo.Op) error {
	for name, v := range op.Values {
		if names, ok := v.(dynamo.Strings); ok && op.Update != "ADD dependents :one" {
			op = op.Value(name, stringSet(names))
		}
	}
	if op.Update != "ADD dependents :one" {
		return m.World.Write(ctx, op)
	}
	it, err := m.Get(ctx, op.Table, op.Key)
	if err != nil {
		return err
	}
	var row struct {
		Dependents []string `dynamodbav:"dependents"`
	}
	if err := it.Decode(&row); err != nil && it.Exists() {
		return err
	}
	names := slices.Compact(slices.Sorted(slices.Values(append(row.Dependents, op.Values[":one"].(dynamo.Strings)...))))
	return m.World.Write(ctx, dynamo.Update(op.Table, op.Key, "SET dependents = :all").Value(":all", stringSet(names)))
}

func stringSet(names []string) item.Value {
	it, err := item.Parse(fmt.Appendf(nil, `{"v":{"SS":["%s"]}}`, strings.Join(names, `","`)))
	if err != nil {
		panic(err)
	}
	v, _ := it.Lookup("v")
	return v
}

func (m *memory) Transact(ctx context.Context, ops ...dynamo.Op) error {
	if f := m.before; f != nil {
		m.before = nil
		f()
	}
	return m.World.Transact(ctx, ops...)
}

// page reads a table by pages.
func (m *memory) page(_ context.Context, table string, limit int, after sluice.Item) (page dynamo.Page, err error) {
	items := m.Items(table)
	if after.Exists() {
		items = items[1+slices.IndexFunc(items, func(it sluice.Item) bool { return it.Only("name").Equal(after) }):]
	}
	if limit > 0 && len(items) > limit {
		items = items[:limit]
		page.Next = items[limit-1].Only("name")
	}
	page.Items = items
	return page, nil
}

func (m *memory) put(table string, items ...sluice.Item) {
	m.t.Helper()
	for _, it := range items {
		if err := m.Put(m.t.Context(), m.table(table), it); err != nil {
			m.t.Fatal(err)
		}
	}
}

func (m *memory) remove(table string, k sluice.Item) {
	m.t.Helper()
	if err := m.World.Write(m.t.Context(), dynamo.Delete(m.table(table), k)); err != nil {
		m.t.Fatal(err)
	}
}

// run handles all records that there are.
func (m *memory) run() {
	m.t.Helper()
	if err := m.Run(m.t.Context(), m.router.Dispatch, m.Now()); err != nil {
		m.t.Fatal(err)
	}
	if len(m.Parked) > 0 {
		m.t.Fatal(m.Parked)
	}
}

// state returns the items of tables without their change numbers, which depend on the
// order.
func (m *memory) state(tables ...string) string {
	var b strings.Builder
	for _, table := range tables {
		for _, it := range m.Items(m.table(table)) {
			fmt.Fprintf(&b, "%s %s\n", table, it.Without("rev", "head_rev").AppendJSON(nil, item.JSON{SortedKeys: true}))
		}
	}
	return b.String()
}

// drawn has the records handled in an order that the seed draws, some twice.
func (m *memory) drawn(seed uint64) { m.Rand = rand.New(rand.NewPCG(seed, 0)) }
