package sqs

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/sluicehq/sluice/metrics"
)

const (
	// maxDelay is the longest delay of a message.
	maxDelay = 15 * time.Minute

	maxEntries    = 10 // in one request
	maxAttributes = 10 // of one message
)

// Options configure a Queue; the zero value is ready to use.
type Options struct {
	// MaxBytes of one request, and so of one message: bodies, and names, types
	// and values of attributes (default 1 MiB, the limit of SQS). Queues made
	// before August 2025 may still have 256 KiB: Check, or the first refusal,
	// lowers MaxBytes.
	MaxBytes int

	// DeduplicationIDs says that every message for a FIFO queue has a
	// DeduplicationID. A message without one is refused before it is sent
	// (default false: Check requires content-based deduplication of a FIFO
	// queue).
	DeduplicationIDs bool

	InFlight int           // concurrent requests (default 16)
	Linger   time.Duration // see [batch.Options] (default 2 ms)
	Timeout  time.Duration // of one commit with its retries (default 30 s); one try has at most a third of it
	Attempts int           // for a temporarily refused message, in one commit (default 4)
	Backoff  time.Duration // before the second attempt, doubled each time, full jitter (default 100 ms)
	Metrics  metrics.Meter // of group commits: one request each, or several after temporary refusals (default: none)
	Sink     string        // label of the metrics (default "sqs")
	Logger   *slog.Logger  // default slog.Default()
}

func (o Options) withDefaults() Options {
	o.MaxBytes = cmp.Or(o.MaxBytes, 1<<20)
	o.Sink = cmp.Or(o.Sink, "sqs")
	o.InFlight = cmp.Or(o.InFlight, 16)
	o.Timeout = cmp.Or(o.Timeout, 30*time.Second)
	o.Attempts = cmp.Or(o.Attempts, 4)
	o.Backoff = cmp.Or(o.Backoff, 100*time.Millisecond)
	o.Logger = cmp.Or(o.Logger, slog.Default())
	return o
}

func (o Options) validate() error {
	var errs []error
	notNegative := func(name string, n int64) {
		if n < 0 {
			errs = append(errs, fmt.Errorf("sqs: Options.%s is negative; allowed are 0 (the default) and above", name))
		}
	}
	notNegative("MaxBytes", int64(o.MaxBytes))
	notNegative("InFlight", int64(o.InFlight))
	notNegative("Timeout", int64(o.Timeout))
	notNegative("Attempts", int64(o.Attempts))
	notNegative("Backoff", int64(o.Backoff))
	return errors.Join(errs...)
}
