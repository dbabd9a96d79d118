// Package lambdatraces adds traces to a Lambda function.
package lambdatraces

import (
	"context"
	"time"

	"github.com/sluicehq/sluice/sources/lambda"
	"github.com/sluicehq/sluice/tracing"
)

// flushAtMost is how long the answer of an invocation waits for a collector, such as the
// extension of an ADOT layer.
const flushAtMost = time.Second

// Start adds the traces that the environment asks for to o. Each invocation exports its
// spans before its answer: Lambda freezes the process after it.
func Start(ctx context.Context, o *lambda.Options, parent string, env func(string) string) error {
	if !tracing.On(env) {
		return nil
	}
	t, err := tracing.Start(ctx, tracing.Options{Parent: parent, Logger: o.Logger})
	if err != nil {
		return err
	}
	o.FlowHooks.Tracer = t
	next := o.Invoked
	o.Invoked = func(inv lambda.Invocation) {
		if next != nil {
			next(inv)
		}
		wait := flushWithin(time.Now(), inv.Deadline)
		if wait <= 0 {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), wait)
		defer cancel()
		if err := t.Flush(ctx); err != nil {
			o.Logger.Warn("traces cannot be exported: is the collector's extension there?", "request", inv.RequestID, "error", err)
		}
	}
	return nil
}

// flushWithin returns how long an answer may wait at now. Half of the time that is left
// is for the answer itself.
func flushWithin(now, deadline time.Time) time.Duration {
	if deadline.IsZero() {
		return flushAtMost
	}
	return min(flushAtMost, deadline.Sub(now)/2)
}
