package flow

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/quorum"
)

// Flow runs the records of one shard or of one Lambda batch. Its methods are safe
// for concurrent use, but only one goroutine at a time may submit.
type Flow struct {
	matcher sluice.Matcher
	opts    Options
	group   *Group
	holder  holder // opts.DeadLetter if it has Holds, under ParkItem

	ctx      context.Context // of handlers; ends a little before a Stop flow's deadline
	cancel   context.CancelCauseFunc
	unwatch  func() bool
	deadline time.Time // under Stop: when Close gives up on handlers; zero is never
	scope    quorum.Scope
	changed  chan struct{}
	room     chan struct{} // wakes the waiting Submit

	settled atomic.Uint64
	limit   atomic.Uint64 // records of this ordinal and above do not start; written under mu
	dead    atomic.Bool   // Close has returned: late handlers change nothing

	closing sync.Mutex // held by Close
	workers sync.WaitGroup
	ticks   sync.WaitGroup // of the clock, until their hooks have returned

	mu           sync.Mutex
	window       window
	lanes        lanes
	pages        []*page                // not freed yet
	held         map[*entry]struct{}    // entries with tasks
	parked       map[itemRoute]struct{} // under ParkItem without Holds
	queues       []*queue               // of waiting tasks: the dead letters', then each route's; nil if unused
	queued       int                    // tasks in queues
	turn         int                    // index of the queue to check first
	retrying     int                    // calls that take a slot for retries
	running      int                    // handlers that hold a concurrency slot
	busy         int                    // workers with an entry
	all          []*worker              // every live worker
	free         []*worker              // workers without an entry; the last is used first
	spare        int                    // workers of free that were idle since the last patrol
	clock        clock
	noMore       bool  // Close was called
	leaving      bool  // Leave was called
	joined       bool  // the group knows the flow
	cause        error // reason for limit
	over         bool  // Close has returned result
	result       result
	quiet        chan struct{} // made by Close; closed when Close need not wait
	idle         chan struct{} // closed when the flow is over and no handler runs
	awaited      bool          // a Submit waits for room
	awaitedBytes int64         // size of its record
	awaitedAt    time.Time     // since when
	unparked     teller        // dead letters that failed

	reporting sync.Mutex // orders the two reports of a stuck handler; taken before mu
}

// result is the return value of Close.
type result struct {
	settled uint64
	err     error
}

// Open starts a flow. Cancelling ctx cancels the context of the handlers and ends
// the flow: nothing new starts, and Close returns once the running handlers have.
// Open panics if o is invalid; see [Options.Validate].
func Open(ctx context.Context, m sluice.Matcher, o Options) *Flow {
	if err := o.Validate(); err != nil {
		panic(err)
	}
	o = o.withDefaults()
	f := &Flow{
		matcher: m,
		opts:    o,
		group:   o.Group,
		changed: make(chan struct{}, 1),
		room:    make(chan struct{}, 1),
		idle:    make(chan struct{}),
		window:  newWindow(o),
		lanes:   newLanes(o.Order),
		held:    map[*entry]struct{}{},
		parked:  map[itemRoute]struct{}{},
	}
	if f.group == nil {
		f.group = NewGroup(m)
	}
	if o.ParkItem {
		f.holder, _ = o.DeadLetter.(holder)
	}
	f.limit.Store(noLimit)
	f.clock.fire = f.tick

	f.ctx, f.cancel = context.WithCancelCause(ctx)
	if d, ok := ctx.Deadline(); ok && o.Policy == Stop {
		f.keepMargin(d)
	}
	f.unwatch = context.AfterFunc(f.ctx, func() { f.end(context.Cause(f.ctx)) })
	return f
}

// keepMargin schedules the end before the deadline d. From d-margin on nothing
// starts. Handlers are cancelled at half of the margin. Close gives up on
// disobedient handlers at a quarter.
func (f *Flow) keepMargin(d time.Time) {
	margin := f.opts.Margin
	if margin == 0 {
		left := time.Until(d)
		margin = min(max(time.Second, left/10), left/2)
	}
	f.deadline = d.Add(-margin / 4)
	parent := f.cancel
	ctx, cancel := context.WithDeadlineCause(f.ctx, d.Add(-margin/2), errDeadline)
	f.ctx = ctx
	f.cancel = func(cause error) { parent(cause); cancel() }
	f.mu.Lock()
	defer f.mu.Unlock()
	if start := d.Add(-margin); time.Now().Before(start) {
		f.clock.marginAt = start
		f.clock.arm(start)
	} else {
		f.stop(0, errDeadline)
	}
}

// Settled returns the watermark: the number of records, counted from the first
// submitted, that are durable without a gap.
func (f *Flow) Settled() uint64 { return f.settled.Load() }

// Unsettled returns which of the records up to number submitted, counted from the first
// one, are not settled: at most that many. Nothing is said of later records. After Close
// the result no longer changes.
func (f *Flow) Unsettled(most int) (unsettled []uint64, submitted uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.window.unsettled(most)
}

// Changed returns a channel that receives a value after Settled has grown. Signals
// coalesce. The channel is never closed.
func (f *Flow) Changed() <-chan struct{} { return f.changed }

// Idle returns a channel that is closed once the flow has ended and every handler
// has returned, including handlers that Close did not wait for.
func (f *Flow) Idle() <-chan struct{} { return f.idle }
