//go:build integration

package warehouse

import (
	"context"
	"fmt"
	randv2 "math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	awsdynamodb "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/examples/internal/kit"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/sinks/dynamodb"
	"github.com/sluicehq/sluice/sources/poller"
	"github.com/sluicehq/sluice/state"
	"github.com/sluicehq/sluice/streamtest"
)

// world is a warehouse on tables of its own, read by a poller that hands some
// records to the routes more than once.
type world struct {
	*Warehouse
	t     *testing.T
	store *dynamodb.Store

	handled atomic.Int64 // records, by each of their routes

	mu   sync.Mutex
	told map[string][]string // bodies by dedupeKey
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldOn(t, streamtest.NewIndex().Write, "")
}

// newWorldOn has its documents written to indexes with that prefix.
func newWorldOn(t *testing.T, write func(context.Context, document.Op) error, indexPrefix string) *world {
	t.Helper()
	cfg := localtest.DynamoDB(t)
	prefix := localtest.Name("wrhs") + "_"
	if err := Create(t.Context(), cfg, prefix); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		db := awsdynamodb.NewFromConfig(cfg)
		for _, s := range schemas {
			name := prefix + s.Name
			if _, err := db.DeleteTable(context.Background(), &awsdynamodb.DeleteTableInput{TableName: &name}); err != nil {
				t.Error(err)
			}
		}
	})
	store, err := dynamodb.New(cfg, dynamodb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, store: store, told: make(map[string][]string)}
	d := Deps{Store: store, Prefix: prefix, Write: write, IndexPrefix: indexPrefix, Send: func(_ context.Context, m sluice.Message) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		k := m.Attributes["dedupeKey"].Value
		w.told[k] = append(w.told[k], m.Body)
		return nil
	}}
	w.Warehouse = New(d)
	r, err := NewRouter(d)
	if err != nil {
		t.Fatal(err)
	}
	var streams []poller.Stream
	for _, name := range Tables(prefix) {
		streams = append(streams, poller.Stream{Table: name})
	}
	p, err := poller.New(cfg, w.again(r), poller.Options{
		Application: "test", Streams: streams, Store: state.NewMemory(), Start: poller.TrimHorizon,
		// DynamoDB Local makes one write at a time. With many that wait it is busy
		// with those alone, and lets single ones wait for minutes.
		Flow: flow.Options{Concurrency: 8},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return w
}

// again calls every third handler a second time, as a redelivery would.
func (w *world) again(m sluice.Matcher) sluice.Matcher {
	for _, rt := range m.Routes() {
		h := rt.Handler
		rt.Handler = func(ctx context.Context, rec *sluice.Record) error {
			err := h(ctx, rec)
			if err == nil && randv2.IntN(3) == 0 {
				err = h(ctx, rec)
			}
			if err == nil {
				w.handled.Add(1)
			}
			return err
		}
	}
	return m
}

func (w *world) put(table string, items ...sluice.Item) {
	w.t.Helper()
	for _, err := range w.store.PutAll(w.t.Context(), w.table(table), items) {
		if err != nil {
			w.t.Error(err)
		}
	}
}

// become waits until wrong, which describes a missing effect, returns "". Other records
// may be handled first.
func (w *world) become(what string, wrong func() string) {
	w.t.Helper()
	localtest.Await(w.t, what, func() string {
		handled := w.handled.Load()
		if s := wrong(); s != "" {
			return fmt.Sprintf("%s; %d handled", s, handled)
		}
		return ""
	})
}

// renamed is a fixture as one of another package.
func renamed(f Fixture, pkg string) sluice.Item {
	it, err := item.Parse([]byte(strings.ReplaceAll(string(f.Item.Raw()), "whatever", pkg)))
	if err != nil {
		panic(err)
	}
	return it
}

func TestOrdersOfEvents(t *testing.T) { everyOrder(t, 72) }

// Every order in which the six events of a build can arrive leads to the same;
// one in so many is tried.
// The last event arrives once all others have: it is late, as it belongs to the
// build before.
func everyOrder(t *testing.T, nth int) {
	w := newWorld(t)
	fx := Fixtures()
	head, events, late := fx[0], fx[1:7], fx[7]
	orders := slices.Collect(permutations(len(events)))
	if len(orders) != 720 {
		t.Fatalf("%d orders", len(orders))
	}
	randv2.Shuffle(len(orders), func(i, j int) { orders[i], orders[j] = orders[j], orders[i] })
	orders = orders[:len(orders)/nth]
	name := func(order []int) string {
		return "p" + strings.ReplaceAll(strings.Trim(fmt.Sprint(order), "[]"), " ", "")
	}
	// Write the first events of all builds, then the second ones, and so on. Each event
	// is one request, and their records are handled at the same time.
	var wg sync.WaitGroup
	for some := range slices.Chunk(orders, 25) {
		wg.Go(func() {
			column := func(f func(order []int) Fixture) (items []sluice.Item) {
				for _, order := range some {
					items = append(items, renamed(f(order), name(order)))
				}
				return items
			}
			w.put(head.Table, column(func([]int) Fixture { return head })...)
			for i := range events {
				w.put(late.Table, column(func(order []int) Fixture { return events[order[i]] })...)
			}
			w.put(late.Table, column(func([]int) Fixture { return late })...)
		})
	}
	wg.Wait()
	for _, order := range orders {
		pkg := name(order)
		w.become(pkg, func() string { return w.wrong(pkg) })
	}
}

// wrong describes a mistake of a complete build.
func (w *world) wrong(pkg string) string {
	ctx := w.t.Context()
	s, _, err := w.Status(ctx, pkg, "dev", "1.0.0")
	if err != nil {
		return err.Error()
	}
	k := pkg + "!dev!1.0.0"
	if want := (Status{Key: k, Package: pkg, Env: "dev", Version: "1.0.0", Previous: "0.9.0", Total: 2, Complete: true,
		Created: "2026-01-31T10:02:00.000Z", Updated: "2026-01-31T10:12:00.000Z"}); s != want {
		return fmt.Sprintf("status %+v", s)
	}
	counter, err := w.store.Get(ctx, w.table("status_counter"), key(k))
	if got, want := string(counter.AppendJSON(nil, item.JSON{SortedKeys: true})), `{"count":2,"env":"dev","key":"`+k+`","pkg":"`+pkg+`","version":"1.0.0"}`; got != want || err != nil {
		return fmt.Sprintf("counter %s, %v", got, err)
	}
	for _, locale := range []string{"en-US", "en-GB"} {
		if it, err := w.store.Get(ctx, w.table("status_counter"), key(k+"!"+locale)); !yes(it, "marker") || err != nil {
			return fmt.Sprintf("no marker of %s, %v", locale, err)
		}
	}
	h, _, err := w.StatusHead(ctx, pkg, "dev")
	if want := (StatusHead{Key: pkg + "!dev", Package: pkg, Env: "dev", Version: "1.0.0", Previous: "0.9.0", Total: 2,
		Created: "2026-01-31T10:06:00.000Z", Updated: "2026-01-31T10:06:00.000Z"}); h != want || err != nil {
		return fmt.Sprintf("head %+v, %v", h, err)
	}
	if old, found, err := w.Status(ctx, pkg, "dev", "0.9.0"); !found || err != nil || old.Complete || old.Total != 0 {
		return fmt.Sprintf("the build before: %+v, %v", old, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for dedupe, want := range map[string]string{
		"build_started:" + k:   `{"event":"build_started","pkg":"` + pkg + `","version":"1.0.0","env":"dev","total":2}`,
		"build_completed:" + k: `{"event":"build_completed","pkg":"` + pkg + `","version":"1.0.0","env":"dev","repository":{}}`,
	} {
		if got := slices.Compact(slices.Clone(w.told[dedupe])); len(got) != 1 || got[0] != want {
			return fmt.Sprintf("told %q, want %s", got, want)
		}
	}
	return ""
}

// Builds that are queued out of order know who was before them.
func TestHeadsOutOfOrder(t *testing.T) {
	w := newWorld(t)
	fx := Fixtures()
	queued := func(pkg, event, version string) sluice.Item {
		return item.Of(item.String("key", pkg+"!dev!"+version), item.String("event_id", event), item.String("pkg", pkg),
			item.String("env", "dev"), item.String("version", version), item.String("event_type", "queued"), item.Number("total", "1"))
	}
	for pkg, order := range map[string][][2]string{
		"ab": {{ids[9], "2.0.0"}, {ids[8], "1.5.0"}},
		"ba": {{ids[8], "1.5.0"}, {ids[9], "2.0.0"}},
	} {
		w.put(fx[0].Table, renamed(fx[0], pkg))
		w.put("status_event", renamed(fx[3], pkg)) // 1.0.0, queued after 0.9.0 and before both
		for _, e := range order {
			w.put("status_event", queued(pkg, e[0], e[1]))
		}
		w.become(pkg, func() string {
			h, err := w.store.Get(t.Context(), w.table("status_head"), key(pkg+"!dev"))
			got := fmt.Sprintf("head %s after %s, %v", kit.Text(h, "version"), kit.Text(h, "previous_version"), err)
			for _, v := range []string{"1.0.0", "1.5.0", "2.0.0"} {
				s, _, err := w.Status(t.Context(), pkg, "dev", v)
				got += fmt.Sprintf("; %s after %s, %v", v, s.Previous, err)
			}
			if got == "head 2.0.0 after 1.5.0, <nil>; 1.0.0 after 0.9.0, <nil>; 1.5.0 after 1.0.0, <nil>; 2.0.0 after 1.5.0, <nil>" {
				return ""
			}
			return got
		})
	}
}

func TestPackagesLinesAndHeads(t *testing.T) {
	fx := Fixtures()
	build, version, lines := fx[8], fx[9], fx[10:12]
	older := item.Of(item.String("name", "email"), item.String("version", "2.0.10"),
		item.String("value", `{"name":"email","version":"2.0.10","description":"Old","dependencies":{"abacus":"1"}}`))
	for _, reverse := range []bool{false, true} {
		t.Run(fmt.Sprint("reversed ", reverse), func(t *testing.T) {
			w := newWorld(t)
			versions, ls := []sluice.Item{older, version.Item}, []sluice.Item{lines[0].Item, lines[1].Item}
			if reverse {
				slices.Reverse(versions)
				slices.Reverse(ls)
			}
			for i := range 2 {
				w.put("version", versions[i])
				w.put("release_line", ls[i])
			}
			w.put("build", build.Item)
			w.become("all", func() string {
				p, err := w.store.Get(t.Context(), w.table("package"), item.Of(item.String("name", "email")))
				got := fmt.Sprintf("package %s, %v", p.AppendJSON(nil, item.JSON{SortedKeys: true}), err)
				for _, d := range []string{"button", "layout", "abacus"} {
					it, err := w.store.Get(t.Context(), w.table("dependent"), item.Of(item.String("name", d)))
					got += fmt.Sprintf("; %s %s, %v", d, it.AppendJSON(nil, item.JSON{SortedKeys: true}), err)
				}
				of, err := w.store.Get(t.Context(), w.table("dependent_of"), item.Of(item.String("pkg", "email")))
				got += fmt.Sprintf("; of %s, %v", kit.Text(of, "dependent_of"), err)
				l, err := w.store.Get(t.Context(), w.table("release_line_head"), item.Of(item.String("pkg", "email")))
				got += fmt.Sprintf("; line %s after %s, %v", kit.Text(l, "version"), kit.Text(l, "previous_version"), err)
				b, err := w.store.Get(t.Context(), w.table("build_head"), item.Of(item.String("key", "email!prod"), item.String("locale", "en-US")))
				got += fmt.Sprintf("; build %s after %s, %v", kit.Text(b, "build_id"), kit.Text(b, "previous_build_id"), err)
				want := `package {"dependencies":{"button":"^1.0.0","layout":"^3.0.0"},"description":"Mail","name":"email","version":"2.1.0"}, <nil>` +
					`; button {"dependents":["email"],"name":"button"}, <nil>; layout {"dependents":["email"],"name":"layout"}, <nil>; abacus {"dependents":["email"],"name":"abacus"}, <nil>` +
					"; of button, <nil>; line 2.1.0 after 2.0.0, <nil>; build email!prod!2.1!en-US after email!prod!2.0!en-US, <nil>"
				if got == want {
					return ""
				}
				return got
			})
		})
	}
}
