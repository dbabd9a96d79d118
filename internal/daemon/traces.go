package daemon

import (
	"context"
	"log/slog"
	"time"

	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/buildversion"
	"github.com/sluicehq/sluice/metrics/prom"
	"github.com/sluicehq/sluice/tracing"
)

// flushAtMost is how long the end of a daemon waits for a collector.
const flushAtMost = 5 * time.Second

// startTraces returns the Tracer that the environment asks for, or nil, and a function
// that exports the last spans, within the grace after the end of ctx.
func startTraces(ctx context.Context, o Options, env func(string) string, counts *prom.Metrics, logger *slog.Logger) (_ flow.Tracer, stop func(), _ error) {
	if !tracing.On(env) {
		return nil, func() {}, nil
	}
	t, err := tracing.Start(ctx, tracing.Options{Service: o.Application, Version: buildversion.Get(), Parent: o.TraceParent, Metrics: counts, Logger: logger})
	if err != nil {
		return nil, nil, err
	}
	counts.Exemplars(tracing.Exemplar)
	ended := make(chan time.Time, 1)
	context.AfterFunc(ctx, func() { ended <- time.Now() })
	return t, func() {
		left := flushAtMost
		if ctx.Err() != nil { // sources leave a tenth of the grace, a second at most
			left = min(left, max(o.Grace-time.Since(<-ended), min(time.Second, o.Grace/10)))
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), left)
		defer cancel()
		if err := t.Stop(ctx); err != nil {
			logger.Warn("the last traces are lost, because the collector did not take them in time", "error", err)
		}
	}, nil
}
