package dynamostate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/rows"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/sources/poller"
	"github.com/sluicehq/sluice/state"
	"github.com/sluicehq/sluice/streamtest"
)

// link is one worker's connection to the table.
type link struct {
	rows.Table
	cut    atomic.Bool
	before func(k rows.Key) // called before each write; nil: nothing
}

func (l *link) Get(ctx context.Context, k rows.Key) (rows.Row, error) {
	if l.cut.Load() {
		return rows.Row{}, errors.New("no connection")
	}
	return l.Table.Get(ctx, k)
}

func (l *link) Write(ctx context.Context, seen rows.Row, set map[string]types.AttributeValue) (rows.Row, error) {
	if l.cut.Load() {
		return rows.Row{}, errors.New("no connection")
	}
	if l.before != nil {
		l.before(seen.Key)
	}
	return l.Table.Write(ctx, seen, set)
}

// The table answers nobody for a while. A short outage stops no handler. In a long
// one a worker waits, as it does not know whether others took its shards; and goes on
// when it finds that nobody did.
func TestWorkerWaitsForItsTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := streamtest.NewService(t)
		orders := svc.CreateTable("orders", streamtest.TableOptions{})
		l := &link{Table: new(memory)}
		store := over(l)
		var handled atomic.Int64
		r := router.New()
		r.Handle("*#*", func(context.Context, *sluice.Record) error {
			handled.Add(1)
			return nil
		})
		p, err := poller.New(svc.Config(), r, poller.Options{Application: "app", Streams: []poller.Stream{{Table: "orders"}},
			Start: poller.TrimHorizon, Store: store, Owner: "me", Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- p.Run(ctx) }()
		put := func(pk string) { orders.Put(map[string]any{"pk": pk}) }
		want := func(when string, n int64) {
			t.Helper()
			if got := handled.Load(); got != n {
				t.Errorf("%s: %d records are handled, want %d", when, got, n)
			}
		}
		time.Sleep(5 * time.Second)
		l.cut.Store(true)
		time.Sleep(time.Second)
		put("a")
		time.Sleep(1500 * time.Millisecond)
		want("in a short outage", 1)
		time.Sleep(5 * time.Second)
		put("b")
		time.Sleep(time.Minute)
		want("in a long outage", 1)
		l.cut.Store(false)
		time.Sleep(5 * time.Second)
		want("after it", 2)
		stop()
		if err := errors.Join(<-done, store.Close()); err != nil {
			t.Error(err)
		}
	})
}

// A worker that was fenced without knowing it claims nothing more.
func TestClaimOfAFencedWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := new(memory)
		old, young := over(table), &worker{Store: over(table), name: "young"}
		if _, err := old.Claim(t.Context(), stream, testShard, "", "old"); err != nil {
			t.Fatal(err)
		}
		sh, err := young.claimSoon(t)
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{testShard, "another"} {
			if got, err := old.Claim(t.Context(), stream, id, "", "old"); !errors.Is(err, state.ErrFenced) {
				t.Errorf("claim of %s by a fenced worker: %+v, %v; want ErrFenced", id, got, err)
			}
		}
		if all, err := young.Shards(t.Context(), stream); err != nil || len(all) != 1 || all[0] != sh {
			t.Errorf("stored %+v, %v; want %+v", all, err, sh)
		}
		if err := young.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := young.Claim(t.Context(), stream, testShard, "", "young"); err == nil {
			t.Error("a claim after Close")
		}
	})
}

// A second process of one name fences the first, and needs a name of its own.
func TestTwoProcessesOfOneName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := new(memory)
		old, again, other := over(table), over(table), over(table)
		if _, err := old.Claim(t.Context(), stream, testShard, "", "pod-0"); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := again.Claim(t.Context(), stream, testShard, "", "pod-0"); !errors.Is(err, state.ErrFenced) {
				t.Fatalf("claim under a name that is used: %v, want ErrFenced", err)
			}
		}
		if err := old.Heartbeat(t.Context(), "pod-0"); !errors.Is(err, state.ErrFenced) {
			t.Errorf("heartbeat of the first: %v, want ErrFenced", err)
		}
		sh, err := again.Claim(t.Context(), stream, testShard, "", "pod-0/2") // at once
		if err != nil {
			t.Fatal(err)
		}
		for range 60 { // who saw the old one dead does not rob the living
			if _, err := other.Claim(t.Context(), stream, testShard, "", "other"); !errors.Is(err, state.ErrHeld) {
				t.Fatalf("claim of a living owner's shard: %v, want ErrHeld", err)
			}
			time.Sleep(time.Second)
			if err := again.Heartbeat(t.Context(), "pod-0/2"); err != nil {
				t.Fatal(err)
			}
		}
		if all, err := other.Shards(t.Context(), stream); err != nil || all[0] != sh {
			t.Errorf("stored %+v, %v; want %+v", all, err, sh)
		}
	})
}

