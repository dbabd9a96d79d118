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

// world is a table of the fake service, named orders. What is handled is told
// by the items' keys.
type world struct {
	*streamtest.Service
	table *streamtest.Table
	store *state.Memory
	names map[string]string // of shards: a, b, …
	got   []string
	n     int
}

func newWorld(t *testing.T) *world {
	w := &world{Service: streamtest.NewService(t), store: state.NewMemory(), names: map[string]string{}}
	w.table = w.CreateTable("orders", streamtest.TableOptions{})
	w.meet(w.table.Shards()[0].ID)
	return w
}

func (w *world) config() aws.Config { return w.Config() }

// meet names a shard.
func (w *world) meet(id string) string {
	w.names[id] = string(rune('a' + len(w.names)))
	return id
}

// open returns the shard that is written to.
func (w *world) open() string {
	shards := w.table.Shards()
	i := slices.IndexFunc(shards, func(s streamtest.ShardInfo) bool { return s.Open })
	return shards[i].ID
}

// put writes n items; each has the shard's name and a number.
func (w *world) put(n int) {
	for range n {
		w.n++
		w.table.Put(map[string]any{"pk": fmt.Sprint(w.names[w.open()], w.n)})
	}
}

func (w *world) roll() { w.meet(w.table.Roll(w.open())) }

func (w *world) handle(_ context.Context, rec *sluice.Record) error {
	pk, _ := rec.Keys.Lookup("pk")
	w.got = append(w.got, pk.Str())
	return nil
}

func (w *world) options() Options {
	o := withBox(w.store, "orders")
	o.Flow.Concurrency = 1
	return o
}

// run runs a poller for d and returns it, ended.
func (w *world) run(t *testing.T, o Options, d time.Duration) *rig {
	t.Helper()
	w.got = nil
	r := start(t, w, w.handle, o)
	pass(d)
	r.mustEnd()
	return r
}

// handled returns what was handled by the last run.
func (w *world) handled() string { return strings.Join(w.got, " ") }

// gaps returns the gaps that are parked, such as "a/-" for all of the shard's
// beginning; sequence numbers are left out.
func (w *world) gaps(t *testing.T) string {
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
