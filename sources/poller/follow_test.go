package poller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/state"
)

// filled returns a shard with n records of one item.
func (s *stub) filled(id string, n int) *stubShard {
	sh := &stubShard{id: id}
	s.put(sh, slices.Repeat([]string{"k"}, n)...)
	return sh
}

// storedStart returns where the stream was begun, or "".
func storedStart(t *testing.T, s state.Store, arn string) string {
	t.Helper()
	start, err := s.Start(t.Context(), state.Stream{Application: "sluice", ARN: arn}, state.Start{})
	if err != nil && !errors.Is(err, state.ErrNoStart) {
		t.Fatal(err)
	}
	return start.Position
}

// gate holds handlers of one shard until it is opened.
type gate struct {
	sink
	shard string
	open  chan struct{}
}

func (g *gate) handle(ctx context.Context, rec *sluice.Record) error {
	if rec.ShardID == g.shard {
		select {
		case <-g.open:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return g.sink.handle(ctx, rec)
}

// A stream that is disabled and enabled again is followed: the new one from
// its beginning, whatever the start was, and not before the old one is settled
// and that is stored. The old one is left alone then.
func TestAReenabledStreamIsFollowed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, store := newStub(), state.NewMemory()
		a := s.filled("a", 1)
		old := s.enable("orders", a)
		pass(time.Hour)
		got := &gate{shard: "a", open: make(chan struct{})}
		o := latestOptions(store)
		r := start(t, s, got.handle, o)
		s.put(a, "k", "k")
		pass(time.Second)
		s.disable(old)
		pass(time.Minute)
		r.unready("is DISABLED: nothing new will arrive")
		renewed := s.enable("orders", s.filled("b", 2))
		pass(5 * time.Minute)
		want(t, "handled before the old one is settled", got.all(), "")
		want(t, "start of the new one", storedStart(t, store, renewed.arn), "")
		r.unready("was replaced by " + renewed.arn)
		close(got.open)
		pass(10 * time.Second)
		want(t, "handled", got.all(), "a/2 a/3 b/1 b/2")
		want(t, "start of the new one", storedStart(t, store, renewed.arn), TrimHorizon)
		r.acknowledge()
		r.unready("")
		want(t, "hooks", r.log(), "started a, replaced, finished a, started b")

		calls := s.describes(old.arn)
		pass(time.Hour)
		if n := s.describes(old.arn) - calls; n > 0 {
			t.Errorf("%d calls about the stream that is over", n)
		}
		if n := s.count("DescribeTable", ""); n > 75 {
			t.Errorf("%d DescribeTable calls in 66 minutes", n)
		}
		r.mustEnd()
		want(t, "old positions", storedOf(t, store, old.arn), "a@3!")
		want(t, "new positions", storedOf(t, store, renewed.arn), "b@2")
	})
}

type writer func(line string)

func (w writer) Write(line []byte) (int, error) { w(string(line)); return len(line), nil }

// A table that is deleted is told as gone, and followed when it comes back.
// What its stream still had when the service forgot it is a gap.
func TestARecreatedTableIsFollowed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, store := newStub(), state.NewMemory()
		a := s.filled("a", 2)
		old := s.enable("orders", a)
		var got sink
		o := testOptions(store, "orders")
		var told atomic.Int32
		o.Logger = slog.New(slog.NewTextHandler(writer(func(line string) {
			if strings.Contains(line, describeTable) {
				told.Add(1)
			}
		}), nil))
		r := start(t, s, got.handle, o)
		pass(time.Second)
		s.with(func() { delete(s.tables, "orders"); delete(s.streams, old.arn) })
		pass(2 * time.Minute)
		r.unready("table orders is gone")
		calls := s.count("DescribeTable", "")
		pass(time.Hour)
		if n := s.count("DescribeTable", "") - calls; n > 400 {
			t.Errorf("%d DescribeTable calls in an hour", n)
		}
		want(t, "lines in the log", fmt.Sprint(told.Load()), "1")
		want(t, "positions while nobody knows better", storedOf(t, store, old.arn), "a@2")
		s.enable("orders", s.filled("b", 2))
		pass(time.Minute)
		want(t, "handled", got.all(), "a/1 a/2 b/1 b/2")
		want(t, "old positions", storedOf(t, store, old.arn), "a@2!")
		if !strings.Contains(r.log(), "gap a 2") {
			t.Errorf("hooks: %s", r.log())
		}
		r.acknowledge()
		r.unready("")
		r.mustEnd()
	})
}