// An observer that looks seldom takes over all the same.
func TestSeldomLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := new(memory)
		if _, err := over(table).Claim(t.Context(), stream, testShard, "", "dead"); err != nil {
			t.Fatal(err)
		}
		s := over(table)
		for range 5 {
			if _, err := s.Claim(t.Context(), stream, testShard, "", "young"); err == nil {
				return
			}
			time.Sleep(time.Minute)
		}
		t.Error("the shard of a dead owner is held after five looks in five minutes")
	})
}

// An owner that writes its heartbeat between the last look and the fence lives.
func TestHeartbeatBeforeTheFence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := new(memory)
		owner, l := over(table), &link{Table: table}
		if _, err := owner.Claim(t.Context(), stream, testShard, "", "owner"); err != nil {
			t.Fatal(err)
		}
		beats := 0
		l.before = func(k rows.Key) {
			if k == memberKey("app", "owner") {
				beats++
				if err := owner.Heartbeat(t.Context(), "owner"); err != nil {
					t.Error(err)
				}
			}
		}
		if sh, err := (&worker{Store: over(l), name: "young"}).claimSoon(t); !errors.Is(err, state.ErrHeld) || beats == 0 {
			t.Errorf("claim after %d such heartbeats: %+v, %v; want ErrHeld", beats, sh, err)
		}
	})
}

// The service deletes the row of a dead member after a week. Its shards are free.
func TestOwnerWithoutARow(t *testing.T) {
	table := new(memory)
	dead := over(table)
	if _, err := dead.Claim(t.Context(), stream, testShard, "", "dead"); err != nil {
		t.Fatal(err)
	}
	row, err := table.Get(t.Context(), memberKey("app", "dead"))
	if err != nil || !row.Exists() {
		t.Fatal(row, err)
	}
	if err := table.Delete(t.Context(), row); err != nil {
		t.Fatal(err)
	}
	if _, err := over(table).Claim(t.Context(), stream, testShard, "", "young"); err != nil {
		t.Error(err)
	}
	if err := dead.Heartbeat(t.Context(), "dead"); !errors.Is(err, state.ErrFenced) {
		t.Errorf("heartbeat of the dead: %v, want ErrFenced", err)
	}
}

// A worker whose first write was made though its response was lost claims under its
// own name.
func TestJoinAfterALostResponse(t *testing.T) {
	var fault mishap
	table := &memory{Fault: func(call string, k rows.Key) mishap {
		if call == "Write" && k == memberKey("app", "me") {
			return fault
		}
		return mishap{}
	}}
	s := over(table)
	fault = mishap{Err: errLost, Made: true}
	if _, err := s.Claim(t.Context(), stream, testShard, "", "me"); !errors.Is(err, errLost) {
		t.Fatal(err)
	}
	fault = mishap{}
	if sh, err := s.Claim(t.Context(), stream, testShard, "", "me"); err != nil || sh.Owner != "me" {
		t.Errorf("the next claim: %+v, %v", sh, err)
	}
	if err := s.Heartbeat(t.Context(), "me"); err != nil {
		t.Error(err)
	}
}

// An owner whose last heartbeat was made though its response was lost leaves all
// the same, and another takes its shard at once.
func TestLeaveAfterALostResponse(t *testing.T) {
	var fault mishap
	table := &memory{Fault: func(call string, _ rows.Key) mishap {
		if call == "Write" {
			return fault
		}
		return mishap{}
	}}
	s := over(table)
	if _, err := s.Claim(t.Context(), stream, testShard, "", "me"); err != nil {
		t.Fatal(err)
	}
	fault = mishap{Err: errLost, Made: true}
	if err := s.Heartbeat(t.Context(), "me"); !errors.Is(err, errLost) {
		t.Fatal(err)
	}
	fault = mishap{}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := over(table).Claim(t.Context(), stream, testShard, "", "you"); err != nil {
		t.Errorf("claim after the owner left: %v", err)
	}
}

