package opensearch

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/sluicehq/sluice/metrics"
)

// Options configure a Sink; the zero value is ready to use.
type Options struct {
	MaxItems int // documents in one request (default 5,000)
	MaxBytes int // bytes of one request before compression; a larger document goes alone (default 2 MiB)
	InFlight int // concurrent requests at most (default 8); fewer while the cluster is overloaded

	// WaitBytes limits the bytes of all calls together, from their start to
	// their end (default 64 MiB). Other calls wait, until their contexts end. A
	// larger call goes alone.
	WaitBytes int

	Linger  time.Duration // see [batch.Options] (default 2 ms)
	Timeout time.Duration // of a write with its retries, from its first try on (default 60 s); one try has at most a third of it
	Backoff time.Duration // before the second try, doubled each time up to 1,000-fold, full jitter (default 100 ms)

	// GzipAbove compresses requests of more bytes (default 64 KiB). By default
	// it is off for a cluster on this machine and for OpenSearch Serverless.
	// Negative is never.
	GzipAbove int

	// RequireAlias makes the cluster refuse writes to an Index that is not an
	// alias, instead of creating a missing index.
	RequireAlias bool

	Metrics metrics.Meter // of group commits, requests and documents (default: none)
	Sink    string        // label of the commits (default "opensearch")
}

func (o Options) withDefaults() Options {
	o.Sink = cmp.Or(o.Sink, "opensearch")
	o.MaxItems, o.MaxBytes = cmp.Or(o.MaxItems, 5000), cmp.Or(o.MaxBytes, 2<<20)
	o.InFlight, o.WaitBytes = cmp.Or(o.InFlight, 8), cmp.Or(o.WaitBytes, 64<<20)
	o.Timeout = cmp.Or(o.Timeout, time.Minute)
	o.Backoff = cmp.Or(o.Backoff, 100*time.Millisecond)
	return o
}

func (o Options) validate() error {
	var errs []error
	notNegative := func(name string, n int64) {
		if n < 0 {
			errs = append(errs, fmt.Errorf("opensearch: Options.%s is negative; allowed are 0 (the default) and above", name))
		}
	}
	notNegative("MaxItems", int64(o.MaxItems))
	notNegative("MaxBytes", int64(o.MaxBytes))
	notNegative("InFlight", int64(o.InFlight))
	notNegative("WaitBytes", int64(o.WaitBytes))
	notNegative("Timeout", int64(o.Timeout))
	notNegative("Backoff", int64(o.Backoff))
	return errors.Join(errs...)
}
