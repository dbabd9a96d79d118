package dynamostate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/sources/poller"
)

// simWorker is one process.
type simWorker struct {
	w       *simWorld
	name    string
	link    *simLink
	store   *Store
	reload  chan struct{}
	runs    map[string]bool // items
	handled atomic.Int64    // calls that have begun
	cancel  context.CancelFunc
	done    chan struct{}
	err     error // of Run
}

func (w *simWorld) start() *simWorker {
	w.started++
	v := &simWorker{w: w, name: fmt.Sprint("w", w.started), reload: make(chan struct{}), runs: make(map[string]bool), done: make(chan struct{})}
	v.link = &simLink{world: w, died: make(chan struct{}), to: make(map[string]mode), r: rand.New(rand.NewPCG(w.r.Uint64(), 1))}
	if w.r.IntN(2) == 0 {
		v.jump()
	}
	v.store = over(simRows{v.link, v})
	ctx, cancel := context.WithCancel(w.t.Context())
	v.cancel = cancel
	w.say("%s starts", v.name)
	w.corpses.Go(func() {
		defer close(v.done)
		v.err = errors.Join(v.read(ctx), v.store.Close())
	})
	w.workers = append(w.workers, v)
	return v
}

// read reads with one poller after another: a reload hands the shards to the next.
func (v *simWorker) read(ctx context.Context) error {
	p, g := v.poller()
	for {
		run, end := context.WithCancelCause(ctx)
		ended := make(chan error, 1)
		go func() { ended <- p.Run(run) }()
		old, before := p, g
		for p == old {
			select {
			case err := <-ended:
				end(nil)
				return err
			case <-v.reload:
				v.w.say("%s reloads", v.name)
				if next, after := v.poller(); next.Prepare(run) == nil {
					p, g = next, after
				}
			}
		}
		v.w.say("%s hands over", v.name)
		began, handled := time.Now(), v.handled.Load()
		before.HandOver()
		end(&poller.HandOver{Streams: []poller.Stream{{Table: "orders"}}})
		err := <-ended
		if n := v.handled.Load() - handled; v.w.plan.orderly && time.Since(began) > handedWithin+time.Duration(n)*200*time.Millisecond {
			v.w.mu.Lock()
			v.w.violate(propHands, "%s took %v", v.name, time.Since(began))
			v.w.mu.Unlock()
		}
		if err != nil || ctx.Err() != nil {
			return err
		}
		p.Inherit(old)
		g.Inherit(before)
	}
}

func (v *simWorker) poller() (*poller.Poller, *flow.Group) {
	w := v.w
	r := router.New()
	r.Handle("*#*", v.handle)
	g := flow.NewGroup(r)
	cfg := w.svc.Config()
	cfg.HTTPClient = simClient{cfg.HTTPClient, v.link}
	p, err := poller.New(cfg, r, poller.Options{
		Application: "app", Streams: []poller.Stream{{Table: "orders"}}, Start: poller.TrimHorizon, Store: v.store, Owner: v.name,
		Logger: slog.New(slog.DiscardHandler), Flow: flow.Options{Group: g},
		Hooks: poller.Hooks{
			ShardStarted: func(s poller.Shard, after sluice.Sequence) { w.say("%s reads %s after %q", v.name, s.ID, after) },
			ShardEnded:   func(s poller.Shard, e poller.End) { w.say("%s ends %s: %s", v.name, s.ID, e) },
		},
	})
	if err != nil {
		panic(err) // not a matter of the seed
	}
	return p, g
}

// handle is the application: it takes a while, and may not notice that it is to end.
func (v *simWorker) handle(ctx context.Context, rec *sluice.Record) error {
	if v.link.isDead() {
		return errDead
	}
	defer v.w.begins(v, rec)()
	if err := v.link.pass(); err != nil {
		return err
	}
	pk, _ := rec.New.Lookup("pk")
	text, _ := rec.New.Lookup("n")
	item := pk.Str()
	n, err := strconv.Atoi(text.Str())
	if err != nil {
		return err
	}
	v.w.mu.Lock()
	fails := v.w.failing[item]
	v.w.mu.Unlock()
	took := time.Duration(v.link.draw(150)) * time.Millisecond
	if v.link.draw(4) == 0 { // deaf
		time.Sleep(took)
	} else {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(took):
		}
	}
	if fails {
		return errors.New("not yet")
	}
	return v.link.call(ctx, "sink", func() error {
		v.w.effect(v, rec, item, n)
		return nil
	})
}
