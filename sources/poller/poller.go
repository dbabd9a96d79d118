package poller

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/latectx"
	"github.com/sluicehq/sluice/internal/streamsapi"
	"github.com/sluicehq/sluice/sources/poller/internal/checkpoints"
	"github.com/sluicehq/sluice/sources/poller/internal/quota"
	"github.com/sluicehq/sluice/state"
)

// Poller reads streams and hands their records to the routes of a Matcher.
type Poller struct {
	cfg     aws.Config
	matcher sluice.Matcher
	o       Options

	api         *streamsapi.Client
	tables      *dynamodb.Client
	store       *store
	owner       owner
	movers      movers
	checkpoints *checkpoints.Checkpointer
	gauges      gauges
	quotas      *quota.Pool
	clock       clock
	health      *health
	gaps        *gaps
	ran         atomic.Bool
	opened      chan struct{}
	prepared    *prepared // by Prepare
}

// New returns a Poller that calls the service with cfg. It makes no call. Its
// error names a wrong option, or says that there is no route.
func New(cfg aws.Config, m sluice.Matcher, o Options) (*Poller, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	if m == nil {
		return nil, errors.New("poller: the matcher is nil: give a router")
	}
	if len(m.Routes()) == 0 {
		return nil, errors.New("poller: there is no route: nothing would be handled")
	}
	if o.Flow.Group == nil {
		o.Flow.Group = flow.NewGroup(m)
	}
	o.Flow.Logger = cmp.Or(o.Flow.Logger, o.Logger)
	p := &Poller{cfg: cfg, matcher: m, o: o, opened: make(chan struct{}), health: newHealth(),
		movers: movers{all: make(map[state.Lease]mover)}, gauges: gauges{set: make(map[*gauge]struct{})},
		api: streamsapi.New(cfg), tables: dynamodb.NewFromConfig(streamsapi.Tuned(cfg))}
	p.owner.begin(o.Owner, o.Store)
	p.quotas = quota.NewPool(o.MaxMemory, len(o.Streams), o.CallsPerTable)
	p.store = newStore(o, p.health)
	c := checkpoints.Config{Store: p.store, Every: o.CheckpointEvery, Done: p.checkpointed, RetryIn: storeRetry, Panicked: panicked}
	if p.owner.silent > 0 {
		c.PerSecond = sharedPositions
	}
	p.checkpoints = checkpoints.New(c)
	p.gaps = newGaps(o, p.store)
	return p, nil
}

// sharedPositions limits the positions that a worker stores in a second, on average, in
// a store that several processes share: a DynamoDB table bills about 32 USD a month for
// them. With more moving shards each waits longer for its turn.
const sharedPositions = 20

// Run reads until ctx ends, and then returns within Options.Grace: readers stop,
// the flows settle their records, the positions are stored and the shards
// released. It returns nil after an orderly end, even if records are unsettled:
// they come again. It returns an error when a stream cannot start (a *StreamError,
// or a missing start) or a last position could not be stored. Nothing else ends
// Run; see NotReady. Call Run once.
func (p *Poller) Run(ctx context.Context) error {
	if p.ran.Swap(true) {
		return errors.New("poller: Run was called before: make a new Poller")
	}
	writes, end := latectx.After(ctx, p.o.Grace-p.reserve()/10)
	defer end()
	over, endOver := latectx.After(ctx, p.o.Grace)
	defer endOver()
	defer context.AfterFunc(over, p.store.leave)()
	beats, endBeats := context.WithCancel(context.WithoutCancel(ctx))
	var background sync.WaitGroup
	beat := func() { background.Go(func() { p.survive(beats, heartbeat, func() { p.beat(beats) }) }) }
	early := p.prepared != nil // the owner may have claims
	if early {
		beat()
	}
	following, err := p.open(ctx)
	if err != nil {
		endBeats()
		background.Wait()
		if ctx.Err() != nil {
			return nil // stopped before the start
		}
		return err
	}
	close(p.opened)
	p.loadGaps(ctx)
	p.health.begin(following)
	defer p.health.begin(nil)

	background.Go(func() { p.survive(beats, storePositions, func() { p.checkpoints.Run(beats, writes) }) })
	if !early {
		beat()
	}
	background.Go(func() { p.survive(beats, listGaps, func() { p.watchGaps(beats) }) })
	if store, ok := p.o.Store.(giver); ok {
		_ = recovered(func() error { p.moveShards(beats, store, false); return nil })
		background.Go(func() { p.survive(beats, moveShards, func() { p.balance(ctx, beats, store) }) })
	}

	errs := make([]error, len(following))
	var reading sync.WaitGroup
	for i, f := range following {
		reading.Go(func() { errs[i] = f.run(ctx) })
	}
	reading.Wait()
	endBeats()
	background.Wait()
	return errors.Join(errs...)
}

// Opened returns a channel that is closed when Run has opened every stream. After
// that Run no longer returns an error of the start.
func (p *Poller) Opened() <-chan struct{} { return p.opened }

// HandOver is a cause for the end of Run's context, by [context.WithCancelCause]: another
// Poller of this process, with the same Store, reads Streams from now on, and inherits the
// owner. Run then keeps the shards of these claimed, so that no other worker takes them.
type HandOver struct{ Streams []Stream }

func (h *HandOver) Error() string { return "the shards are handed over within the process" }

// handedOver reports whether ctx has ended because another Poller of this process reads
// on. With a stream the Poller must read that one.
func handedOver(ctx context.Context, s ...Stream) bool {
	h, ok := context.Cause(ctx).(*HandOver)
	return ok && (len(s) == 0 || slices.Contains(h.Streams, s[0]))
}

// terms are the contexts that end one after another after Run's.
type terms struct {
	flows    context.Context // its end starts no records and cancels handlers
	handlers context.Context // its end gives up on handlers that ignore that
	writes   context.Context // its end stops calls to the store
}

// terms returns the terms for ctx, and a function that ends them.
func (p *Poller) terms(ctx context.Context) (t terms, end func()) {
	var ends [3]context.CancelFunc
	t.flows, ends[0] = latectx.After(ctx, p.o.Grace-p.reserve())
	t.handlers, ends[1] = latectx.After(ctx, p.o.Grace-p.reserve()/2)
	t.writes, ends[2] = latectx.After(ctx, p.o.Grace-p.reserve()/10)
	return t, func() {
		for _, end := range ends {
			end()
		}
	}
}

// reserve is the part of Grace for cancelled handlers to return, and for the last
// writes. A cancelled write must return in its last tenth.
func (p *Poller) reserve() time.Duration { return min(p.o.Grace/4, 3*time.Second) }

func held(err error) bool { return errors.Is(err, state.ErrHeld) }
