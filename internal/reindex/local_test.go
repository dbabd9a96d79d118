//go:build integration

package reindex_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	mathrand "math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/internal/reindex"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/sinks/opensearch"
)

const ttl = 500 * time.Millisecond

// table is one in memory: items by id, with revisions that go on.
type table struct {
	mu    sync.Mutex
	items map[string]int64
	revs  map[string]int64
}

func (t *table) change(id string, deleted bool) document.Op {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.revs[id]++
	op := document.Op{Action: document.Put, ID: id, Fence: document.Newer, Version: t.revs[id]}
	if deleted {
		delete(t.items, id)
		op.Action = document.Delete
		return op
	}
	t.items[id] = op.Version
	op.Body = body(id, op.Version)
	return op
}

func body(id string, rev int64) []byte { return fmt.Appendf(nil, `{"name":%q,"rev":%d}`, id, rev) }

func (t *table) scan(context.Context) iter.Seq2[*sluice.Record, error] {
	return func(yield func(*sluice.Record, error) bool) {
		t.mu.Lock()
		items := maps.Clone(t.items)
		t.mu.Unlock()
		for id, rev := range items {
			it, err := item.Parse(fmt.Appendf(nil, `{"id":{"S":%q},"rev":{"N":"%d"}}`, id, rev))
			if err != nil || !yield(&sluice.Record{EventName: sluice.Snapshot, Keys: it.Only("id"), New: it}, err) {
				return
			}
		}
	}
}

// An index gets a successor with another mapping, under writes by writers that
// learn of it as they do in production; the process dies after each step, by its
// context, and the alias goes back and forth.
func TestReindexRealServer(t *testing.T) {
	localtest.OpenSearch(t, func(t *testing.T, url string) {
		client, err := opensearch.Connect(opensearch.Connection{URLs: []string{url}})
		if err != nil {
			t.Fatal(err)
		}
		cluster := client.Indices()
		sink, err := opensearch.New(client, opensearch.Options{})
		if err != nil {
			t.Fatal(err)
		}
		alias := localtest.Name("re")
		one, two := alias+"-000001", alias+"-000002"
		t.Cleanup(func() {
			ctx := context.WithoutCancel(t.Context())
			for _, index := range []string{one, two} {
				if err := cluster.Delete(ctx, index); err != nil {
					t.Error(err)
				}
			}
		})
		mapping := func(typ string) []byte {
			return []byte(`{"settings":{"number_of_replicas":0,"gc_deletes":"1h"},"mappings":{"properties":{"name":{"type":"` + typ + `"}}}}`)
		}
		if _, err := cluster.Create(t.Context(), one, mapping("text")); err != nil {
			t.Fatal(err)
		}
		if err := cluster.Point(t.Context(), nil, map[string]string{alias: one}); err != nil {
			t.Fatal(err)
		}

		table := &table{items: map[string]int64{}, revs: map[string]int64{}}
		stop := live(t, table, alias, sink.Write, cluster.Behind)
		time.Sleep(100 * time.Millisecond)

		died := errors.New("died")
		r := reindex.Reindex{
			Alias: alias, Cluster: cluster, Get: client.Get, Body: mapping("keyword"), Scan: table.scan, Write: sink.Write,
			Project: func(rec *sluice.Record) ([]document.Op, error) {
				id, _ := rec.New.Lookup("id")
				v, _ := rec.New.Lookup("rev")
				rev, _ := v.Int64()
				return []document.Op{{Action: document.Put, Index: alias, ID: id.Str(), Fence: document.Newer, Version: rev, Body: body(id.Str(), rev)}}, nil
			},
			TTL: ttl, Longest: 5 * time.Second, Settle: 300 * time.Millisecond, Looks: 20,
		}
		// The process dies at its first step, the next one at its second, and so on.
		for at := 1; ; at++ {
			ctx, die := context.WithCancelCause(t.Context())
			n := 0
			r.Step = func(string) {
				if n++; n == at {
					die(died)
				}
			}
			c, err := r.Start(ctx)
			die(nil)
			if err == nil {
				if !c.Equal() || c.Sampled == 0 || at < 4 {
					t.Fatal(at, c)
				}
				break
			}
			if !errors.Is(err, died) && !errors.Is(err, context.Canceled) || at > 10 {
				t.Fatal(err)
			}
		}
		r.Step = nil
		for _, swap := range []func() error{
			func() error { return r.Swap(t.Context(), false) },
			func() error { return r.Rollback(t.Context()) },
			func() error { return r.Swap(t.Context(), false) },
		} {
			if err := swap(); err != nil {
				t.Fatal(err)
			}
		}
		stop()
		check(t, client, cluster, table, one)
		check(t, client, cluster, table, two)

		stop = live(t, table, alias, sink.Write, cluster.Behind)
		if err := r.Finish(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		time.Sleep(ttl)
		stop()
		check(t, client, cluster, table, two)
		if _, found, err := cluster.Meta(t.Context(), one); err != nil || found {
			t.Errorf("the old index is there: %v, %v", found, err)
		}
	})
}

// live changes items by three writers until stop is called.
func live(t *testing.T, table *table, alias string, write func(context.Context, document.Op) error, behind func(context.Context, ...string) (map[string][]string, error)) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for n := range 3 {
		w := reindex.Writer{Write: write, Behind: behind, TTL: ttl}.New()
		wg.Go(func() { // each has items of its own, whose order it keeps
			for ctx.Err() == nil {
				op := table.change(fmt.Sprintf("w%d-%d", n, mathrand.IntN(50)), mathrand.IntN(3) == 0)
				op.Index = alias
				if err := w(context.WithoutCancel(ctx), op); err != nil {
					t.Errorf("writing %s: %v", op.ID, err)
				}
				time.Sleep(time.Duration(mathrand.IntN(10)) * time.Millisecond)
			}
		})
	}
	return func() {
		cancel()
		wg.Wait()
	}
}

func check(t *testing.T, client *opensearch.Client, cluster *opensearch.Indices, table *table, index string) {
	t.Helper()
	if err := cluster.Refresh(t.Context(), index); err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	for d, err := range client.List(t.Context(), index) {
		if err != nil {
			t.Fatal(err)
		}
		got[d.ID] = d.Version
		if string(d.Source) != string(body(d.ID, d.Version)) {
			t.Errorf("%s: %s at version %d", d.ID, d.Source, d.Version)
		}
	}
	if !maps.Equal(got, table.items) {
		t.Errorf("%s holds %v\nwant %v", index, got, table.items)
	}
}
