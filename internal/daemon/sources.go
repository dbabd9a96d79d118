package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/accounts"
	"github.com/sluicehq/sluice/internal/awserror"
	"github.com/sluicehq/sluice/internal/holders"
	"github.com/sluicehq/sluice/internal/snapshot"
	"github.com/sluicehq/sluice/metrics/prom"
	"github.com/sluicehq/sluice/sources/poller"
	"github.com/sluicehq/sluice/sources/queue"
)

// sources are the sources of a daemon. Streams, tables and queues share the routes
// and their limits, the dead letters, and the time to stop.
type sources struct {
	group     *flow.Group
	checks    *checks
	calls     *calls
	life      *life
	rates     *rates
	repairs   []string // see Options.Repairs
	letters   *kept
	throttles *throttles
	ended     func()         // forgets series that only these sources have
	poller    *poller.Poller // nil without tables
	backfills backfills
	consumer  *queue.Consumer // nil without queues
}

func newSources(o Options, m sluice.Matcher, checks *checks, aws func(string) aws.Config, all *accounts.Accounts, store snapshot.Store, box *deadletter.Box, metrics *prom.Metrics, life *life, tracer flow.Tracer, logger *slog.Logger) (s *sources, err error) {
	calls, m := watchCalls(m)
	group := flow.NewGroup(m)
	letters := &kept{Box: box, logger: logger}
	if file, ok := store.(interface{ DamagedLetters() error }); ok {
		letters.damaged = file.DamagedLetters
	}
	s = &sources{group: group, checks: checks, calls: calls, life: life, rates: newRates(m), repairs: o.Repairs, letters: letters}
	hooks := metrics.Flow(m)
	hooks.Handled, hooks.Tracer = inTurn(life.handled, s.rates.handled, calls.handled, letters.handled, hooks.Handled, logged(logger)), tracer
	flows := o.Limits
	flows.DeadLetter, flows.ParkItem, flows.Group, flows.Hooks, flows.Logger = letters, o.DeadLetter == "item", group, hooks, logger
	grace := o.Grace - min(time.Second, o.Grace/10) // the rest is for the following steps
	streamHooks := metrics.Poller()
	s.ended = func() { streamHooks.Memory(0, 0, 0) }
	if shared, ok := store.(sharedStore); ok {
		streamHooks = letters.adopted(streamHooks, shared)
	}
	if len(o.Tables) > 0 {
		s.poller, err = poller.New(aws("dynamodb"), m, poller.Options{
			Application:  o.Application,
			Streams:      o.streams(),
			Store:        store,
			Start:        o.Start,
			StartName:    cmp.Or(o.StartName, "--start"),
			EndpointName: endpointName(o),
			Flow:         flows,
			StartTimeout: o.startTimeout,
			Grace:        grace,
			Hooks:        streamHooks,
			Logger:       logger,
		})
		if err != nil {
			return nil, err
		}
	}
	if o.Backfill {
		s.backfills.after, s.backfills.logger = s.poller.Opened(), logger
		for _, table := range o.tableNames() {
			one, err := snapshot.New(aws("dynamodb"), m, snapshot.Options{
				Application: o.Application,
				Table:       table,
				Store:       store,
				Scan:        snapshot.ScanOptions{ReadUnits: o.BackfillUnits, StartTimeout: o.startTimeout, Hooks: metrics.Scan(), Logger: logger},
				Flow:        flows,
				Grace:       grace,
				Hooks:       metrics.Backfill(),
			})
			if err != nil {
				return nil, fmt.Errorf("--backfill (%s): %w", envOf["backfill"], err)
			}
			s.backfills.all = append(s.backfills.all, one)
		}
	}
	if len(o.Queues) > 0 {
		// A daemon whose streams cannot be opened takes no message with it,
		// which would be hidden for a minute and have one receive more.
		var opened <-chan struct{}
		if s.poller != nil {
			opened = s.poller.Opened()
		}
		s.consumer, err = queue.New(aws("sqs"), m, queue.Options{
			Queues:       o.Queues,
			Configs:      o.consumed(aws("sqs"), all),
			After:        opened,
			Hold:         checks.receive,
			DeadLetter:   letters,
			Concurrency:  o.Limits.Concurrency,
			StuckAfter:   o.Limits.StuckAfter,
			Group:        group,
			StartTimeout: o.startTimeout,
			Patient:      len(o.Tables) > 0 && !o.RequireSinks, // the streams' routes have work meanwhile
			Grace:        grace,
			Hooks:        metrics.Queue(),
			FlowHooks:    hooks,
			Logger:       logger,
		})
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

// consumed returns the configurations of queues that are not in the account of sqs.
func (o Options) consumed(sqs aws.Config, all *accounts.Accounts) map[string]aws.Config {
	configs := map[string]aws.Config{}
	for queue, at := range o.Consumed {
		configs[queue] = all.Within(sqs, at)
	}
	return configs
}

// run runs them side by side until ctx ends. When one cannot start, the other
// is stopped as if ctx had ended.
func (s *sources) run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var running sync.WaitGroup
	var errs [2]error
	if s.poller != nil {
		running.Go(func() { defer stop(); errs[0] = s.poller.Run(ctx) })
	}
	if len(s.backfills.all) > 0 { // which are over some time, and stop nothing
		running.Go(func() { s.backfills.run(ctx) })
	}
	if s.consumer != nil {
		running.Go(func() { defer stop(); errs[1] = s.consumer.Run(ctx) })
	}
	running.Wait()
	s.ended()
	return errors.Join(errs[:]...)
}

// prepare checks streams and queues before they are read.
func (s *sources) prepare(ctx context.Context) error {
	if s.poller != nil {
		if err := s.poller.Prepare(ctx); err != nil {
			return err
		}
	}
	if s.consumer != nil {
		return s.consumer.Prepare(ctx)
	}
	return nil
}

// inherit takes over from sources that have ended what the routes of the same name had.
func (s *sources) inherit(old *sources) {
	s.group.Inherit(old.group)
	if s.poller != nil && old.poller != nil {
		s.poller.Inherit(old.poller)
	}
	s.rates.inherit(old.rates)
}

// unready returns why they do not do their work, and nothing when they do.
func (s *sources) unready() (reasons []string) {
	reasons = s.checks.unready()
	if s.poller != nil {
		reasons = append(reasons, s.poller.NotReady()...)
	}
	reasons = append(reasons, s.backfills.unready()...)
	if s.consumer != nil {
		reasons = append(reasons, s.consumer.NotReady()...)
	}
	reasons = append(s.calls.reasons(reasons, s.lastStates()), s.letters.unready()...)
	for i, r := range reasons {
		reasons[i] = awserror.Plain(r)
	}
	return withRepair(reasons, s.Gaps(), s.repairs)
}

// showLife reports the sources until ctx ends.
func (s *sources) showLife(ctx context.Context, logger *slog.Logger) {
	var lag func() time.Duration
	if s.poller != nil {
		lag = s.poller.Lag
	}
	s.life.watch(ctx, logger, lag, func() int { return len(s.waiting()) })
}

// routes returns the current state of every route, then of the routes that fail for
// all messages of a queue.
func (s *sources) routes() []flow.RouteState { return s.calls.present(s.lastStates(), time.Now()) }

// lastStates returns the states of the routes by their last calls.
func (s *sources) lastStates() []flow.RouteState {
	all := s.group.States()
	if s.consumer != nil {
		all = append(all, s.consumer.Outages()...)
	}
	return all
}

// held lists the items that wait for a retry or a stuck handler, the oldest
// first. A queue holds none: a message that failed is with SQS.
func (s *sources) held() (all []holders.Item) {
	if s.poller != nil {
		for _, h := range s.poller.Held() {
			all = append(all, itemOf("stream", h.Shard.Table, h.Shard.ID, h.Held))
		}
	}
	all = append(all, s.backfills.held()...)
	slices.SortStableFunc(all, func(a, b holders.Item) int { return cmp.Compare(b.AgeSeconds, a.AgeSeconds) })
	return all
}

// waiting are the items that wait, and the calls that run for long.
func (s *sources) waiting() []holders.Item { return s.calls.lanes(s.held()) }

// States returns the state of every route.
func (s *sources) States() []flow.RouteState { return s.group.States() }

// Park parks the records that a route fails for. A message of a queue is with SQS.
func (s *sources) Park(route string, dryRun bool) (parked, pending int) {
	if s.poller != nil {
		parked, pending = s.poller.Park(route, dryRun)
	}
	for _, b := range s.backfills.all {
		n, more := b.Park(route, dryRun)
		parked, pending = parked+n, pending+more
	}
	return parked, pending
}

// Gaps are those of the streams: a queue has none.
func (s *sources) Gaps() []sluice.Gap {
	if s.poller == nil {
		return nil
	}
	return s.poller.Gaps()
}

func (s *sources) AcknowledgeGaps(ctx context.Context, gaps ...sluice.Gap) error {
	if s.poller == nil {
		return nil
	}
	return s.poller.AcknowledgeGaps(ctx, gaps...)
}

// endpointName returns the name of the setting of DynamoDB's endpoint; "" if
// unknown here.
func endpointName(o Options) string {
	if o.EndpointName != "" || o.Endpoint == "" {
		return o.EndpointName
	}
	return "--endpoint-dynamodb (" + envOf["endpoint-dynamodb"] + ")"
}
