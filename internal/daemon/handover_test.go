package daemon

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/statestore"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/sources/poller"
	"github.com/sluicehq/sluice/state"
)

// While a queue drains, whose handlers take long, the shards stay claimed.
func TestHandoverKeepsClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := router.New()
		m.Handle("*#*", func(context.Context, *sluice.Record) error { return nil })
		reader, err := poller.New(aws.Config{}, m, poller.Options{Application: "app", Streams: []poller.Stream{{Table: "orders"}}, Store: state.NewMemory(), Owner: "me"})
		if err != nil {
			t.Fatal(err)
		}
		calls, watched := watchCalls(m)
		old := &generation{src: &sources{group: flow.NewGroup(watched), calls: calls, poller: reader}}
		store := &beats{}
		p := &process{store: store}
		ctx, stop := context.WithCancel(t.Context())
		r := &reading{generation: old, end: func(error) {}, unwatch: func() {}, ended: make(chan struct{})}
		begun := time.Now()
		time.AfterFunc(30*time.Second, func() { stop(); close(r.ended) })
		if _, err := p.replace(ctx, r, &generation{}); !errors.Is(err, errStopping) {
			t.Error(err)
		}
		synctest.Wait()
		last := begun
		for _, at := range append(store.of["me"], time.Now()) {
			if gap := at.Sub(last); gap > 2*time.Second {
				t.Errorf("the owner was silent for %v", gap)
			}
			last = at
		}
	})
}

// beats keeps the heartbeats of owners.
type beats struct {
	statestore.Store
	of map[string][]time.Time
}

func (b *beats) Heartbeat(_ context.Context, owner string) error {
	if b.of == nil {
		b.of = make(map[string][]time.Time)
	}
	b.of[owner] = append(b.of[owner], time.Now())
	return nil
}
