package batch

import (
	"cmp"
	"fmt"
	"time"

	"github.com/sluicehq/sluice/metrics"
)

// Options are the limits of a Batcher. The zero value is ready to use.
type Options struct {
	MaxItems int           // items in one commit (default 100)
	MaxBytes int           // bytes in one commit, by the size func; a larger item goes alone (default: no limit)
	InFlight int           // commits at a time (default 4)
	Linger   time.Duration // how long a batch waits for more without a due signal (default 2 ms; negative: for ever, for tests)
	Timeout  time.Duration // of one commit (default 30 s)
	Metrics  metrics.Meter // of commits (default: none)
	Sink     string        // label of the metrics (default "batch"), name of the span
	Untraced bool          // a commit has no span: its function makes spans itself
}

func (o Options) withDefaults() Options {
	o.MaxItems = cmp.Or(o.MaxItems, 100)
	o.Sink = cmp.Or(o.Sink, "batch")
	o.InFlight = cmp.Or(o.InFlight, 4)
	o.Linger = cmp.Or(o.Linger, 2*time.Millisecond)
	o.Timeout = cmp.Or(o.Timeout, 30*time.Second)
	return o
}

func (o Options) validate(sized bool) error {
	switch {
	case o.MaxItems < 0:
		return fmt.Errorf("batch: Options.MaxItems is %d; allowed are 0 (100) and above", o.MaxItems)
	case o.MaxBytes < 0:
		return fmt.Errorf("batch: Options.MaxBytes is %d; allowed are 0 (no limit) and above", o.MaxBytes)
	case o.MaxBytes > 0 && !sized:
		return fmt.Errorf("batch: Options.MaxBytes is %d, but there is no size function to count with", o.MaxBytes)
	case o.InFlight < 0:
		return fmt.Errorf("batch: Options.InFlight is %d; allowed are 0 (4) and above", o.InFlight)
	case o.Timeout < 0:
		return fmt.Errorf("batch: Options.Timeout is %v; allowed are 0 (30s) and above", o.Timeout)
	}
	return nil
}
