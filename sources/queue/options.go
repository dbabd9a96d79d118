package queue

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sluicehq/sluice/flow"
)

const (
	maxBatch     = 10                     // messages or entries per call
	maxWait      = 20 * time.Second       // of one ReceiveMessage
	maxHold      = 12 * time.Hour         // from a receive to the end of all visibility timeouts
	minHold      = 5 * time.Second        // a shorter time could not be extended
	retentionOf  = 4 * 24 * time.Hour     // SQS's default
	ofRetention  = 0.8                    // share of the retention after which a failing message is parked
	stallAfter   = 5 * time.Minute        // time without an end of any message in hand
	maxReceivers = 4                      // of one queue
	retryDelay   = 100 * time.Millisecond // of calls, doubled each time
	maxDelay     = 30 * time.Second
)

// Options configure a Consumer. Queues is required. Every other zero value selects
// its default.
type Options struct {
	Queues []string // names or URLs

	// Configs has the configurations of queues that need another than New's, such as
	// queues of another account, by their text in Queues.
	Configs map[string]aws.Config

	// DeadLetter stores messages that failed for good. nil: they stay in the
	// queue, for its own redrive policy.
	DeadLetter flow.DeadLetter

	// Concurrency limits the messages of each queue in hand: received, and not
	// yet deleted or returned. Messages that cannot start are not received
	// (default 64).
	Concurrency int

	// MaxReceives is the number of receives after which a failing message is
	// parked, while its route succeeds for others; Attempts of its route
	// overrides it. The default of 16 means three quarters of an hour of tries.
	// By then the backoff was several times at its maximum, and temporary
	// failures have passed.
	MaxReceives int

	// Visibility is how long a message is hidden from others. It is extended at
	// half of it while the message is in hand. After a crash the message comes
	// again when it is over (default 1 min).
	Visibility time.Duration
	Wait       time.Duration // long-poll time of one ReceiveMessage (default 20 s, the maximum of SQS)

	// A failed message comes again after Backoff, doubled with each receive up
	// to MaxBackoff, with full jitter. The route's own values override these.
	Backoff    time.Duration // default 1 s
	MaxBackoff time.Duration // default 15 min

	CallTimeout  time.Duration // of one call to SQS, without Wait (default 10 s)
	StartTimeout time.Duration // for SQS to answer at the start (default 5 s)

	// Patient opens a queue later if SQS does not respond within StartTimeout.
	// Until then the consumer is not ready, and no error ends Run.
	Patient bool

	Grace      time.Duration // from the cancelling of Run's context to its return (default 25 s)
	StuckAfter time.Duration // a handler that runs longer is reported (default 1 min)

	// After lets the consumer receive once it is closed. Queues are opened
	// before, so that mistakes are reported at once (default: at once).
	After <-chan struct{}

	// Hold stops an open consumer from receiving until it is closed, for
	// example while no route can handle messages: each receive counts for the
	// queue's redrive policy. It does not affect the consumer's health
	// (default: no hold).
	Hold <-chan struct{}

	Group     *flow.Group // limits of the routes that are shared with other sources (default: the consumer's own)
	Hooks     Hooks
	FlowHooks flow.Hooks   // of each message's flow; a failed message that comes again is Retried
	Logger    *slog.Logger // default slog.Default()
}

// Hooks observe a consumer. They run on the goroutine of the event and may be nil.
// They must be fast, must not block, and may run concurrently. queue is the
// queue's name.
type Hooks struct {
	// Received is called after each ReceiveMessage.
	Received func(queue string, c Call)
	// Deleted is called after each DeleteMessageBatch.
	Deleted func(queue string, c Call)
	// Changed is called after each ChangeMessageVisibilityBatch.
	Changed func(queue string, c Call)
	// Ended is called when a message leaves the hand.
	Ended func(queue string, e End)
	// Hand is called several times within Visibility.
	Hand func(queue string, h Hand)
}

// Call is one finished call to SQS.
type Call struct {
	Messages int
	Failed   int // failed ones; all of a call that failed as a whole
	Took     time.Duration
	Err      error // of the call as a whole
}

// Hand is the messages of a queue in hand.
type Hand struct {
	Messages int
	Oldest   time.Duration // since its receive; 0 without a message
}

// End is how a message left the hand.
type End string

const (
	EndSettled  End = "settled"  // handled or skipped, and deleted
	EndParked   End = "parked"   // in the dead letters, and deleted
	EndReturned End = "returned" // failed: it comes again after its backoff
	EndUnused   End = "unused"   // not started: it comes again at once, or after the one before it in its group
	EndLost     End = "lost"     // another consumer may have it, or its handler did not return in time: it comes again
)

func (o Options) withDefaults() Options {
	o.Concurrency = cmp.Or(o.Concurrency, 64)
	o.MaxReceives = cmp.Or(o.MaxReceives, 16)
	o.Visibility = cmp.Or(o.Visibility, time.Minute)
	o.Wait = cmp.Or(o.Wait, maxWait)
	o.Backoff = cmp.Or(o.Backoff, time.Second)
	o.MaxBackoff = cmp.Or(o.MaxBackoff, max(15*time.Minute, o.Backoff))
	o.CallTimeout = cmp.Or(o.CallTimeout, 10*time.Second)
	o.StartTimeout = cmp.Or(o.StartTimeout, 5*time.Second)
	o.Grace = cmp.Or(o.Grace, 25*time.Second)
	o.Logger = cmp.Or(o.Logger, slog.Default())
	return o
}

// validate checks options after defaults were set.
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
