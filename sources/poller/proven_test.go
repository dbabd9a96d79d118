package poller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/state"
)

// A store whose calls do not return is told, nothing counts as stored
// meanwhile, and all is made up for when it goes on.
func TestStoreHangs(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, store := newStub(), &deaf{Store: state.NewMemory()}
		a, b := &stubShard{id: "a"}, &stubShard{id: "b"}
		st := s.table("orders", a)
		s.put(a, "k")
		var got sink
		r := start(t, s, got.handle, testOptions(store, "orders"))
		pass(2 * time.Second)
		r.unready("")
		store.hang()
		pass(time.Minute)
		s.put(a, "k")
		for range 60 {
			pass(time.Minute)
			r.unready("state store: checkpoint has not returned since ")
			r.unready("are not stored, so that records come again after a restart")
		}
		s.with(func() { a.closed, st.shards = true, append(st.shards, b) })
		b.parent = "a"
		pass(time.Hour)
		r.unready("table orders: the shards of stream " + stubARN("orders") + " were not listed since ")
		want(t, "handled", got.all(), "a/1 a/2")
		want(t, "stored", stored(t, store.Store, "orders"), "a@1")
		store.goOn()
		s.put(b, "k")
		pass(time.Minute)
		want(t, "handled", got.all(), "a/1 a/2 b/1")
		r.unready("")
		r.mustEnd()
		want(t, "stored", stored(t, store.Store, "orders"), "a@2! b@1")
	})
}

// Wherever in a run the store begins to hang, Run returns within its grace.
// What the store carries out later is never ahead of what was handled.
func TestRunEndsWhileStoreHangs(t *testing.T) {
	for n := range 16 { // the last are made while it stops
		t.Run(fmt.Sprint("call ", n), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s, store := newStub(), &deaf{Store: state.NewMemory()}
				a := &stubShard{id: "a", closed: true}
				b := &stubShard{id: "b", parent: "a"}
				s.table("orders", a, b)
				s.put(a, "k", "k")
				s.put(b, "k")
				var calls atomic.Int32
				o := testOptions(&counting{store, func() {
					if calls.Add(1) == int32(n)+1 {
						store.hang()
					}
				}}, "orders")
				var got sink
				r := start(t, s, got.handle, o)
				pass(10 * time.Second)
				began := time.Now()
				_ = r.end() // with an error, or without
				if took := time.Since(began); took > 25*time.Second {
					t.Errorf("Run returned after %v", took)
				}
				if int(calls.Load()) <= n {
					t.Errorf("%d calls of the store were made", calls.Load())
				}
				store.goOn()
				synctest.Wait()
				handled := got.all()
				for _, p := range strings.Fields(stored(t, store.Store, "orders")) {
					id, at, _ := strings.Cut(strings.TrimSuffix(p, "!"), "@")
					if at != "" && !strings.Contains(handled+" ", id+"/"+at+" ") {
						t.Errorf("stored %s, handled %s", p, handled)
					}
				}
				r = start(t, s, got.handle, testOptions(store, "orders"))
				pass(time.Minute)
				r.unready("")
				r.mustEnd()
				want(t, "stored", stored(t, store.Store, "orders"), "a@2! b@1")
			})
		})
	}
}

// counting is told of calls before they are made.
type counting struct {
	state.Store
	call func()
}

func (c *counting) Start(ctx context.Context, s state.Stream, want state.Start) (state.Start, error) {
	c.call()
	return c.Store.Start(ctx, s, want)
}

func (c *counting) Streams(ctx context.Context, app string) ([]state.Stream, error) {
	c.call()
	return c.Store.Streams(ctx, app)
}

func (c *counting) Shards(ctx context.Context, s state.Stream) ([]state.Shard, error) {
	c.call()
	return c.Store.Shards(ctx, s)
}

func (c *counting) Claim(ctx context.Context, s state.Stream, id, parent, owner string) (state.Shard, error) {
	c.call()
	return c.Store.Claim(ctx, s, id, parent, owner)
}

func (c *counting) Checkpoint(ctx context.Context, cs []state.Checkpoint) []error {
	c.call()
	return c.Store.Checkpoint(ctx, cs)
}

