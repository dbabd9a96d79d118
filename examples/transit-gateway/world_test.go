package transitgateway

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/examples/internal/kit"
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

const owner = "111122223333"

// start is when the gateway of the fixtures was created.
var start = time.UnixMilli(1704164645000).UTC()

// world has the tables in memory, the index, and the janitor's queue.
type world struct {
	*tabletest.World
	*Gateways
	t       *testing.T
	index   *streamtest.Index
	router  *router.Router
	log     strings.Builder
	records []sluice.Record // all that were handled, in that order
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{World: tabletest.NewWorld(start), t: t, index: streamtest.NewIndex()}
	for _, s := range schemas {
		w.Create(s.Name, s.Keys[0], strings.Join(s.Keys[1:], ""))
	}
	w.Gateways = New(w.World, "", w.Now)
	var err error
	w.router, err = NewRouter(Deps{
		Store: w.World, Write: w.index.Write, Send: w.Queue("janitor"), Now: w.Now,
		Logger: slog.New(slog.NewTextHandler(io.MultiWriter(&w.log), nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) put(fixtures ...Fixture) {
	w.t.Helper()
	for _, f := range fixtures {
		if err := w.Put(w.t.Context(), f.Table, f.Item); err != nil {
			w.t.Fatal(err)
		}
	}
}

// run goes on until nothing is left to do by then.
func (w *world) run(d time.Duration) {
	w.t.Helper()
	handle := func(ctx context.Context, rec *sluice.Record) error {
		w.records = append(w.records, *rec)
		return w.router.Dispatch(ctx, rec)
	}
	if err := w.Run(w.t.Context(), handle, w.Now().Add(d)); err != nil {
		w.t.Fatal(err)
	}
	if len(w.Parked) > 0 {
		w.t.Fatal(w.Parked)
	}
}

// inverse is the rows by route table, in short: the live ones, and with their
// fences all of them.
func (w *world) inverse() (live, all string) {
	return summary(w.Items("tgw_by_rtb"))
}

func summary(rows []sluice.Item) (live, all string) {
	var l, a []string
	for _, it := range rows {
		row := kit.Text(it, "rtb_id") + " " + kit.Text(it, "tgw_id")
		fence, _ := kit.Number(it, "src_version")
		dead := ""
		if _, deleted := it.Lookup("deleted"); deleted {
			dead = " deleted"
		} else {
			l = append(l, row)
		}
		a = append(a, fmt.Sprintf("%s %d%s", row, fence, dead))
	}
	return strings.Join(l, ", "), strings.Join(a, ", ")
}

// expected returns the expected documents and inverse rows for the items of a table.
func expected(items []sluice.Item) (docs map[string]string, live []string) {
	docs = make(map[string]string)
	for _, it := range items {
		fence, err := Fence(it)
		if err != nil {
			panic(err)
		}
		docs[kit.Text(it, "owner_id")+"|"+kit.Text(it, "tgw_id")] = fmt.Sprint(fence, " ", string(it.AppendJSON(nil, item.JSON{SortedKeys: true})))
		tables, _ := routeTables(it)
		for _, rtb := range tables {
			live = append(live, rtb+" "+kit.Text(it, "tgw_id"))
		}
	}
	slices.Sort(live)
	return docs, live
}

// shown is a document as expected has it.
func shown(d document.Doc) string {
	it, err := item.FromJSON(d.Source)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(d.Version, " ", string(it.AppendJSON(nil, item.JSON{SortedKeys: true})))
}

func (w *world) gateway(id string) Gateway {
	w.t.Helper()
	g, found, err := w.Gateway(w.t.Context(), owner, id)
	if err != nil || !found {
		w.t.Fatalf("gateway %s: %v, %v", id, found, err)
	}
	return g
}

func (w *world) claimed(name string) string {
	w.t.Helper()
	it, err := w.Get(w.t.Context(), "tgw_name", item.Of(item.String("name_key", owner+"#"+name)))
	if err != nil {
		w.t.Fatal(err)
	}
	return kit.Text(it, "tgw_id")
}

func hub() Gateway {
	return Gateway{OwnerID: owner, ID: "tgw-0a1", State: "pending", Name: "hub", RouteTables: []string{"rtb-1"}}
}

var _ Store = (*tabletest.World)(nil)

var errThrottled = fmt.Errorf("throttled")

// failing lets the nth write fail, before or after it takes effect.
func (w *world) failing(n int, after bool) {
	writes := 0
	w.Fault = func(a bool, _ []dynamo.Op) error {
		if a != after {
			return nil
		}
		if writes++; writes == n {
			return errThrottled
		}
		return nil
	}
}