func TestDisabledAndNotEnabledAgain(t *testing.T) {
	for _, latest := range []string{"the old one", "none"} {
		t.Run("the table says "+latest, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := newStub()
				a := s.filled("a", 1)
				old := s.enable("orders", a)
				var got sink
				r := start(t, s, got.handle, testOptions(state.NewMemory(), "orders"))
				s.put(a, "k")
				s.disable(old)
				says := "is DISABLED: nothing new will arrive"
				if latest == "none" {
					s.with(func() { s.tables["orders"] = "" })
					says = "table orders has no stream since"
				}
				pass(2 * time.Minute)
				want(t, "handled", got.all(), "a/1 a/2")
				r.unready(says)
				s.with(func() { delete(s.streams, old.arn) }) // a day later
				pass(2 * time.Minute)
				s.enable("orders", s.filled("b", 1))
				pass(time.Minute)
				want(t, "handled", got.all(), "a/1 a/2 b/1")
				r.mustEnd()
			})
		})
	}
}

// Whoever names an ARN means that stream.
func TestAStreamNamedByARNIsNotFollowed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStub()
		old := s.enable("orders", s.filled("a", 1))
		var got sink
		o := testOptions(state.NewMemory())
		o.Streams = []Stream{{ARN: old.arn}}
		r := start(t, s, got.handle, o)
		pass(time.Second)
		s.disable(old)
		s.enable("orders", s.filled("b", 1))
		pass(time.Hour)
		want(t, "handled", got.all(), "a/1")
		r.unready("was named by its ARN")
		if n := s.count("DescribeTable", ""); n > 0 {
			t.Errorf("%d DescribeTable calls", n)
		}
		r.mustEnd()
	})
}

// needy is a matcher whose route needs both images.
func needy(h sluice.Handler) one { m := matcher(h); m.route.Needs = item.BothImages; return m }

// A new stream whose records lack what a route needs is not read; the one
// after it is.
func TestANewStreamOfTheWrongViewType(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, store := newStub(), state.NewMemory()
		old := s.enable("orders", s.filled("a", 1))
		other := s.filled("o", 1)
		s.enable("users", other)
		var got sink
		r := startMatching(t, s, needy(got.handle), testOptions(store, "orders", "users"))
		pass(time.Second)
		s.disable(old)
		wrong := s.enable("orders", s.filled("b", 1))
		s.with(func() { wrong.view = "KEYS_ONLY" })
		pass(2 * time.Minute)
		r.acknowledge()
		r.unready(`its view type is KEYS_ONLY, but route "test" needs NEW_AND_OLD_IMAGES`)
		want(t, "start of the wrong one", storedStart(t, store, wrong.arn), "")
		r.mustEnd()
		// A restart is no mistake to be told at the start: the other table works.
		r = startMatching(t, s, needy(got.handle), testOptions(store, "orders", "users"))
		s.put(other, "k")
		pass(2 * time.Minute)
		r.acknowledge()
		r.unready("its view type is KEYS_ONLY")
		s.disable(wrong)
		s.enable("orders", s.filled("c", 2))
		pass(2 * time.Minute)
		r.unready("was replaced by")
		r.acknowledge()
		r.unready("")
		want(t, "handled", got.of("abc"), "a/1 c/1 c/2")
		want(t, "handled of the other table", got.of("o"), "o/1 o/2")
		r.mustEnd()
	})
}

// Nothing that one table goes through disturbs another.
func TestFollowingDisturbsNoOtherTable(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStub()
		old := s.enable("orders", s.filled("a", 1))
		u := s.filled("u", 1)
		s.enable("users", u)
		var got sink
		r := start(t, s, got.handle, atDefaultPace(testOptions(state.NewMemory(), "orders", "users")))
		pass(time.Second)
		n := 1
		for _, step := range []func(){
			func() { s.disable(old) },
			func() { s.with(func() { delete(s.tables, "orders"); delete(s.streams, old.arn) }) },
			func() { s.enable("orders", s.filled("b", 1)) },
			func() { s.with(func() { s.fail = nil }) },
		} {
			step()
			for range 30 {
				s.put(u, "k")
				n++
				pass(250 * time.Millisecond)
				if last := fmt.Sprintf("u/%d", n); !strings.Contains(got.all()+" ", last+" ") {
					t.Fatalf("%s was not handled at once: %s", last, got.all())
				}
			}
		}
		if log := r.log(); strings.Count(log, " u") != 1 {
			t.Errorf("hooks: %s", log)
		}
		r.mustEnd()
	})
}

