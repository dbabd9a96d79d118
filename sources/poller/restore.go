package poller

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sluicehq/sluice/sources/poller/internal/lineage"
	"github.com/sluicehq/sluice/state"
)

// find finds the streams of name: a table's stream, after its stored earlier ones.
// known are the streams of the application.
func (p *Poller) find(ctx context.Context, name Stream, known []string) (*follower, error) {
	f := newFollower(p, name)
	if name.ARN != "" {
		f.latest = name.ARN
		return f, p.try(ctx, f.add(name.ARN), known)
	}
	known = slices.Clone(known)
	slices.SortFunc(known, byAge)
	last := p.lastOf(name.Table, known)
	arn, err := p.streamOf(ctx, name, last != "")
	switch {
	case err == nil:
	case last == "":
		return nil, err
	case busy(err):
		arn = last
		p.o.Logger.Warn("the table was read before and is read on: its stream cannot be asked for now", "table", name.Table, "error", err)
	case streamless(err): // a stream that was read before may return
		arn = last
		p.o.Logger.Error("the table was read before and has no stream now", "table", name.Table, "error", err)
	default:
		return nil, err
	}
	known = slices.DeleteFunc(known, func(k string) bool { return !sameTable(k, arn) })
	f.latest = arn
	if n := len(known); n == 0 {
		f.add(arn)
	} else if slices.Contains(known, arn) || older(arn, known[n-1]) {
		f.latest = known[n-1] // the response is old
	}
	first, restoreErr := f.restore(ctx, known)
	if restoreErr != nil {
		return nil, restoreErr
	}
	if g := f.newest(); err == nil && first && g.id.ARN == f.latest {
		return f, p.try(ctx, g, known)
	}
	return f, nil
}

// lastOf returns the last known stream of a table in this Region, or "".
func (p *Poller) lastOf(table string, known []string) string {
	for _, arn := range slices.Backward(known) {
		if tableOf(arn) == table && regionOf(arn) == p.cfg.Region {
			return arn
		}
	}
	return ""
}

// restore adds the stored streams of one table, oldest first. Among the streams
// before the last, those with unfinished shards come first. The others are over,
// or were left behind because the next could not wait, so no stream waits for
// them. first: no stream waits.
func (f *follower) restore(ctx context.Context, known []string) (first bool, err error) {
	first = true
	for i, arn := range known {
		f.seen[arn] = true
		if i == len(known)-1 {
			f.add(arn)
			break
		}
		shards, err := f.p.store.shards(ctx, state.Stream{Application: f.p.o.Application, ARN: arn})
		if err != nil {
			return false, fmt.Errorf("poller: %v: read the stored positions: %w", f.name, err)
		}
		over := !slices.ContainsFunc(shards, func(sh state.Shard) bool { return !sh.Position.Finished })
		if over && f.p.clock.now().Sub(createdAt(known[i+1])) > lineage.Retention+time.Hour {
			continue // nothing of it is left
		}
		f.add(arn).waived = over
		first = first && over
	}
	return first, nil
}

// arns are the streams that f reads or will read.
func (f *follower) arns() []string {
	arns := []string{f.latest}
	for _, g := range f.gens {
		if g.id.ARN != f.latest {
			arns = append(arns, g.id.ARN)
		}
	}
	return arns
}
