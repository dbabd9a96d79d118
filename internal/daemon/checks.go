package daemon

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/smithy-go"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/awserror"
	"github.com/sluicehq/sluice/internal/backoff"
	"github.com/sluicehq/sluice/internal/routed"
)

// Variables, so that tests of the whole daemon need not wait.
var (
	checkStart  = 10 * time.Second // that a daemon waits for all checks at its start
	checkWithin = time.Minute      // for one check later, and at the start for a sink that is required
	checkEvery  = 5 * time.Second  // between two tries
)

// A sink that is down for a time t makes each message of its routes come again after
// 3t, within these limits. So receives become rare: four in the first half hour, and
// one an hour from the second hour on.
const (
	heldLeast = time.Minute
	heldMost  = time.Hour
)

// Check is Check of run.Setup.
func (s Setup) Check(sink string, check func(context.Context) error, routes ...string) {
	if s.checks != nil {
		s.checks.all = append(s.checks.all, &sinkCheck{sink: sink, check: check, routes: routes})
	}
}

// checks has the checks of all sinks.
type checks struct {
	all     []*sinkCheck
	holding []*sinkCheck // had not succeeded at the start

	// While every route that takes messages is held, queues are not received from:
	// SQS counts receives, and a redrive policy would move good messages away.
	receivers [][]*sinkCheck // for each route that takes messages, the checks that hold it
	receive   chan struct{}  // closed once one of these routes runs; nil: one runs from the start
	release   sync.Once      // closes receive
}

// sinkCheck is the check of one sink. While it has not succeeded, its routes are held.
type sinkCheck struct {
	sink   string
	check  func(context.Context) error
	routes []string

	passed atomic.Bool
	mu     sync.Mutex
	err    error     // of the last try
	since  time.Time // of the first one
}