// A last shard of the old stream that listings show late comes before the new
// stream all the same. A listing that contradicts earlier ones tells nothing.
func TestAShardListedLateBeforeANewStream(t *testing.T) {
	for how, late := range map[string]time.Duration{"the shard is not shown": 2 * time.Second, "nor is its parent": 5 * time.Second, "its parent is open": 5 * time.Second} {
		t.Run(how, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := newStub()
				a := s.filled("a", 1)
				old := s.enable("orders", a)
				var got sink
				r := start(t, s, got.handle, testOptions(state.NewMemory(), "orders"))
				pass(30 * time.Second)
				a2 := s.filled("a2", 1)
				a2.parent = "a"
				s.with(func() { old.shards, old.hidden["a2"] = append(old.shards, a2), true })
				s.disable(old)
				pass(time.Minute) // it is known to be closed
				s.enable("orders", s.filled("b", 1))
				s.with(func() {
					old.hidden["a"] = how == "nor is its parent"
					a.closed = how != "its parent is open"
				})
				for !strings.Contains(r.log(), "replaced") {
					pass(50 * time.Millisecond)
				}
				pass(late)
				want(t, "handled", got.all(), "a/1")
				s.with(func() { clear(old.hidden); a.closed = true })
				pass(time.Minute)
				want(t, "handled", got.all(), "a/1 a2/1 b/1")
				r.mustEnd()
			})
		})
	}
}

// What the service answers when it is asked for the table's stream may be old,
// or nothing at all.
func TestBadAnswersAboutTheTable(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	for _, c := range []struct {
		name string
		fail string // DescribeTable
		list string // ListStreams
		says string // health, after two minutes of it
		want string
	}{
		{"not allowed", "AccessDeniedException", "", "whether its stream was replaced cannot be told: dynamodb:DescribeTable", "a/1 b/1 c/1"},
		{"unavailable", "ServiceUnavailable:503", "", "cannot be told", "a/1 b/1 c/1"},
		{"throttled", "ThrottlingException", "", "cannot be told", "a/1 b/1 c/1"},
		{"hangs", "hang", "", "cannot be told", "a/1 b/1 c/1"},
		{"listing not allowed", "", "AccessDeniedException", "was replaced by", "a/1 c/1"},
		{"listing unknown", "", "UnknownOperationException", "was replaced by", "a/1 c/1"},
		{"listing with credentials that expire", "", "ExpiredTokenException", "cannot be told", "a/1 b/1 c/1"},
		{"listing times out", "", "RequestTimeout:408", "cannot be told", "a/1 b/1 c/1"},
		{"answer without a table", "void", "", "cannot be told", "a/1 b/1 c/1"},
		{"listing without streams", "", "void", "cannot be told", "a/1 b/1 c/1"},
		{"listing unavailable", "", "ServiceUnavailable:503", "cannot be told", "a/1 b/1 c/1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := newStub()
				old := s.enable("orders", s.filled("a", 1))
				var got sink
				r := start(t, s, got.handle, testOptions(state.NewMemory(), "orders"))
				pass(time.Second)
				s.with(func() {
					s.fail = func(op, _ string) string {
						return map[string]string{"DescribeTable": c.fail, "ListStreams": c.list}[op]
					}
				})
				s.disable(old)
				s.disable(s.enable("orders", s.filled("b", 1)))
				pass(time.Millisecond)
				s.enable("orders", s.filled("c", 1))
				pass(2 * time.Minute)
				r.unready(c.says)
				if n := s.count("DescribeTable", "") + s.count("ListStreams", ""); n > 60 {
					t.Errorf("%d calls in two minutes", n)
				}
				s.with(func() { s.fail = nil })
				pass(time.Minute)
				want(t, "handled", got.all(), c.want)
				r.acknowledge()
				r.unready("")
				s.with(func() { s.tables["orders"] = old.arn }) // a server that has not heard
				pass(5 * time.Minute)
				want(t, "handled", got.all(), c.want)
				r.unready("")
				r.mustEnd()
			})
		})
	}
}

