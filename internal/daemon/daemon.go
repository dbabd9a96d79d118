package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/holders"
	"github.com/sluicehq/sluice/internal/job"
	"github.com/sluicehq/sluice/internal/letters"
	"github.com/sluicehq/sluice/internal/scrape"
	"github.com/sluicehq/sluice/internal/statestore"
	"github.com/sluicehq/sluice/metrics/prom"
)

// Run reads the tables and consumes the queues until ctx ends, and then
// drains for Options.Grace.
// It returns nil after an orderly end, a [*UsageError] when o is wrong, and
// otherwise why it could not start. It logs to stderr.
func Run(ctx context.Context, a App, o Options, env func(string) string, stderr io.Writer) (err error) {
	g := &generation{app: a.withDefaults(), env: env}
	g.o = o.withDefaults(g.app)
	if err := g.o.validate(); err != nil {
		return err
	}
	if g.o.State, err = findState(g.o.State); err != nil {
		return err
	}
	o = g.o
	logger := newLogger(o, stderr)
	limitMemory(os.DirFS("/"), env, logger)
	p := &process{logger: logger, stderr: stderr, registry: scrape.NewRegistry(), started: time.Now()}
	p.counts = prom.New(p.registry)
	tracer, stopTraces, err := startTraces(ctx, o, env, p.counts, logger)
	if err != nil {
		return err
	}
	defer stopTraces()
	p.tracer = tracer
	life, over := context.WithCancel(ctx)
	p.reloads = newReloads(life, p)
	defer heedHangups(p.reloads.hangup)()
	defer over()
	if err = g.route(ctx, p); ctx.Err() != nil {
		return nil // stopped before it began
	}
	if err != nil {
		return err
	}
	closing, check := time.Second, "that the disk of the state file is present, writable and not full"
	if _, ok := statestore.Table(o.State); ok {
		closing, check = 6*time.Second, "the connection to the state table, and its metrics for throttling"
	}
	store, err := o.open(ctx, g.aws)
	if ctx.Err() != nil && err != nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("--state (SLUICE_STATE, or daemon.state in the file): %w", err)
	}
	defer func() {
		over, end := context.WithCancel(ctx)
		end()
		err = errors.Join(err, within(over, closing, "closing "+statestore.Describe(o.State), check, store.Close))
	}()
	if err := statestore.Ready(ctx, store, o.Application); err != nil {
		return err
	}
	p.store, p.check, p.box = store, check, letters.NewBox(store, o.Application)
	p.fleet, _ = store.(holders.Fleet)
	if p.fleet != nil {
		p.fleet.Publish(g.config)
	}
	if err := g.source(ctx, p); err != nil {
		return err
	}
	if several, ok := store.(job.Store); ok {
		p.box.Exclusive(job.Exclusive(several, o.Application, job.Redrive))
	}
	p.throttles = newThrottles(store, o.Application, g.src.group, false, false, logger)
	g.src.throttles = p.throttles
	if err := p.throttles.refresh(ctx); err != nil { // before a route is called
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("%s: %w", statestore.Describe(o.State), err)
	}
	p.pulse = newPulse(logger)
	p.parked = &letterCounts{count: p.box.Counts}
	if o.Listen != "off" {
		if err := p.guardBy(o, env); err != nil {
			return err
		}
	}
	p.show(life, g)
	p.counts.Ask(prom.Status{
		Ready: func() bool { return len(p.src().unready()) == 0 },
		Held:  func() []flow.Held { return heldFlows(p.src().held()) },
		DeadLetters: func() []deadletter.Count {
			counts, _ := p.parked.get(countEvery)
			return counts
		},
		Routes: func() []flow.RouteState { return p.src().routes() },
	})
	if o.Listen != "off" {
		srv, err := p.listen(o.Listen)
		if err != nil {
			return err
		}
		defer srv.stop()
		defer o.publish(env, srv.address, logger)()
		defer context.AfterFunc(ctx, func() { srv.stopping.Store(true) })()
	}
	defer context.AfterFunc(ctx, func() {
		logger.Info("stopping: a second signal ends at once", "grace", p.now().o.Grace)
		if awaited := p.src().awaited(); len(awaited) > 0 {
			logger.Info("waiting for records to be settled; those not settled within the grace come again",
				"grace", p.now().o.Grace, "awaited", strings.Join(awaited, ", "), "reasons", strings.Join(p.src().unready(), "\n"))
		}
	})()
	logger.Info("starting", "application", o.Application, "tables", o.Tables, "queues", o.Queues, "state", o.State, "routes", len(g.m.Routes()))
	watched, unwatch := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() {
		watchReady(watched, func() []string {
			p.src().held() // for its locks
			reasons := p.src().unready()
			p.pulse.beat()
			return reasons
		}, logger)
	})
	watch.Go(func() { p.throttles.watch(watched) })
	watch.Go(func() { p.reloads.watch(watched) })
	err = p.live(ctx, g)
	over() // a reload that waits gives up
	unwatch()
	watch.Wait()
	if err != nil {
		return err
	}
	logger.Info("stopped")
	return nil
}

// handledHook is Handled of flow.Hooks.
type handledHook = func(context.Context, *sluice.Record, *sluice.Route, flow.Result, time.Duration, error)

// inTurn calls hooks one after another, and leaves out nil.
func inTurn(all ...handledHook) handledHook {
	all = slices.DeleteFunc(all, func(h handledHook) bool { return h == nil })
	return func(ctx context.Context, rec *sluice.Record, route *sluice.Route, r flow.Result, took time.Duration, err error) {
		for _, h := range all {
			h(ctx, rec, route, r, took, err)
		}
	}
}

// logged logs a line for each record at level debug, else it is nil. The line has the
// position, the route and the outcome, never the content.
func logged(logger *slog.Logger) handledHook {
	if !logger.Enabled(context.Background(), slog.LevelDebug) {
		return nil
	}
	return func(ctx context.Context, rec *sluice.Record, route *sluice.Route, r flow.Result, took time.Duration, err error) {
		attrs := []slog.Attr{
			slog.String("table", rec.Table), slog.String("shard", rec.ShardID), slog.String("sequence", string(rec.Sequence)),
			slog.String("result", r.String()), slog.Duration("took", took),
		}
		if route != nil {
			attrs = append(attrs, slog.String("route", route.Name))
		}
		if err != nil {
			attrs = append(attrs, slog.String("error", err.Error()))
		}
		logger.LogAttrs(ctx, slog.LevelDebug, "handled", attrs...)
	}
}
