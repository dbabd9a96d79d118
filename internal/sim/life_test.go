package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/sources/poller"
)

// life is one process that runs the poller, from its start to its death.
type life struct {
	h      *history
	n      int
	first  int // of its process
	gate   *gate
	p      *poller.Poller
	group  *flow.Group
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when Run has returned
	err    error         // what it returned; read after done
	ctx    context.Context

	dropped atomic.Int64 // when it last read a record that lies before the start, in ns
}

// live starts a process.
func (h *history) live(c crash) *life { return h.made(c).after(nil) }

// made makes a process, or new routes of one, that does not run yet.
func (h *history) made(c crash) *life {
	h.lives++
	l := &life{h: h, n: h.lives, first: h.lives, gate: newGate(c), done: make(chan struct{})}
	l.note("starts; crash: %v", c)
	s := &store{keeper: h.store, life: l}
	o := h.plan.o
	o.Store, o.Application = s, application
	o.Owner = fmt.Sprintf("life %d", l.n)
	o.Logger = h.logger(l)
	o.Hooks = l.hooks()
	if h.plan.park {
		o.Flow.DeadLetter = deadletter.NewBox(s, application)
	}
	for _, t := range h.plan.tables {
		o.Streams = append(o.Streams, poller.Stream{Table: t.name})
	}
	cfg := h.service.Config()
	cfg.HTTPClient = client{cfg.HTTPClient, l}
	m := l.matcher()
	l.group = flow.NewGroup(m)
	o.Flow.Group = l.group
	p, err := poller.New(cfg, m, o)
	if err != nil {
		panic(err) // the plan is wrong
	}
	l.p = p
	l.ctx, l.cancel = context.WithCancelCause(h.t.Context())
	return l
}

// after begins a life. It goes on in the process of before, if that is not nil.
func (l *life) after(before *life) *life {
	if before != nil {
		l.group.Inherit(before.group)
		l.p.Inherit(before.p)
		l.first = before.first
	}
	go func() {
		defer close(l.done)
		l.err = l.p.Run(l.ctx)
	}()
	go l.watch()
	return l
}

// watch looks every second whether the life is ready although it has not proven
// that it may be.
func (l *life) watch() {
	o := l.h.plan.o
	want := proof{
		life:   l.n,
		since:  time.Now(),
		stored: o.CheckpointEvery + o.StaleAfter + moment,
		polled: o.StaleAfter + o.IdleInterval + 2*o.CallTimeout + moment,
		listed: 2*o.StaleAfter + 3*o.DiscoverEvery + 2*o.CallTimeout + moment,
		behind: 6 * o.DiscoverEvery,
		slots:  o.Flow.Concurrency,
		room:   o.Flow.MaxAhead == 0 && (o.Flow.Window == 0 || o.Flow.Window >= 4096) && o.MaxMemory == 0 && o.Flow.Order == flow.ByItem,
	}
	tick := time.NewTicker(time.Second)
	var told []flow.RouteState
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-l.done:
			return
		case <-l.gate.died:
			return
		}
		if states := l.group.States(); fmt.Sprint(states) != fmt.Sprint(told) {
			told = states
			l.note("routes: %+v", states)
		}
		if why := l.h.check.unproven(want); why != "" && !l.stopped() && len(l.p.NotReady()) == 0 && l.h.check.unproven(want) == why && !l.gate.isShut() && !l.stopped() {
			l.h.check.violate(propReady, "life %d is ready although %s", l.n, why)
		}
	}
}

func (l *life) note(format string, args ...any) { l.h.trace.add(l.n, format, args...) }

// stopped reports whether the process was told to end, or is dead.
func (l *life) stopped() bool { return l.ctx.Err() != nil }

// kill ends it at this moment: what it does from now on is nothing. What is
// left of it is drained beside the next life.
func (l *life) kill() {
	l.note("killed after %d interactions", l.gate.passages())
	l.cancel(nil)
	l.gate.close()
	l.h.check.left(l.n, false)
	l.h.corpses.Go(func() { <-l.done })
}

// handOver ends it as a reload of the configuration does, and reports whether it ended
// so.
func (l *life) handOver() bool {
	var all []poller.Stream
	for _, t := range l.h.plan.tables {
		all = append(all, poller.Stream{Table: t.name})
	}
	l.group.HandOver()
	return l.stopFor(&poller.HandOver{Streams: all})
}

// stop ends it as SIGTERM does, and reports whether it ended so.
func (l *life) stop() bool { return l.stopFor(nil) }

func (l *life) stopFor(cause error) bool {
	l.note("told to stop: %v", cause)
	l.cancel(cause)
	limit := time.NewTimer(l.h.plan.o.Grace + stopSlack)
	defer limit.Stop()
	select {
	case <-l.done:
		l.note("stopped: %v", l.err)
		l.gate.close()
		l.h.check.left(l.n, l.err == nil)
		return true
	case <-l.gate.died:
		l.kill()
	case <-limit.C:
		l.h.check.violate(propStop, "life %d has not stopped within its grace of %v", l.n, l.h.plan.o.Grace)
		l.kill()
	}
	return false
}

// stopSlack is what a stop may take beyond Options.Grace.
const stopSlack = 500 * time.Millisecond

func (l *life) hooks() poller.Hooks {
	check := l.h.check
	at := func(s poller.Shard) place { return place{s.StreamARN, s.ID} }
	return poller.Hooks{
		ShardStarted: func(s poller.Shard, after sluice.Sequence) {
			if !l.gate.isShut() {
				l.note("reads %s after %q", s.ID, after)
				check.started(l.n, at(s), after)
			}
		},
		ShardEnded: func(s poller.Shard, e poller.End) { l.note("ends %s: %s", s.ID, e) },
		Gap: func(g sluice.Gap) {
			if !l.h.plan.park { // else it is one
				l.gate.pass("gap", func() { check.gap(l.n, &g) })
			}
		},
		Dropped: func(s poller.Shard, n int) {
			l.dropped.Store(time.Now().UnixNano())
			l.note("drops %d records of %s", n, s.ID)
		},
		Failed: func(s poller.Shard, action string, err error, retryIn time.Duration) {
			l.note("%s of %s failed, again in %v: %v", action, s.ID, retryIn, err)
		},
	}
}

// client hands a life's calls to the service, through its gate.
type client struct {
	aws.HTTPClient
	life *life
}

func (c client) Do(req *http.Request) (*http.Response, error) {
	_, op, _ := strings.Cut(req.Header.Get("X-Amz-Target"), ".")
	n, ok := c.life.gate.enter(op)
	if !ok {
		return nil, errDead
	}
	left := false
	defer c.life.gate.unwind(&left, c.life.h.check)
	resp, err := c.HTTPClient.Do(req)
	left = true
	if !c.life.gate.leave(op, n) {
		if err == nil {
			resp.Body.Close()
		}
		return nil, errDead
	}
	return resp, err
}

// logger writes what a life logs into the trace, when somebody will read it.
func (h *history) logger(l *life) *slog.Logger {
	if !h.verbose {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(logWriter{l}, &slog.HandlerOptions{Level: slog.LevelDebug,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}))
}

type logWriter struct{ life *life }

var _ io.Writer = logWriter{}

func (w logWriter) Write(p []byte) (int, error) {
	w.life.note("log: %s", strings.TrimSpace(string(p)))
	return len(p), nil
}

// startFailed reports whether Run's error is that of a start that failed.
func startFailed(err error) bool {
	var stream *poller.StreamError
	return errors.As(err, &stream) || errors.Is(err, errStore) || errors.Is(err, errStoreFull) || errors.Is(err, context.DeadlineExceeded)
}
