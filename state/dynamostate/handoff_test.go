package dynamostate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/rows"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/sources/poller"
	"github.com/sluicehq/sluice/state"
	"github.com/sluicehq/sluice/streamtest"
)

// effect is a change that was handled.
type effect struct {
	worker string
	number int
	at     time.Time
}

// Workers join and leave while items change all the time, and one item fails for ever.
// No change is lost, those of an item are handled in their order, and a shard that moves
// rests for a moment only.
func TestHandOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := streamtest.NewService(t)
		orders := svc.CreateTable("orders", streamtest.TableOptions{Shards: 6})
		table := new(memory)
		var mu sync.Mutex
		effects := make(map[string][]effect) // by item
		moved := make(map[string]int)        // shards, by worker
		start := func(name string) (stop func()) {
			store := over(table)
			r := router.New()
			r.Handle("*#*", func(_ context.Context, rec *sluice.Record) error {
				key := string(rec.Keys.Raw())
				if strings.Contains(key, "bad") {
					return errors.New("fails for ever")
				}
				_, after, _ := strings.Cut(string(rec.New.Raw()), `"n":{"N":"`)
				text, _, _ := strings.Cut(after, `"`)
				n, err := strconv.Atoi(text)
				if err != nil {
					return sluice.Permanent(err)
				}
				mu.Lock()
				defer mu.Unlock()
				effects[key] = append(effects[key], effect{name, n, time.Now()})
				return nil
			})
			p, err := poller.New(svc.Config(), r, poller.Options{
				Application: "app", Streams: []poller.Stream{{Table: "orders"}}, Start: poller.TrimHorizon, Store: store, Owner: name,
				Logger: slog.New(slog.DiscardHandler),
				Hooks: poller.Hooks{ShardEnded: func(_ poller.Shard, end poller.End) {
					if end == poller.EndMoved {
						mu.Lock()
						defer mu.Unlock()
						moved[name]++
					}
				}},
			})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- p.Run(ctx) }()
			return func() {
				cancel()
				if err := errors.Join(<-done, store.Close()); err != nil {
					t.Errorf("end of %s: %v", name, err)
				}
			}
		}
		const items = 16
		n := 0
		write := func(d time.Duration) {
			for range d / (100 * time.Millisecond) {
				n++
				for i := range items {
					orders.Put(map[string]any{"pk": fmt.Sprint("item", i), "n": n})
				}
				time.Sleep(100 * time.Millisecond)
			}
		}

		orders.Put(map[string]any{"pk": "bad", "n": 0})
		endA := start("a")
		write(10 * time.Second)
		endB := start("b")
		write(15 * time.Second)
		if moved["a"] != 3 {
			t.Errorf("%d shards moved to the second worker, want 3 of 6", moved["a"])
		}
		endC := start("c")
		write(15 * time.Second)
		if moved["a"]+moved["b"] != 5 {
			t.Errorf("%v shards moved, want 2 more to the third worker", moved)
		}
		stopped := make(chan struct{})
		go func() { endA(); close(stopped) }()
		write(40 * time.Second)
		<-stopped
		endB()
		write(10 * time.Second)
		time.Sleep(10 * time.Second)

		mu.Lock()
		longest, repeats := time.Duration(0), 0
		for key, all := range effects {
			last := effect{at: all[0].at}
			for _, e := range all {
				if e.number > last.number+1 {
					t.Errorf("item %s: change %d after %d", key, e.number, last.number)
				}
				if e.number <= last.number {
					if repeats++; e.worker == last.worker {
						t.Errorf("item %s: change %d again at one worker", key, e.number)
					}
				}
				if e.worker != last.worker && last.worker != "" {
					longest = max(longest, e.at.Sub(last.at))
				}
				last = e
			}
			if last.number != n {
				t.Errorf("item %s: the last change handled is %d of %d", key, last.number, n)
			}
		}
		if len(effects) != items {
			t.Errorf("%d items, want %d", len(effects), items)
		}
		mu.Unlock()
		t.Logf("%d changes of %d items, %d again; the longest rest of an item at a move is %v", n, items, repeats, longest)
		if longest > 5*time.Second {
			t.Errorf("an item rested for %v", longest)
		}
		endC()
	})
}

// A worker that does not read its mailbox gets nothing again for a while.
func TestOfferThatIsNotTaken(t *testing.T) {
	s := over(new(memory))
	if _, err := s.Claim(t.Context(), stream, testShard, "", "me"); err != nil {
		t.Fatal(err)
	}
	l := s.leasesOf("app", "me")[0]
	s.give([]state.Lease{l.Lease}, "idle")
	if got := s.leasesOf("app", "me"); len(got) != 0 {
		t.Errorf("a lease that was given away is still there to give: %v", got)
	}
	if err := s.Release(t.Context(), l.Lease); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Claim(t.Context(), stream, testShard, "", "me"); err != nil {
		t.Fatal(err)
	}
	if s.avoided()["idle"].IsZero() || len(s.leasesOf("app", "me")) != 1 {
		t.Errorf("after it came back: avoided %v, leases %v", s.avoided(), s.leasesOf("app", "me"))
	}
}

// The shards of an offer are released one after another, in the order in which the receiver
// looks at them.
func TestReleasesAreSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := over(new(memory))
		var offered []state.Lease
		for _, id := range []string{"d", "b", "a", "c"} {
			if _, err := s.Claim(t.Context(), stream, id, "", "me"); err != nil {
				t.Fatal(err)
			}
		}
		for _, h := range s.leasesOf("app", "me") {
			offered = append(offered, h.Lease)
		}
		s.give(offered, "other")
		time.Sleep(announceFor - time.Millisecond)
		for n := range 5 {
			ready, waiting := s.gifts("app", "me")
			ids := make([]string, len(ready))
			for i, l := range ready {
				ids[i] = l.ShardID
			}
			slices.Sort(ids)
			if want := []string{"a", "b", "c", "d"}[:n]; !waiting || !slices.Equal(ids, want) {
				t.Errorf("after %d parts: %v are ready, waiting %v; want %v", n, ids, waiting, want)
			}
			time.Sleep(spreadFor / 4)
		}
	})
}

// A shard behind many others of an offer is claimed soon after its release, too.
func TestTheLastOfManyOffers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := new(memory)
		giver, taker := over(table), over(table)
		sh, err := giver.Claim(t.Context(), stream, "z", "", "giver")
		if err != nil {
			t.Fatal(err)
		}
		taker.members.offered = make(map[rows.Key]offer)
		for i := range 1000 {
			taker.members.offered[shardKey(stream, fmt.Sprintf("a%03d", i))] = offer{"taker", time.Now()}
		}
		taker.members.offered[shardKey(stream, "z")] = offer{"taker", time.Now()}
		claimed := make(chan time.Time)
		go func() {
			if _, err := taker.Claim(t.Context(), stream, "z", "", "taker"); err != nil {
				t.Error(err)
			}
			claimed <- time.Now()
		}()
		time.Sleep(2 * time.Second)
		if err := giver.Release(t.Context(), state.Lease{Stream: stream, ShardID: "z", Owner: "giver", Epoch: sh.Epoch}); err != nil {
			t.Fatal(err)
		}
		released := time.Now()
		if took := (<-claimed).Sub(released); took > lookAtMost {
			t.Errorf("claimed %v after its release", took)
		}
	})
}
