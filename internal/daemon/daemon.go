package daemon

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/access"
	"github.com/sluicehq/sluice/internal/buildversion"
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
	a = a.withDefaults()
	o = o.withDefaults(a)
	if err := o.validate(); err != nil {
		return err
	}
	if o.State, err = findState(o.State); err != nil {
		return err
	}
	logger := newLogger(o, stderr)
	limitMemory(os.DirFS("/"), env, logger)
	defer heedHangups(logger)()
	aws, all, err := loadAWS(ctx, env, o, logger)
	if err != nil {
		return err
	}
	registry := scrape.NewRegistry()
	counts := prom.New(registry)
	tracer, stopTraces, err := startTraces(ctx, o, env, counts, logger)
	if err != nil {
		return err
	}
	defer stopTraces()
	checks := &checks{}
	m, err := a.routes(ctx, Setup{
		Tables: o.tableNames(), Queues: o.Queues, Env: env, Logger: everyLine(logger), AWS: aws, Accounts: all,
		Metrics: counts, unrouted: &unrouted{logger: everyLine(logger)}, checks: checks,
	})
	if err == nil {
		err = checks.start(ctx, m, o.RequireSinks)
	}
	if ctx.Err() != nil {
		return nil // stopped before it began
	}
	if err != nil {
		return err
	}
	closing, check := time.Second, "that the disk of the state file is present, writable and not full"
	if _, ok := statestore.Table(o.State); ok {
		closing, check = 6*time.Second, "the connection to the state table, and its metrics for throttling"
	}
	store, err := o.open(ctx, aws)
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
	box := letters.NewBox(store, o.Application)
	if o.DeadLetter == "item" {
		if err := box.Load(ctx); err != nil {
			return fmt.Errorf("%s: %w", statestore.Describe(o.State), err)
		}
	}
	config := fingerprint(o, m)
	fleet, shared := store.(holders.Fleet)
	if shared {
		fleet.Publish(config)
	}
	m = checks.hold(m)
	src, err := newSources(o, m, checks, aws, all, store, box.Box, counts, newLife(m, o, stderr), tracer, logger)
	if err != nil {
		return err
	}
	if several, ok := store.(job.Store); ok {
		box.Exclusive(job.Exclusive(several, o.Application, job.Redrive))
	}
	throttles := newThrottles(store, o.Application, src.group, src.poller != nil, src.consumer != nil || src.backfills != nil, logger)
	if err := throttles.refresh(ctx); err != nil { // before a route is called
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("%s: %w", statestore.Describe(o.State), err)
	}
	src.throttles = throttles
	pulse := newPulse(logger)
	parked := &letterCounts{count: box.Counts}
	counts.Ask(prom.Status{
		Ready: func() bool { return len(src.unready()) == 0 },
		Held:  func() []flow.Held { return heldFlows(src.held()) },
		DeadLetters: func() []deadletter.Count {
			counts, _ := parked.get(countEvery)
			return counts
		},
		Routes: src.routes,
	})
	if o.Listen != "off" {
		started := time.Now()
		token, file, err := o.token(env)
		if err != nil {
			return err
		}
		guard := access.NewGuard(cmp.Or(token, rand.Text()), o.AllowHosts...)
		switch {
		case token == "":
			logger.Info("the daemon refuses commands such as sluice status, because it has no token: set " + access.TokenEnv + " for the daemon and for the commands")
		case file != "":
			logger.Info("requests that read items or change something need the token of this file; commands on this machine find it", "file", file)
		}
		unready := func(r *http.Request) []string {
			reasons := whereToLook(src.unready(), len(src.waiting()))
			if !guard.Knows(r) {
				states := src.lastStates()
				reasons = append(forEverybody(reasons, states), src.calls.forEverybody(states, time.Now())...)
				reasons = append(reasons, checks.forEverybody()...)
			}
			return reasons
		}
		of := &letterServer{ctx: ctx, box: box, routes: m, fetch: Fetch(aws("dynamodb")), logger: logger}
		dlq := of.handler(o.State)
		now := func() status {
			st := src.status()
			st.Application, st.Version, st.Config, st.Started = o.Application, buildversion.Get(), config, started
			st.DeadLetters, st.CountedAt = parked.get(0)
			return st
		}
		seen := &shown{letterServer: of, o: o, src: src, status: now}
		if shared {
			seen.fleet = &fleetView{fleet: fleet, application: o.Application}
		}
		routes := throttles.routes(o.State)
		answers := endpoints{
			"GET /gaps":              listGaps(src, o.Repairs),
			"POST /gaps/acknowledge": acknowledgeGaps(src, logger),
			"GET /lanes":             lanes(func() ([]holders.Item, []string) { return seen.held(fleetEvery, listWithin) }),
			"/deadletters":           dlq, "/deadletters/": dlq,
			"POST /park": Parking(o.State, o.Application, src, logger),
			"/routes":    routes, "/routes/": routes,
		}
		if o.Pprof {
			answers["/debug/pprof/"] = profiles()
		}
		answers = protected(guard, answers)
		addPage(answers, guard, seen, statusPage(now), unready)
		answers["GET /livez"], answers["GET /startedz"], answers["GET /metrics"] = livez(o.Application, pulse.dead), startedz(src.starting), scrape.Handler(registry)
		srv, err := serve(o.Listen, answers, unready, logger)
		if err != nil {
			return err
		}
		defer srv.stop()
		defer o.publish(env, srv.address, logger)()
		defer context.AfterFunc(ctx, func() { srv.stopping.Store(true) })()
	}
	defer context.AfterFunc(ctx, func() {
		logger.Info("stopping: a second signal ends at once", "grace", o.Grace)
		st := src.status()
		if awaited := st.awaited(); len(awaited) > 0 {
			logger.Info("waiting for records to be settled; those not settled within the grace come again",
				"grace", o.Grace, "awaited", strings.Join(awaited, ", "), "reasons", strings.Join(st.Reasons, "\n"))
		}
	})()
	logger.Info("starting", "application", o.Application, "tables", o.Tables, "queues", o.Queues, "state", o.State, "routes", len(m.Routes()))
	watched, unwatch := context.WithCancel(ctx)
	telling, told := context.WithCancel(context.WithoutCancel(ctx)) // also while a stop waits for records
	var watch sync.WaitGroup
	watch.Go(func() {
		watchReady(watched, pulse.after(func() []string {
			src.held() // for its locks
			return src.unready()
		}), logger)
	})
	if shared {
		watch.Go(func() { compareFleet(watched, fleet, o.Application, config, logger) })
		if src.poller != nil {
			watch.Go(func() { src.tellOthers(telling, fleet, o.Application, logger) })
		}
	}
	watch.Go(func() { throttles.watch(watched) })
	watch.Go(func() { src.calls.watchRetries(watched, logger) })
	watch.Go(func() { src.showLife(watched, logger) })
	watch.Go(func() { src.rates.run(watched) })
	watch.Go(func() { checks.run(watched, logger) })
	// The sources heed the grace by themselves, but when the state hangs.
	err = within(ctx, o.Grace+5*time.Second, "reading", check, func() error { return src.run(ctx) })
	unwatch()
	told()
	watch.Wait()
	if err != nil {
		return err
	}
	logger.Info("stopped")
	return nil
}

// logged logs a line for each record at level debug: its position, its route and
// the outcome, never its content.
func logged(h flow.Hooks, logger *slog.Logger) flow.Hooks {
	if !logger.Enabled(context.Background(), slog.LevelDebug) {
		return h
	}
	next := h.Handled
	h.Handled = func(ctx context.Context, rec *sluice.Record, route *sluice.Route, r flow.Result, took time.Duration, err error) {
		next(ctx, rec, route, r, took, err)
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
	return h
}
