package streamtest_test

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/sources/poller"
	"github.com/sluicehq/sluice/state"
	"github.com/sluicehq/sluice/streamtest"
)

// The test of docs/testing.md: a day with a whole daemon, in a bubble.
func TestPollerInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := streamtest.NewService(t)
		orders := s.CreateTable("orders", streamtest.TableOptions{})
		s.Chaos(streamtest.Chaos{Seed: 1, Errors: 0.05, Throttles: 0.05, Hang: 0.005, Slow: 0.1, Empty: 0.1, Shuffled: 0.5, Stale: 0.2})

		var mu sync.Mutex
		var got []sluice.Sequence
		r := router.New()
		r.Handle("order#*", func(_ context.Context, rec *sluice.Record) error {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, rec.Sequence)
			return nil
		})
		p, err := poller.New(s.Config(), r, poller.Options{
			Streams: []poller.Stream{{Table: "orders"}}, Start: poller.TrimHorizon, Store: state.NewMemory(),
			Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), IdleInterval: time.Minute,
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- p.Run(ctx) }()

		for hour := range 24 {
			orders.Put(map[string]any{"pk": "order-1", "entityType": "order", "hour": hour})
			if hour%4 == 3 {
				orders.Roll(orders.Shards()[len(orders.Shards())-1].ID)
			}
			time.Sleep(time.Hour)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		var want []sluice.Sequence
		for _, c := range orders.Changes() {
			want = append(want, c.Sequence)
		}
		if !slices.Equal(got, want) {
			t.Errorf("handled %v, want %v", got, want)
		}
	})
}
