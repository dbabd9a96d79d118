package poller

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/state"
)

// This file reports events to the hooks, the log and NotReady.

func (p *Poller) started(s Shard, after sluice.Sequence) {
	p.o.Logger.Info("shard started", "table", s.Table, "shard", s.ID, "after", string(after))
	if h := p.o.Hooks.ShardStarted; h != nil {
		h(s, after)
	}
}

func (p *Poller) ended(s Shard, end End, err error) {
	level := slog.LevelInfo
	args := []any{"table", s.Table, "shard", s.ID, "end", string(end)}
	switch end {
	case EndFinished, EndStopped, EndMoved:
	case EndLost:
		level, args = slog.LevelWarn, append(args, "next", "another worker may read the shard; this one claims it again if none does")
	default:
		level = slog.LevelError
	}
	if err != nil {
		args = append(args, "error", err)
	}
	p.o.Logger.Log(context.Background(), level, "shard ended", args...)
	if h := p.o.Hooks.ShardEnded; h != nil {
		h(s, end)
	}
}

// notClaimed reports a shard that could not be begun: another owner has it, or the
// store failed.
func (p *Poller) notClaimed(s Shard, err error, retryIn time.Duration) {
	if held(err) {
		p.health.store(claimShard, nil)
		p.o.Logger.Debug("shard is held by another", "table", s.Table, "shard", s.ID, "error", err)
		return
	}
	p.health.store(claimShard, err)
	p.failed(s, claimShard, err, transient, retryIn)
}

func (p *Poller) polled(poll Poll) {
	if h := p.o.Hooks.Polled; h != nil {
		h(poll)
	}
}

func (p *Poller) lagged(s Shard, lag time.Duration) {
	if h := p.o.Hooks.Lag; h != nil {
		h(s, lag)
	}
}

func (p *Poller) dropped(s Shard, n int) {
	if h := p.o.Hooks.Dropped; h != nil {
		h(s, n)
	}
}

func (p *Poller) discovered(table string, l listing, fresh int, err error) {
	p.o.Logger.Debug("shards listed", "table", table, "pages", l.pages, "shards", len(l.shards), "new", fresh, "error", err)
}

func (p *Poller) lineage(l Lineage) {
	if h := p.o.Hooks.Lineage; h != nil {
		h(l)
	}
}

func (p *Poller) checkpointed(shards int, took time.Duration, err error) {
	p.health.store(storePositions, err)
	if h := p.o.Hooks.Memory; h != nil {
		m := p.memory()
		h(m.Pinned, m.Limit, m.Waiting)
	}
	if shards == 0 {
		return
	}
	if err != nil {
		p.o.Logger.Error("positions were not stored and will be again", "shards", shards, "error", err)
	}
	if h := p.o.Hooks.Checkpointed; h != nil {
		h(shards, took, err)
	}
}

func (p *Poller) failed(s Shard, action string, err error, k kind, retryIn time.Duration) {
	level := slog.LevelWarn
	switch k {
	case expired:
		level = slog.LevelDebug
	case refused, notFound:
		level = slog.LevelError
	}
	p.o.Logger.Log(context.Background(), level, "call failed", "action", action, "table", s.Table, "shard", s.ID, "stream", s.StreamARN,
		"kind", k.String(), "retryIn", retryIn, "error", err)
	if h := p.o.Hooks.Failed; h != nil {
		h(s, action, err, retryIn)
	}
}

// until repeats a call to the store until it succeeds. It returns nil, or ctx's error.
func (p *Poller) until(ctx context.Context, s Shard, name string, call func() error) error {
	var b backoff
	for {
		err := call()
		if err != nil && ctx.Err() == nil {
			wait := b.next(transient)
			p.health.store(name, err)
			p.failed(s, name, err, transient, wait)
			if sleep(ctx, wait) == nil {
				continue
			}
		}
		p.health.store(name, nil)
		if err != nil {
			return ctx.Err()
		}
		return nil
	}
}

// fencedRetry is the time until the first heartbeat under a new name.
const fencedRetry = 100 * time.Millisecond

const (
	failedRetry = 250 * time.Millisecond // from a failed heartbeat to the next
	failedBeats = 100                    // heartbeats that fail in a row, for one report of it
)

// beat sends heartbeats to the store, whatever the handlers do.
func (p *Poller) beat(ctx context.Context) {
	failures := 0
	for {
		name, sent := p.owner.now(), time.Now()
		err := p.store.heartbeat(ctx, name)
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, state.ErrFenced) {
			p.fenced(name)
			if sleep(ctx, fencedRetry) != nil {
				return
			}
			continue
		}
		if err == nil {
			p.owner.stored(name, sent)
		}
		p.health.store(heartbeat, err)
		switch {
		case err == nil:
			failures = 0
		case failures%failedBeats == 0:
			p.failed(Shard{}, heartbeat, err, transient, min(p.o.HeartbeatEvery, failedRetry))
			fallthrough
		default:
			failures++
		}
		pause := p.o.HeartbeatEvery
		if err != nil {
			pause = min(pause, failedRetry)
		}
		if sleep(ctx, pause) != nil {
			return
		}
	}
}

// fenced goes on under a new owner's name: the shards of the old one are lost.
func (p *Poller) fenced(name string) {
	if p.owner.replace(name) {
		p.checkpoints.Lose(name)
		p.o.Logger.Warn("another worker found this one silent, or had the same name, and may read its shards: claiming anew under another name",
			"owner", name, "newOwner", p.owner.now())
	}
}

// survive runs work until it returns, and again after a panic: a hook that panics
// must not end the process. NotReady reports the panic under the name call, until a
// call succeeds.
func (p *Poller) survive(ctx context.Context, call string, work func()) {
	var b backoff
	for {
		err := recovered(func() error { work(); return nil })
		if err == nil {
			return
		}
		p.health.store(call, err)
		p.panicked(call, err)
		if sleep(ctx, b.next(transient)) != nil {
			return
		}
	}
}

// recovered runs work and returns its error, or its panic as an error.
func recovered(work func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = panicked(v)
		}
	}()
	return work()
}

// panicked logs a panic. It ignores a panic of the logger.
func (p *Poller) panicked(what string, err error, args ...any) {
	_ = recovered(func() error {
		p.o.Logger.Error("panic: it is begun again", append([]any{"what", what, "error", err}, args...)...)
		return nil
	})
}
