package projection

import (
	"context"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
)

// Loss is the reason why the document of an item does not show a change, by
// attribute or function.
type Loss string

const (
	// NotRaised: the change did not raise the version. Either two writes have
	// the same time, or a writer does not increment the number.
	NotRaised Loss = "not_raised"
	// BeganAnew: the item was deleted and created again below the version of
	// its deletion, because its counter began anew.
	BeganAnew Loss = "began_anew"
)

// watches reports whether a refusal of op, the first write of rec, matters.
func (p *Projection) watches(rec *sluice.Record, op document.Op) bool {
	return (p.o.Lost != nil || p.counts.lost != nil) && op.Fence == document.Newer && rec.Origin == sluice.Live &&
		(rec.EventName == sluice.Insert || rec.EventName == sluice.Modify)
}

// writeWatched writes op, the first of rec, and calls lost if the write is refused.
func (p *Projection) writeWatched(ctx context.Context, rec *sluice.Record, op document.Op) error {
	refused, there := false, int64(0)
	op.Refused = func(r document.Refusal) { refused, there = true, max(there, r.Version) }
	err := p.write(ctx, op)
	if err == nil && refused {
		p.lost(ctx, rec, op, there)
	}
	return err
}

// lost reports a refused op that loses a change. A repeated or late record loses
// nothing. The version there is 0 if unknown.
func (p *Projection) lost(ctx context.Context, rec *sluice.Record, op document.Op, there int64) {
	switch {
	case rec.EventName == sluice.Modify:
		if before, err := p.o.Version.ofImage(rec.Old); err == nil && op.Version <= before {
			p.tellLost(rec, NotRaised)
		}
	case there > op.Version && p.below(ctx, rec, there):
		p.tellLost(rec, BeganAnew)
	}
}

func (p *Projection) tellLost(rec *sluice.Record, why Loss) {
	p.counts.lost.Add(1, rec.Table, string(why))
	if p.o.Lost != nil {
		p.o.Lost(rec, why)
	}
}

// below reports whether the item is below the version in the index, which happens
// only if its counter began anew. If the item cannot be read, a repeated INSERT
// counts too.
func (p *Projection) below(ctx context.Context, rec *sluice.Record, there int64) bool {
	if p.o.Current == nil {
		return true
	}
	it, err := p.o.Current(ctx, rec)
	switch {
	case err != nil:
		return ctx.Err() == nil
	case !it.Exists():
		return false
	}
	now, err := p.o.Version.ofImage(it)
	return err == nil && now < there
}
