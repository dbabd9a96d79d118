package opensearch

import (
	"context"
	"errors"

	"github.com/sluicehq/sluice/internal/quorum"
)

// trace begins the span of a commit of ws and of the writes that joined them, and
// returns what ends it. A write that stays open has failed in this commit.
func (s *Sink) trace(ctx context.Context, ws []*write) (context.Context, func()) {
	type item struct{ of, first *write }
	var all []item
	var callers []context.Context
	for _, w := range ws {
		if w.call.ctx == nil {
			continue
		}
		line := []*write{w}
		if w.line != nil {
			line = w.line.all
		}
		for _, x := range line {
			all, callers = append(all, item{x, w}), append(callers, x.call.ctx)
		}
	}
	ctx, end := quorum.Trace(ctx, s.opt.Sink, callers)
	return ctx, func() {
		errs := make([]error, len(all))
		for i, it := range all {
			errs[i] = it.of.err
			if it.first.open && errors.Is(errs[i], errEnded) {
				errs[i] = it.first.failed.of(it.of.op)
			}
		}
		end(errs)
	}
}