// A new stream that cannot be read yet is waited for; it does not hold back
// the one after it once it is gone.
func TestANewStreamThatIsGoneAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStub()
		old := s.enable("orders", s.filled("a", 1))
		var got sink
		r := start(t, s, got.handle, testOptions(state.NewMemory(), "orders"))
		pass(time.Second)
		s.disable(old)
		b := s.enable("orders", s.filled("b", 1))
		s.with(func() { delete(s.streams, b.arn) })
		pass(3 * time.Minute)
		r.unready("shards cannot be listed")
		s.enable("orders", s.filled("c", 1))
		pass(2 * time.Minute)
		want(t, "handled", got.all(), "a/1 c/1")
		r.acknowledge()
		r.unready("")
		r.mustEnd()
	})
}

// A stream that turns out to be gone while the poller stops is no error of the stop.
func TestAStreamThatIsGoneWhenThePollerStops(t *testing.T) {
	broken := errors.New("the store is full")
	for _, tt := range []struct{ end, want error }{{errNeverRead, nil}, {&StreamError{}, nil}, {broken, broken}} {
		f := newFollower(&Poller{}, Stream{Table: "orders"})
		f.away = 1
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		go func() { f.lefts <- left{err: tt.end} }()
		if err := f.follow(ctx, time.Now().Add(time.Hour)); !errors.Is(err, tt.want) {
			t.Errorf("%v: the stop returned %v, want %v", tt.end, err, tt.want)
		}
	}
}

// However many shards of a replaced stream end, the next one is begun within
// seconds: only listings of all shards space those that follow.
func TestManyEndsDoNotPutOffTheNextStream(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStub()
		var shards []*stubShard
		for i := range 10 {
			shards = append(shards, s.filled(fmt.Sprintf("a%d", i), 1))
		}
		old := s.enable("orders", shards...)
		var got sink
		r := start(t, s, got.handle, testOptions(state.NewMemory(), "orders"))
		pass(time.Second)
		s.disable(old)
		s.enable("orders", s.filled("b", 1))
		pass(75 * time.Second) // a minute until it is seen
		if !strings.HasSuffix(got.all(), " b/1") {
			t.Errorf("handled %s, want the next stream's, too", got.all())
		}
		r.mustEnd()
	})
}

// fullDisk is a store whose shards cannot be read while it is full.
type fullDisk struct {
	state.Store
	full atomic.Bool
}

func (d *fullDisk) Shards(ctx context.Context, s state.Stream) ([]state.Shard, error) {
	if d.full.Load() {
		return nil, errDisk
	}
	return d.Store.Shards(ctx, s)
}

// Nor do listings that fail put it off once they succeed again.
func TestFailuresDoNotPutOffTheNextStream(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStub()
		old := s.enable("orders", s.filled("a", 1))
		var got sink
		store := &fullDisk{Store: state.NewMemory()}
		r := start(t, s, got.handle, testOptions(store, "orders"))
		pass(time.Second)
		s.disable(old)
		s.enable("orders", s.filled("b", 1))
		store.full.Store(true)
		pass(10 * time.Minute)
		want(t, "handled", got.all(), "a/1")
		store.full.Store(false)
		pass(65 * time.Second) // a minute until somebody looks
		want(t, "handled", got.all(), "a/1 b/1")
		r.mustEnd()
	})
}

// An answer about the table may be older than all that is known: the stream it
// names is not a later one. So it is at the next start, too.
func TestAnAnswerOlderThanTheFirst(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	bubble(t, func(t *testing.T) {
		s, store := newStub(), state.NewMemory()
		old := s.enable("orders", s.filled("a", 2))
		s.disable(old)
		pass(time.Hour)
		renewed := s.enable("orders", s.filled("b", 1))
		var got sink
		r := start(t, s, got.handle, testOptions(store, "orders"))
		pass(time.Second)
		s.with(func() { s.tables["orders"] = old.arn }) // a server that has not heard
		pass(time.Hour)
		want(t, "handled", got.all(), "b/1")
		want(t, "start of the old one", storedStart(t, store, old.arn), "")
		r.unready("")
		r.mustEnd()
		r = start(t, s, got.handle, testOptions(store, "orders"))
		pass(time.Hour)
		want(t, "handled", got.all(), "b/1")
		want(t, "start of the old one", storedStart(t, store, old.arn), "")
		r.unready("")
		s.with(func() { s.tables["orders"] = renewed.arn })
		s.disable(renewed)
		s.enable("orders", s.filled("c", 1))
		pass(2 * time.Minute)
		want(t, "handled", got.all(), "b/1 c/1")
		r.mustEnd()
	})
}