// start makes all checks. Its error ends the daemon. A sink that is down is an error
// only if it is required.
func (c *checks) start(ctx context.Context, m sluice.Matcher, required bool) error {
	if err := c.name(m); err != nil {
		return err
	}
	within := checkStart
	if required { // nothing runs meanwhile, and there is no second try
		within = checkWithin
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	errs := make([]error, len(c.all))
	var running sync.WaitGroup
	for i, one := range c.all {
		running.Go(func() { errs[i] = one.try(ctx) })
	}
	running.Wait()
	for i, one := range c.all {
		if errs[i] != nil && !required && isDown(errs[i]) {
			c.holding = append(c.holding, one)
			errs[i] = nil
		}
	}
	return errors.Join(errs...)
}

// name gives a check without routes all of them, and refuses an unknown route.
func (c *checks) name(m sluice.Matcher) error {
	var names []string
	for _, r := range m.Routes() {
		names = append(names, r.Name)
	}
	for _, one := range c.all {
		if len(one.routes) == 0 {
			one.routes = names
		}
		for _, r := range one.routes {
			if !slices.Contains(names, r) {
				return fmt.Errorf("the check of sink %s names route %q: the routes are %s", one.sink, r, strings.Join(names, ", "))
			}
		}
	}
	return nil
}

func (c *sinkCheck) try(ctx context.Context) error {
	err := c.check(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.since.IsZero() {
		c.since = time.Now()
	}
	if c.err = err; err == nil {
		c.passed.Store(true)
	}
	return err
}

// isDown reports whether a check failed because its sink is down. Missing
// credentials and a certificate that is not trusted are mistakes of the deployment.
// A proxy before AWS answers in its own words: then only the HTTP status tells.
func isDown(err error) bool {
	var answer interface{ HTTPStatusCode() int } // of the AWS SDK, of opensearch, or of a sink of the application
	switch {
	case errors.As(err, new(smithy.APIError)), errors.As(err, new(*awserror.CredentialsError)):
		return awserror.Of(err).Passes()
	case awserror.Of(err) == awserror.NoCredentials, errors.As(err, new(*tls.CertificateVerificationError)):
		return false
	case errors.As(err, &answer):
		// A lower status says nothing: the rest of the answer may be lost.
		if status := answer.HTTPStatusCode(); status >= 400 {
			return status >= 500 || status == http.StatusTooManyRequests
		}
	}
	return errors.As(err, new(net.Error)) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) // a connection that broke
}

// hold returns m with each route held until the checks of its sinks have succeeded.
func (c *checks) hold(m sluice.Matcher) sluice.Matcher {
	if len(c.holding) == 0 {
		return m
	}
	takesMessages := func(int) bool { return true } // as far as is known of others' Matchers
	if known, ok := m.(interface{ TakesMessages(route int) bool }); ok {
		takesMessages = known.TakesMessages
	}
	held := routed.Rewrite(m, func(own *sluice.Route) {
		var mine []*sinkCheck
		for _, one := range c.holding {
			if slices.Contains(one.routes, own.Name) {
				mine = append(mine, one)
			}
		}
		if takesMessages(own.Index) {
			c.receivers = append(c.receivers, mine)
		}
		if len(mine) == 0 {
			return
		}
		handler := own.Handler
		own.Handler = func(ctx context.Context, rec *sluice.Record) error {
			if i := slices.IndexFunc(mine, (*sinkCheck).holds); i >= 0 {
				return mine[i].wish(rec)
			}
			return handler(ctx, rec)
		}
	})
	if len(c.receivers) > 0 {
		c.receive = make(chan struct{})
		c.receiveIfRouted()
	}
	return held
}

// receiveIfRouted starts receiving from queues once a route for messages runs.
func (c *checks) receiveIfRouted() {
	for _, mine := range c.receivers {
		if !slices.ContainsFunc(mine, (*sinkCheck).holds) {
			c.release.Do(func() { close(c.receive) })
		}
	}
}

func (c *sinkCheck) holds() bool { return !c.passed.Load() }

// wish returns the error that has flow try a held record later. flow parks nothing as
// poison for it. Each try of a message is a receive, so messages wait for longer the
// longer the sink is down.
func (c *sinkCheck) wish(rec *sluice.Record) error {
	_, isMessage := rec.Message()
	c.mu.Lock()
	defer c.mu.Unlock()
	after := checkEvery
	if isMessage {
		after = min(max(3*time.Since(c.since), heldLeast), heldMost)
	}
	return sluice.RetryAfter(after, heldError{fmt.Errorf("sink %s is not checked since %s: %w", c.sink, c.since.Format(time.RFC3339), c.err)})
}

// run makes the checks that hold routes until each has succeeded, or ctx ends.
func (c *checks) run(ctx context.Context, logger *slog.Logger) {
	var running sync.WaitGroup
	for _, one := range c.holding {
		logger.Warn("a sink is down: its routes are held until its check succeeds", "sink", one.sink, "routes", one.routes, "error", one.err)
		running.Go(func() {
			one.repeat(ctx, logger)
			c.receiveIfRouted()
		})
	}
	running.Wait()
}

func (c *sinkCheck) repeat(ctx context.Context, logger *slog.Logger) {
	down := true
	for backoff.Sleep(ctx, checkEvery) == nil {
		once, cancel := context.WithTimeout(ctx, checkWithin)
		err := c.try(once)
		cancel()
		switch {
		case err == nil:
			logger.Info("the sink is checked: its routes go on", "sink", c.sink, "routes", c.routes)
			return
		case ctx.Err() != nil:
			return
		case down && !isDown(err):
			logger.Error("the sink answers, and its check fails: its routes stay held, and nothing is parked as poison", "sink", c.sink, "routes", c.routes, "error", err)
		}
		down = isDown(err)
	}
}

// unready says which sinks hold routes, and why.
func (c *checks) unready() (reasons []string) {
	for _, one := range c.holding {
		if !one.holds() {
			continue
		}
		one.mu.Lock()
		err, since := one.err, one.since.Format(time.RFC3339)
		one.mu.Unlock()
		does, until := "fails its check", "that is mended"
		if isDown(err) {
			does, until = "is down", "it answers"
		}
		reasons = append(reasons, fmt.Sprintf("sink %s %s since %s: %v; it holds these routes until %s: %s",
			one.sink, does, since, err, until, strings.Join(one.routes, ", ")))
	}
	return reasons
}

// forEverybody names the held routes, and no error, to callers without the daemon's token.
func (c *checks) forEverybody() (all []string) {
	for _, one := range c.holding {
		if one.holds() {
			all = append(all, "a sink holds these routes: "+strings.Join(one.routes, ", "))
		}
	}
	return all
}
