package queue

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/sluicehq/sluice/flow"
)

const (
	maxBatch     = 10                     // messages or entries in one call
	maxWait      = 20 * time.Second       // of one ReceiveMessage
	maxHold      = 12 * time.Hour         // from a receive to the end of all visibility
	minHold      = 5 * time.Second        // less leaves no time to extend it
	retentionOf  = 4 * 24 * time.Hour     // SQS's default
	ofRetention  = 0.8                    // of it a failing message is parked
	stallAfter   = 5 * time.Minute        // messages in hand of which none comes to its end
	maxReceivers = 4                      // of one queue
	retryDelay   = 100 * time.Millisecond // of calls, doubled each time
	maxDelay     = 30 * time.Second
)

// Options configure a Consumer. Queues is required; the zero value of
// everything else is the default.
type Options struct {
	Queues []string // names or URLs

	// DeadLetter takes messages that failed for good. nil: they stay in the
	// queue, for its own redrive policy.
	DeadLetter flow.DeadLetter

	// Concurrency is how many messages of each queue are in hand at most:
	// received, and neither deleted nor given back. What cannot be started is
	// not received (default 64).
	Concurrency int

	// MaxReceives is after how many receives a message that keeps failing,
	// while its route succeeds for others, is parked; Attempts of its route
	// goes before. The default of 16 is three quarters of an hour of tries: by
	// then the backoff has been at its most several times, and whatever passes
	// by itself has passed.
	MaxReceives int

	// Visibility is how long a message is hidden from others. It is extended
	// at half of it for as long as the message is in hand; after a crash the
	// message comes again when it is over (default 1 min).
	Visibility time.Duration
	Wait       time.Duration // of one ReceiveMessage for messages to come (default 20 s, SQS's most)

	// A message that failed comes again after Backoff, doubled with each
	// receive up to MaxBackoff, with full jitter; its route's go before.
	Backoff    time.Duration // default 1 s
	MaxBackoff time.Duration // default 15 min

	CallTimeout  time.Duration // of one call to SQS, besides Wait (default 10 s)
	StartTimeout time.Duration // for SQS to answer at the start (default 5 s)

	// Patient has a queue be opened later that SQS gives no answer about within
	// StartTimeout. Until it is open the consumer is not ready, and no error ends Run.
	Patient bool

	Grace      time.Duration // from the cancelling of Run's context to its return (default 25 s)
	StuckAfter time.Duration // a handler running longer is reported (default 1 min)

	// After, when it is closed, lets the consumer receive. Queues are opened
	// before, so that what is wrong with them is told at once (default: at once).
	After <-chan struct{}

	// Hold, until it is closed, keeps an open consumer from receiving, such as while no
	// route could handle a message: each receive counts for the queue's redrive policy.
	// It says nothing of the consumer's health (default: nothing is held).
	Hold <-chan struct{}

	Group     *flow.Group // limits of the routes that are shared with other sources (default: the consumer's own)
	Hooks     Hooks
	FlowHooks flow.Hooks   // of each message's flow; a failed message is Retried when it comes again
	Logger    *slog.Logger // default slog.Default()
}

// Hooks are called as things happen, from the goroutine that made them happen;
// nil ones are passed over. They must be fast, must not block, and may be
// called concurrently. queue is its name.
type Hooks struct {
	// Received is called after each ReceiveMessage.
	Received func(queue string, c Call)
	// Deleted is called after each DeleteMessageBatch.
	Deleted func(queue string, c Call)
	// Changed is called after each ChangeMessageVisibilityBatch.
	Changed func(queue string, c Call)
	// Ended is called when a message is in hand no more.
	Ended func(queue string, e End)
	// Hand is called several times within Visibility.
	Hand func(queue string, h Hand)
}

// Call is one finished call to SQS.
type Call struct {
	Messages int
	Failed   int // of them, also all of a call that failed as a whole
	Took     time.Duration
	Err      error // of the call as a whole
}

// Hand is what a consumer has of a queue.
type Hand struct {
	Messages int
	Oldest   time.Duration // since it was received; 0 when there is none
}

// End is how a message left the hand.
type End string

const (
	EndSettled  End = "settled"  // handled or skipped, and deleted
	EndParked   End = "parked"   // in the dead letters, and deleted
	EndReturned End = "returned" // failed: it comes again after its backoff
	EndUnused   End = "unused"   // not started: it comes again at once, or after the one before it in its group
	EndLost     End = "lost"     // somebody else may have it, or its handler did not return in time: it comes again
)

func (o Options) withDefaults() Options {
	set(&o.Concurrency, 64)
	set(&o.MaxReceives, 16)
	set(&o.Visibility, time.Minute)
	set(&o.Wait, maxWait)
	set(&o.Backoff, time.Second)
	set(&o.MaxBackoff, max(15*time.Minute, o.Backoff))
	set(&o.CallTimeout, 10*time.Second)
	set(&o.StartTimeout, 5*time.Second)
	set(&o.Grace, 25*time.Second)
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o
}

func set[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// validate looks at options that have their defaults.
func (o Options) validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("queue: "+format, args...)) }
	if len(o.Queues) == 0 {
		bad("Options.Queues is empty: name at least one queue, or give its URL")
	}
	for i, q := range o.Queues {
		if slices.Contains(o.Queues[:i], q) {
			bad("Options.Queues[%d]: %q is named twice", i, q)
		}
	}
	if o.Concurrency < 0 {
		bad("Options.Concurrency is %d: want 1 at least, or 0 for the default", o.Concurrency)
	}
	if o.MaxReceives < 0 {
		bad("Options.MaxReceives is %d: want 1 at least, or 0 for the default", o.MaxReceives)
	}
	if o.Visibility < minHold || o.Visibility > maxHold {
		bad("Options.Visibility is %v: want %v to %v, or 0 for the default", o.Visibility, minHold, maxHold)
	}
	if o.Wait < time.Second || o.Wait > maxWait {
		bad("Options.Wait is %v: want 1s to %v, or 0 for the default", o.Wait, maxWait)
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"Backoff", o.Backoff}, {"MaxBackoff", o.MaxBackoff}, {"CallTimeout", o.CallTimeout},
		{"StartTimeout", o.StartTimeout}, {"Grace", o.Grace}, {"StuckAfter", o.StuckAfter},
	} {
		if d.value < 0 {
			bad("Options.%s is %v: want more than 0, or 0 for the default", d.name, d.value)
		}
	}
	if o.MaxBackoff < o.Backoff {
		bad("Options.MaxBackoff is %v: want at least Backoff (%v)", o.MaxBackoff, o.Backoff)
	}
	return errors.Join(errs...)
}
