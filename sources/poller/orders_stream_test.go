package poller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/state"
	"github.com/sluicehq/sluice/streamtest"
)

// ordersStream is the stream of the fake service's table orders. It names handled
// records by the keys of their items.
type ordersStream struct {
	*streamtest.Service
	table *streamtest.Table
	store *state.Memory
	names map[string]string // of shards: a, b, …
	got   []string
	n     int
}

func newOrdersStream(t *testing.T) *ordersStream {
	w := &ordersStream{Service: streamtest.NewService(t), store: state.NewMemory(), names: map[string]string{}}
	w.table = w.CreateTable("orders", streamtest.TableOptions{})
	w.meet(w.table.Shards()[0].ID)
	return w
}

func (w *ordersStream) config() aws.Config { return w.Config() }

// meet names a shard.
func (w *ordersStream) meet(id string) string {
	w.names[id] = string(rune('a' + len(w.names)))
	return id
}

// open returns the shard that is written to.
func (w *ordersStream) open() string {
	shards := w.table.Shards()
	i := slices.IndexFunc(shards, func(s streamtest.ShardInfo) bool { return s.Open })
	return shards[i].ID
}

// put writes n items; each has the shard's name and a number.
func (w *ordersStream) put(n int) {
	for range n {
		w.n++
		w.table.Put(map[string]any{"pk": fmt.Sprint(w.names[w.open()], w.n)})
	}
}

func (w *ordersStream) roll() { w.meet(w.table.Roll(w.open())) }

func (w *ordersStream) handle(_ context.Context, rec *sluice.Record) error {
	pk, _ := rec.Keys.Lookup("pk")
	w.got = append(w.got, pk.Str())
	return nil
}

func (w *ordersStream) options() Options {
	o := withBox(w.store, "orders")
	o.Flow.Concurrency = 1
	return o
}

// run runs a poller for d and returns it, ended.
func (w *ordersStream) run(t *testing.T, o Options, d time.Duration) *rig {
	t.Helper()
	w.got = nil
	r := start(t, w, w.handle, o)
	pass(d)
	r.mustEnd()
	return r
}

// handled returns the records that the last run handled.
func (w *ordersStream) handled() string { return strings.Join(w.got, " ") }

// gaps returns the gaps that are parked, such as "a/-" for all of the shard's
// beginning; sequence numbers are left out.
func (w *ordersStream) gaps(t *testing.T) string {
	t.Helper()
	all, err := w.options().Flow.DeadLetter.(GapKeeper).Gaps(context.Background())
	if err != nil {
		t.Error(err)
	}
	var out []string
	for _, g := range all {
		s := w.names[g.ShardID]
		if g.After != "" {
			s += " after"
		}
		if g.Before != "" {
			s += " before"
		}
		if g.Gone {
			s += " gone"
		}
		out = append(out, s)
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}