// The table answers nobody for a while: no worker is taken for dead when it answers
// again.
func TestOutageOfTheTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := new(memory)
		a, b := &link{Table: table}, &link{Table: table}
		owner, observer := over(a), over(b)
		if _, err := owner.Claim(t.Context(), stream, testShard, "", "owner"); err != nil {
			t.Fatal(err)
		}
		isHeld := func() {
			t.Helper()
			if _, err := observer.Claim(t.Context(), stream, testShard, "", "observer"); !errors.Is(err, state.ErrHeld) {
				t.Fatalf("claim of a living owner's shard: %v, want ErrHeld", err)
			}
		}
		for range 5 {
			isHeld()
			time.Sleep(time.Second)
			if err := owner.Heartbeat(t.Context(), "owner"); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		isHeld() // so that the outage does not begin with a look at a new heartbeat
		a.cut.Store(true)
		b.cut.Store(true)
		for range 60 {
			time.Sleep(time.Second)
			if _, err := observer.Claim(t.Context(), stream, testShard, "", "observer"); err == nil {
				t.Fatal("a claim without a table")
			}
		}
		b.cut.Store(false)
		time.Sleep(time.Second)
		isHeld()
		time.Sleep(2 * time.Second)
		isHeld()
		a.cut.Store(false)
		if err := owner.Heartbeat(t.Context(), "owner"); err != nil {
			t.Fatal(err)
		}
	})
}

// Two workers share a table of state, and the shards. One loses its connection to the
// table: the other takes its shards over. When the connection is back, the first gets
// shards under another name, and all when the second ends.
func TestTakeOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := streamtest.NewService(t)
		orders := svc.CreateTable("orders", streamtest.TableOptions{Shards: 4})
		table := new(memory)
		var mu sync.Mutex
		handled := make(map[string]map[string]int) // by worker and item
		count := func(worker string) (n int) {
			mu.Lock()
			defer mu.Unlock()
			return len(handled[worker])
		}
		start := func(worker string) (*link, func()) {
			l := &link{Table: table}
			store := over(l)
			r := router.New()
			r.Handle("*#*", func(_ context.Context, rec *sluice.Record) error {
				mu.Lock()
				defer mu.Unlock()
				if handled[worker] == nil {
					handled[worker] = make(map[string]int)
				}
				handled[worker][string(rec.Keys.Raw())]++
				return nil
			})
			p, err := poller.New(svc.Config(), r, poller.Options{Application: "app", Streams: []poller.Stream{{Table: "orders"}},
				Start: poller.TrimHorizon, Store: store, Owner: worker, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- p.Run(ctx) }()
			return l, func() {
				stop()
				if err := errors.Join(<-done, store.Close()); err != nil {
					t.Errorf("end of %s: %v", worker, err)
				}
			}
		}
		written := 0
		put := func() {
			for range 20 {
				written++
				orders.Put(map[string]any{"pk": fmt.Sprint(written)})
			}
		}
		owners := func() map[string]int {
			all := make(map[string]int)
			shards, err := over(table).Shards(t.Context(), state.Stream{Application: "app", ARN: orders.StreamARN()})
			if err != nil {
				t.Fatal(err)
			}
			for _, sh := range shards {
				owner, _, _ := strings.Cut(sh.Owner, "/")
				all[owner]++
			}
			return all
		}

		put()
		first, endFirst := start("first")
		time.Sleep(3 * time.Second)
		_, endSecond := start("second")
		put()
		time.Sleep(10 * time.Second)
		if count("first")+count("second") != 40 || fmt.Sprint(owners()) != "map[first:2 second:2]" {
			t.Fatalf("handled %d by the first and %d by the second worker; owners %v", count("first"), count("second"), owners())
		}
		first.cut.Store(true)
		put()
		time.Sleep(silentAfter)
		alone := count("first") // the other may have its shards from now on
		put()
		time.Sleep(5 * time.Second)
		if got := count("first"); got != alone {
			t.Errorf("the first worker handled %d items after others could have its shards", got-alone)
		}
		if got := count("second"); got < 20 || fmt.Sprint(owners()) != "map[second:4]" {
			t.Fatalf("the second worker handled %d of 20 items after the first lost its connection; owners %v", got, owners())
		}
		first.cut.Store(false)
		time.Sleep(10 * time.Second)
		if fmt.Sprint(owners()) != "map[first:2 second:2]" {
			t.Errorf("owners %v after the connection is back", owners())
		}
		put()
		time.Sleep(5 * time.Second)
		endSecond()
		before := count("first")
		put()
		time.Sleep(5 * time.Second)
		if got := count("first") - before; got < 20 {
			t.Errorf("the first worker handled %d of 20 items after the end of the second; owners %v", got, owners())
		}
		endFirst()
		for i := 1; i <= written; i++ {
			if id := fmt.Sprintf(`{"pk":{"S":"%d"}}`, i); handled["first"][id]+handled["second"][id] == 0 {
				t.Errorf("item %s was not handled", id)
			}
		}
	})
}