func (c *counting) Release(ctx context.Context, l state.Lease) error {
	c.call()
	return c.Store.Release(ctx, l)
}

func (c *counting) Heartbeat(ctx context.Context, owner string) error {
	c.call()
	return c.Store.Heartbeat(ctx, owner)
}

// A shard that the service lists and denies is not read, whatever else is well.
func TestListedShardIsDenied(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	bubble(t, func(t *testing.T) {
		s := newStub()
		a, b := &stubShard{id: "a"}, &stubShard{id: "b"}
		s.table("orders", a, b)
		s.fail = func(op, shard string) string {
			if op == "GetRecords" && shard == "b" {
				return "ResourceNotFoundException"
			}
			return ""
		}
		var got sink
		o := testOptions(state.NewMemory(), "orders")
		o.BusyInterval, o.IdleInterval, o.CheckpointEvery, o.HeartbeatEvery = 10*time.Second, 10*time.Second, 10*time.Second, 10*time.Second // hours pass
		r := start(t, s, got.handle, o)
		pass(46 * time.Second)
		for range 60 {
			r.unready("table orders shard b: no successful poll since ")
			r.unready("ResourceNotFoundException")
			pass(time.Minute)
		}
		s.with(func() { s.fail = nil })
		s.put(b, "k")
		pass(time.Minute)
		want(t, "handled", got.all(), "b/1")
		r.unready("")
		r.mustEnd()
	})
}

// A page larger than the window, of which nothing is settled, is a watermark
// that stands still, although the flow has not taken all of it.
func TestStallWithinAPage(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStub()
		a := &stubShard{id: "a"}
		s.table("orders", a)
		s.put(a, "k", "l", "m", "n")
		block := make(chan struct{})
		o := testOptions(state.NewMemory(), "orders")
		o.Flow.Window, o.Flow.StuckAfter = 2, time.Hour
		r := start(t, s, func(context.Context, *sluice.Record) error { <-block; return nil }, o)
		pass(4 * time.Minute)
		r.unready("")
		pass(2 * time.Minute)
		r.unready("the watermark has not moved for 6m0s with 4 records waiting")
		close(block)
		pass(time.Minute)
		r.unready("")
		r.mustEnd()
	})
}

// panicking is a log that panics at a line, while it is told to.
type panicking struct {
	slog.Handler
	at atomic.Pointer[string]
}

func (p *panicking) Enabled(context.Context, slog.Level) bool { return true }

func (p *panicking) Handle(_ context.Context, rec slog.Record) error {
	line := rec.Message
	rec.Attrs(func(a slog.Attr) bool { line += " " + a.String(); return true })
	if at := p.at.Load(); at != nil && strings.Contains(line, *at) {
		panic("the log is broken")
	}
	return nil
}

