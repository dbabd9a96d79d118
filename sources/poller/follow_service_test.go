//go:build integration || long

package poller

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/state"
	"github.com/sluicehq/sluice/streamtest"
)

type fake struct{ *streamtest.Service }

func (f fake) config() aws.Config { return f.Config() }

// oracle knows what was written, and judges what is handled.
type oracle struct {
	t     *testing.T
	seed  uint64
	alive func() bool // the process that handles

	mu     sync.Mutex
	tables []*streamtest.Table // of one name, made anew
	known  map[string]int      // changes, by what names them, to their number among those of the item
	counts map[string]int      // changes by item
	seen   map[*streamtest.Table]int
	done   map[string]int // changes by item that were handled
}

func newOracle(t *testing.T, seed uint64) *oracle {
	return &oracle{t: t, seed: seed, known: map[string]int{}, counts: map[string]int{}, seen: map[*streamtest.Table]int{}, done: map[string]int{}}
}

// look takes over what was written.
func (o *oracle) look() {
	for _, tb := range o.tables {
		all := tb.Changes()
		for _, c := range all[o.seen[tb]:] {
			key, _ := c.Keys.Lookup("pk")
			o.counts[key.Str()]++
			o.known[c.StreamARN+string(c.Sequence)] = o.counts[key.Str()]
		}
		o.seen[tb] = len(all)
	}
}

func (o *oracle) handle(ctx context.Context, rec *sluice.Record) error {
	key, _ := rec.Keys.Lookup("pk")
	if strings.HasSuffix(key.Str(), "slow") {
		if err := sleep(ctx, 300*time.Millisecond); err != nil {
			return err
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.alive() {
		return errKilled
	}
	o.look()
	n, ok := o.known[rec.StreamARN+string(rec.Sequence)]
	switch {
	case !ok:
		o.t.Errorf("seed %d: %s %s was never written", o.seed, rec.StreamARN, rec.Sequence)
	case n > o.done[key.Str()]+1:
		o.t.Errorf("seed %d: change %d of item %s was handled before change %d", o.seed, n, key.Str(), o.done[key.Str()]+1)
	}
	o.done[key.Str()] = max(o.done[key.Str()], n)
	return nil
}

func (o *oracle) missing() (all []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.look()
	for key, n := range o.counts {
		if o.done[key] < n {
			all = append(all, fmt.Sprintf("%s: %d of %d", key, o.done[key], n))
		}
	}
	slices.Sort(all)
	return all
}

// Whatever happens to a table, to its shards, to the service and to the
// process, at random: no change of it is lost, and none of an item reordered.
func TestReplacedAtRandom(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	for seed := range uint64(6) {
		bubble(t, func(t *testing.T) { replacedAtRandom(t, seed) })
	}
}

func replacedAtRandom(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	svc := streamtest.NewService(t)
	tb := svc.CreateTable("orders", streamtest.TableOptions{Shards: 2})
	want := newOracle(t, seed)
	want.tables = []*streamtest.Table{tb}
	memory := state.NewMemory()
	m := &mortal{Memory: memory, left: 1 << 30}
	want.alive = func() bool { return !m.killed() }
	o := withBox(m, "orders")
	o.Grace = time.Millisecond
	rg := start(t, fake{svc}, want.handle, o)
	svc.Chaos(streamtest.Chaos{Seed: seed, Errors: .05, Throttles: .05, Hang: .01, Cut: .02, Slow: .05, Empty: .1, Short: .2, Expired: .02,
		Shuffled: .2, Incomplete: .1, Repeated: .1, Stale: .1})
	write := func(n int) {
		for range n {
			want.mu.Lock() // the oracle looks at whole writes
			tb.Put(fmt.Sprintf(`{"pk":{"S":"%d%s"},"n":{"N":"%d"}}`, r.IntN(10), []string{"", "slow"}[r.IntN(2)], r.Uint32()))
			want.mu.Unlock()
			if r.IntN(10) == 0 {
				pass(time.Duration(r.IntN(100)) * time.Millisecond)
			}
		}
	}
	change := func(do func()) {
		want.mu.Lock()
		defer want.mu.Unlock()
		do()
	}
	write(20)
	for range 12 {
		switch r.IntN(6) {
		case 0, 1:
			change(tb.DisableStream)
			pass(time.Duration(r.IntN(3000)) * time.Millisecond)
			change(func() { tb.EnableStream("") })
		case 2:
			change(func() { svc.DeleteTable("orders") })
			pass(time.Duration(r.IntN(30)) * time.Second)
			change(func() {
				tb = svc.CreateTable("orders", streamtest.TableOptions{})
				want.tables = append(want.tables, tb)
			})
		case 3:
			for _, sh := range tb.Shards() {
				if sh.Open {
					change(func() { tb.Split(sh.ID) })
					break
				}
			}
		default:
			change(func() {
				m.mu.Lock()
				m.dead = true
				m.mu.Unlock()
			})
			_ = rg.end()
			memory.Close()
			pass(time.Duration(r.IntN(20)) * time.Second)
			change(func() { m = &mortal{Memory: memory, left: 1 << 30} })
			o = withBox(m, "orders")
			o.Grace, o.Start = time.Millisecond, Latest
			for {
				rg = start(t, fake{svc}, want.handle, o)
				pass(10 * time.Second)
				select {
				case err := <-rg.done: // the service was too bad at the start
					if err == nil {
						t.Fatal("it ended")
					}
					continue
				default:
				}
				break
			}
		}
		write(r.IntN(40))
		pass(time.Duration(r.IntN(20_000)) * time.Millisecond)
	}
	svc.Chaos(streamtest.Chaos{})
	pass(15 * time.Minute)
	if lost := want.missing(); len(lost) > 0 {
		t.Errorf("seed %d: not handled: %v", seed, lost)
	}
	rg.acknowledge()
	rg.unready("")
	rg.mustEnd()
}
