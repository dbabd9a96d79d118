package daemon

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/accounts"
	"github.com/sluicehq/sluice/internal/backoff"
	"github.com/sluicehq/sluice/internal/statestore"
	"github.com/sluicehq/sluice/sources/poller"
)

// generation is what the process runs of one configuration.
type generation struct {
	app App
	o   Options
	env func(string) string

	aws        func(service string) aws.Config
	accounts   *accounts.Accounts
	checks     *checks
	background []func(context.Context)
	cascades   *cascades
	m          sluice.Matcher
	config     string // fingerprint
	src        *sources
}

// route makes the routes and checks their sinks.
func (g *generation) route(ctx context.Context, p *process) (err error) {
	if g.aws, g.accounts, err = loadAWS(ctx, g.env, g.o, p.logger); err != nil {
		return err
	}
	g.checks, g.cascades = &checks{}, new(cascades)
	logger := everyLine(p.logger)
	m, err := g.app.routes(ctx, Setup{
		Tables: g.o.tableNames(), Queues: g.o.Queues, Env: g.env, Logger: logger, AWS: g.aws, Accounts: g.accounts,
		Metrics: p.counts, unrouted: &unrouted{logger: logger}, checks: g.checks, background: &g.background, cascades: g.cascades,
	})
	if err == nil {
		err = g.checks.start(ctx, m, g.o.RequireSinks)
	}
	if err != nil {
		return err
	}
	g.config, g.m = fingerprint(g.o, m), g.checks.hold(m)
	return nil
}

// source makes the sources.
func (g *generation) source(ctx context.Context, p *process) (err error) {
	if now := p.current.Load(); g.o.DeadLetter == "item" && (now == nil || now.o.DeadLetter != "item") {
		if err := p.box.Load(ctx); err != nil {
			return fmt.Errorf("%s: %w", statestore.Describe(g.o.State), err)
		}
	}
	g.src, err = newSources(g.o, g.m, g.checks, g.aws, g.accounts, p.store, p.box.Box, p.counts, newLife(g.m, g.o, p.stderr), p.tracer, p.logger)
	if err == nil {
		g.src.throttles = p.throttles
	}
	return err
}

// reading is a generation whose sources run.
type reading struct {
	*generation
	end     context.CancelCauseFunc
	unwatch func()        // also waits
	ended   chan struct{} // closed when the sources have ended
	err     error         // why; read after ended
}

// begin begins to read by the routes of g.
func (p *process) begin(ctx context.Context, g *generation) *reading {
	r := &reading{generation: g, ended: make(chan struct{})}
	watched, unwatch := context.WithCancel(ctx)
	telling, told := context.WithCancel(context.WithoutCancel(ctx)) // also while a stop waits for records
	var watch sync.WaitGroup
	r.unwatch = func() { unwatch(); told(); watch.Wait() }
	if p.fleet != nil {
		p.fleet.Publish(g.config)
		watch.Go(func() { compareFleet(watched, p.fleet, g.o.Application, g.config, p.logger) })
		if g.src.poller != nil {
			watch.Go(func() { g.src.tellOthers(telling, p.fleet, g.o.Application, p.logger) })
		}
	}
	p.show(watched, g)
	for _, work := range g.background {
		watch.Go(func() { work(watched) })
	}
	watch.Go(func() { g.src.calls.watchRetries(watched, p.logger) })
	watch.Go(func() { g.src.showLife(watched, p.logger) })
	watch.Go(func() { g.src.rates.run(watched) })
	watch.Go(func() { g.checks.run(watched, p.logger) })
	ctx, r.end = context.WithCancelCause(ctx)
	go func() {
		defer close(r.ended)
		// The sources heed the grace by themselves, but when the state hangs.
		r.err = within(ctx, g.o.Grace+5*time.Second, "reading", p.check, func() error { return g.src.run(ctx) })
	}()
	return r
}

// wait waits for the end.
func (r *reading) wait() error {
	<-r.ended
	r.end(nil)
	r.unwatch()
	return r.err
}

// opened waits until the sources are open. What a queue that is down holds up, goes on
// without it.
func (r *reading) opened() error {
	patience := time.After(checkStart)
	for _, open := range r.src.openings() {
		select {
		case <-open:
		case <-patience:
			return nil
		case <-r.ended:
			if r.err == nil {
				return errStopping
			}
			return r.err
		}
	}
	return nil
}

var errStopping = errors.New("the daemon stops")

// live runs g, and what replaces it, until ctx ends or a source fails for good.
func (p *process) live(ctx context.Context, g *generation) error {
	r := p.begin(ctx, g)
	close(p.reloads.up)
	for {
		select {
		case <-r.ended:
			return r.wait()
		case c := <-p.reloads.ready:
			next, err := p.replace(ctx, r, c.next)
			if c.done <- err; err != nil {
				if errors.Is(err, errStopping) {
					return nil
				}
				return err
			}
			r = next
		}
	}
}

// replace ends r and begins next. After an error nothing reads, and the process must end:
// next was checked before, so that this is a matter of the state or of a handler.
func (p *process) replace(ctx context.Context, r *reading, next *generation) (*reading, error) {
	old := r.generation
	keeping, stop := context.WithCancel(ctx)
	defer stop()
	go p.keepClaims(keeping, old)
	old.src.group.HandOver()
	r.end(&poller.HandOver{Streams: next.o.streams()})
	if err := r.wait(); err != nil {
		return nil, fmt.Errorf("the old routes have not ended well: %w", err)
	}
	if ctx.Err() != nil {
		return nil, errStopping
	}
	if err := p.returned(ctx, old); err != nil {
		return nil, err
	}
	stop()
	next.src.inherit(old.src)
	r = p.begin(ctx, next)
	if err := r.opened(); err != nil {
		_ = r.wait() // it is err
		if ctx.Err() != nil {
			err = errStopping
		}
		return nil, err
	}
	return r, nil
}

// keepClaims sends the heartbeats of g until ctx ends. Its poller may have ended while a
// queue drains or a handler runs, and no other worker may take the shards.
func (p *process) keepClaims(ctx context.Context, g *generation) {
	for g.src.poller != nil && backoff.Sleep(ctx, time.Second) == nil {
		beat, end := context.WithTimeout(ctx, time.Second)
		_ = p.store.Heartbeat(beat, g.src.poller.Owner())
		end()
	}
}

// returnWithin is the longest wait for handlers after the grace. A request to a sink may
// take a minute, and cannot be called back.
var returnWithin = 2 * time.Minute

// returned waits until no handler of g runs: beside it, a later change of its item could
// overtake.
func (p *process) returned(ctx context.Context, g *generation) error {
	for begun := time.Now(); ; {
		route := g.src.calls.running()
		switch {
		case route == "":
			return nil
		case time.Since(begun) > returnWithin:
			return fmt.Errorf("a handler of route %q has not returned within %v after the grace: the process must start again", route, returnWithin)
		}
		if backoff.Sleep(ctx, time.Second/2) != nil {
			return errStopping
		}
	}
}