// A panic in what reads a stream is that stream's failure: it is told, begins
// again by itself, and loses nothing; others go on meanwhile.
func TestPanicIsOneStreams(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	for _, c := range []struct {
		line string // at which the log panics
		fail string // operation of the table's stream that fails
		says string // health, while the log panics
	}{
		{"shards listed table=orders", "", "table orders: reading stream " + stubARN("orders") + " failed at "},
		{"shard started table=orders", "", "table orders shard b: no successful poll since "},
		{"shard ended table=orders", "", ""}, // once: it begins again behind that shard
		{"action=dynamodb:DescribeTable table=orders", "DescribeTable", "table orders: looking for its streams failed at "},
		{"action=dynamodb:DescribeStream table=orders", "DescribeStream", "table orders: shards cannot be listed: panic: the log is broken"},
	} {
		t.Run(c.line, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s, store := newStub(), state.NewMemory()
				a, x := &stubShard{id: "a"}, &stubShard{id: "x"}
				idle := &stubShard{id: "i"}
				st := s.table("orders", a, idle)
				s.table("users", x)
				var got sink
				log := &panicking{Handler: slog.DiscardHandler}
				o := testOptions(store, "orders", "users")
				o.BusyInterval, o.IdleInterval = 5*time.Second, 5*time.Second // polls are not what this is about
				o.Logger = slog.New(log)
				r := start(t, s, got.handle, o)
				s.put(a, "k")
				pass(10 * time.Second)
				r.unready("")
				log.at.Store(&c.line)
				if c.fail != "" {
					s.with(func() {
						s.fail = func(op, _ string) string {
							if op == c.fail && (s.last().stream == "" || strings.Contains(s.last().stream, "orders")) {
								return "InternalServerError:500"
							}
							return ""
						}
					})
				} else { // has it say what it says
					b := &stubShard{id: "b", parent: "a"}
					s.put(b, "k")
					s.with(func() { a.closed, st.shards = true, append(st.shards, b) })
				}
				for range 10 {
					s.put(x, "k")
					pass(time.Minute)
				}
				want(t, "handled of the other", got.of("x"), "x/1 x/2 x/3 x/4 x/5 x/6 x/7 x/8 x/9 x/10")
				r.unready(c.says)
				for _, reason := range r.p.NotReady() {
					if strings.Contains(reason, "users") && c.fail != "DescribeTable" {
						t.Errorf("unready of the other: %s", reason)
					}
				}
				log.at.Store(nil)
				s.with(func() { s.fail = nil })
				pass(5 * time.Minute)
				s.put(a, "k")
				s.put(idle, "k")
				pass(5 * time.Minute)
				r.unready("")
				r.mustEnd()
				want(t, "handled of what was read before", got.of("i"), "i/1")
				if c.fail == "" {
					want(t, "handled", strings.Join(unique(got.of("ab")), " "), "a/1 b/1")
				} else {
					want(t, "handled", strings.Join(unique(got.of("ab")), " "), "a/1 a/2")
				}
			})
		})
	}
}

// unique leaves out what was there before.
func unique(handled string) (all []string) {
	seen := make(map[string]bool)
	for _, h := range strings.Fields(handled) {
		if !seen[h] {
			all = append(all, h)
		}
		seen[h] = true
	}
	return all
}

// deafBox is dead letters whose calls do not return.
type deafBox struct {
	*deadletter.Box
	on, hang chan struct{} // closed: it hangs; it goes on
}

func (d deafBox) wait() {
	select {
	case <-d.on:
		<-d.hang
	default:
	}
}

func (d deafBox) Park(ctx context.Context, rec *sluice.Record, f sluice.Failure) error {
	d.wait()
	return d.Box.Park(ctx, rec, f)
}

func (d deafBox) ParkGap(ctx context.Context, g *sluice.Gap) error {
	d.wait()
	return d.Box.ParkGap(ctx, g)
}

func (d deafBox) Gaps(ctx context.Context) ([]sluice.Gap, error) {
	d.wait()
	return d.Box.Gaps(ctx)
}

// Dead letters may be in the state file, too: Run returns within its grace when
// their calls hang, and nothing behind them is stored.
func TestRunEndsWhileDeadLettersHang(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, store := newStub(), state.NewMemory()
		a, b := &stubShard{id: "a"}, &stubShard{id: "b"}
		st := s.enable("orders", a, b)
		s.put(a, "k")
		s.put(b, "k")
		box := deafBox{deadletter.NewBox(store, "sluice"), make(chan struct{}), make(chan struct{})}
		o := testOptions(store, "orders")
		o.Flow.DeadLetter = box
		var refuse atomic.Bool
		r := start(t, s, func(context.Context, *sluice.Record) error {
			if refuse.Load() {
				return sluice.Permanent(errors.New("no"))
			}
			return nil
		}, o)
		pass(10 * time.Second)
		close(box.on)
		refuse.Store(true)
		s.put(a, "k")
		s.with(func() { st.shards = st.shards[:1] }) // a gap of b
		pass(2 * time.Minute)
		r.unready("state store: park gap has not returned since ")
		pass(5 * time.Minute)
		r.unready("table orders shard a: the watermark has not moved for ")
		s.disable(st)
		s.enable("orders") // a gap between the two
		pass(5 * time.Minute)
		r.unready("table orders was not asked for its stream since ")
		began := time.Now()
		_ = r.end()
		if took := time.Since(began); took > 25*time.Second {
			t.Errorf("Run returned after %v", took)
		}
		want(t, "stored", storedOf(t, store, st.arn), "a@1 b@1")
		close(box.hang)
		synctest.Wait()
	})
}
