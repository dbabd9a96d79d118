package dynamodb

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluicehq/sluice/metrics"
)

// Options configure a Store; the zero value is ready to use.
type Options struct {
	// Budget limits the write capacity that the Store takes of a table, in
	// units per second, averaged over seconds and measured by the consumption
	// that the service reports. An unnamed table has no limit.
	Budget map[string]float64

	// Keys has the names of the key attributes of tables: the partition key and
	// any sort key. For an unnamed table DescribeTable is called once, before
	// the first Put.
	Keys map[string][]string

	InFlight int           // concurrent requests of Put and Delete, of Once, and of DeleteGuarded with a condition (default 16)
	Linger   time.Duration // see [batch.Options] (default 2 ms; of Once 1 ms)
	Timeout  time.Duration // of one commit, or one read, with its retries (default 30 s); one try has at most a third of it
	Attempts int           // after temporary refusals, in one commit (default 8)
	Backoff  time.Duration // before the second attempt, doubled each time, full jitter (default 50 ms)
	Metrics  metrics.Meter // of group commits, and of the capacity units that tables report (default: none)
	Sink     string        // label of the commits (default "dynamodb")
}

var writeUnits = metrics.New(metrics.Metric{Name: "sluice_write_units_total", Help: "Write units of sinks.", Labels: []string{"table"}})

func (o Options) withDefaults() Options {
	o.Sink = cmp.Or(o.Sink, "dynamodb")
	o.InFlight = cmp.Or(o.InFlight, 16)
	o.Timeout = cmp.Or(o.Timeout, 30*time.Second)
	o.Attempts = cmp.Or(o.Attempts, 8)
	o.Backoff = cmp.Or(o.Backoff, 50*time.Millisecond)
	return o
}

func (o Options) validate() error {
	var errs []error
	notNegative := func(name string, n int64) {
		if n < 0 {
			errs = append(errs, fmt.Errorf("dynamodb: Options.%s is negative; allowed are 0 (the default) and above", name))
		}
	}
	notNegative("InFlight", int64(o.InFlight))
	notNegative("Timeout", int64(o.Timeout))
	notNegative("Attempts", int64(o.Attempts))
	notNegative("Backoff", int64(o.Backoff))
	for table, units := range o.Budget {
		if !(units > 0) {
			errs = append(errs, fmt.Errorf("dynamodb: Options.Budget of table %q is %v; want more than 0 write units a second", table, units))
		}
	}
	for table, keys := range o.Keys {
		if len(keys) < 1 || len(keys) > 2 || slices.Contains(keys, "") || len(keys) == 2 && keys[0] == keys[1] {
			errs = append(errs, fmt.Errorf("dynamodb: Options.Keys of table %q are %q; want the names of the partition key and, where there is one, the sort key", table, keys))
		}
	}
	return errors.Join(errs...)
}
