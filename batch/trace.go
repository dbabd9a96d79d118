package batch

import (
	"context"

	"github.com/sluicehq/sluice/internal/quorum"
)

// traced says how a group makes its span.
type traced struct {
	by      quorum.Tracer
	callers map[int]context.Context // by their numbers; of those with a tracer
}

// trace notes that the span of g links to the last caller's.
func (g *group[T]) trace(ctx context.Context, by quorum.Tracer) {
	if g.traced == nil {
		g.traced = &traced{by, map[int]context.Context{}}
	}
	g.traced.callers[len(g.callers)] = ctx
}

// contexts returns the context of each item's caller; nil if it has no tracer.
func (g *group[T]) contexts() []context.Context {
	all := make([]context.Context, 0, len(g.items))
	for i, c := range g.callers {
		for range c.n {
			all = append(all, g.traced.callers[i])
		}
	}
	return all
}
