package dynamodb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/backoff"
)

// settle takes apart what became of t: units are done, or wait again. The
// caller holds the lock.
func (p *pool) settle(ctx context.Context, t *transaction, err error) {
	p.landed(t, err)
	for _, u := range t.units {
		u.sent = false
		for ref := range u.refs() {
			delete(p.busy, ref)
		}
	}
	switch reasons := reasonsOf(err); {
	case err == nil:
		for _, u := range t.units {
			p.applied(u)
		}
	case len(reasons) == len(t.steps):
		p.cancelled(t, reasons)
	case ctx.Err() != nil && codeOf(err) == "" && classify(err) != permanent:
		// There was no answer. Its commit's time is over, not that of the others.
		for _, u := range t.units {
			u.last = p.explain(err)
		}
	case reasons != nil || classify(err) <= throttled:
		p.postponeFor(t.units, p.explain(err))
	case len(t.units) > 1 && !isOfCaller(err):
		p.part(t.units)
	default:
		for _, u := range t.units {
			u.finish(p.explain(err))
		}
	}
	var again []*unit
	for _, u := range t.units {
		if !u.done {
			again = append(again, u)
		}
	}
	p.waiting = slices.DeleteFunc(append(again, p.waiting...), func(u *unit) bool { return u.done })
	p.wake()
}

// isOfCaller reports whether err is about who asks, and not what for.
func isOfCaller(err error) bool {
	switch codeOf(err) {
	case "": // it was never sent
		return classify(err) != permanent
	case "UnrecognizedClientException", "InvalidClientTokenId", "InvalidSignatureException", "ExpiredToken", "ExpiredTokenException",
		"MissingAuthenticationTokenException", "IncompleteSignatureException":
		return true
	}
	return false
}

// applied ends u, which is durable, and all that wait with the same marker: the
// same item, because markers of one partition key may differ in their sort key.
func (p *pool) applied(u *unit) {
	if !u.applied.Before {
		for _, part := range u.parts {
			if part.dropped {
				u.applied.Dropped = append(u.applied.Dropped, part.index)
			}
		}
	}
	u.finish(nil)
	marker := u.parts[0]
	for _, w := range p.waiting {
		if !w.done && w.parts[0].sameItem(marker) && w.parts[0].whole.Equal(marker.whole) {
			w.applied.Before = true
			w.finish(nil)
		}
	}
}

func (p *pool) postponeFor(units []*unit, err error) {
	for _, u := range units {
		u.last = err
	}
	p.postpone(units)
}

// postpone has units wait before they are tried again, together, or fails those
// that were refused often enough.
func (p *pool) postpone(units []*unit) {
	most := 1
	for _, u := range units {
		u.tries++
		most = max(most, u.tries)
	}
	ripe := time.Now().Add(backoff.Full(p.opt.Backoff, p.opt.Backoff<<10, most))
	for _, u := range units {
		u.ripe = ripe
		if deadline, ok := u.ctx.Deadline(); u.tries >= p.opt.Attempts || ok && !ripe.Before(deadline) {
			u.finish(u.last)
		}
	}
}

// part has units that failed together tried in halves, so that each has its own
// result in the end.
func (p *pool) part(units []*unit) {
	for i, u := range units {
		if i == 0 || i == len(units)/2 {
			p.parties++
		}
		u.party = p.parties
	}
}

// verdict is what the reasons of a cancelled transaction say of one unit.
type verdict struct {
	before bool
	forNow error // refused for the moment
	failed error // for good
	parted bool
	unmet  []int // of its Ops
	tables []string
	found  []map[string]types.AttributeValue
}

// cancelled gives each unit of t its verdict. Those of which no reason speaks
// go again at once.
func (p *pool) cancelled(t *transaction, reasons []types.CancellationReason) {
	verdicts := make(map[*unit]*verdict, len(t.units))
	for _, u := range t.units {
		verdicts[u] = &verdict{}
	}
	told := false
	for i, s := range t.steps {
		r := &reasons[i]
		what := reasonOf(r)
		told = told || what != none
		first := s.shares[0].part
		switch {
		case what == forGood && len(s.shares) > 1:
			// One of them may be to blame.
			var units []*unit
			for _, sh := range s.shares {
				units = append(units, sh.unit)
				verdicts[sh.unit].parted = true
			}
			p.part(units)
			continue
		case what == unmet && first.what == anAdd && !first.add.Create:
			p.drop(first, t)
		}
		for _, sh := range s.shares {
			verdicts[sh.unit].hear(what, sh.part, r)
		}
	}
	if !told {
		p.postponeFor(t.units, errors.New("the transaction was cancelled, and no reason was given"))
		return
	}
	var later []*unit
	for _, u := range t.units {
		switch v := verdicts[u]; {
		case v.before:
			u.applied.Before = true
			p.applied(u)
		case v.forNow != nil:
			u.last = v.forNow
			later = append(later, u)
		case v.failed != nil:
			u.finish(v.failed)
		case v.parted, v.unmet == nil:
		default:
			u.finish(conditionError(v.unmet, v.tables, v.found))
		}
	}
	p.postpone(later)
}

// hear takes in what a reason says of a part. A marker that is there outweighs
// all: the unit's own effect may be why its conditions do not hold. And a
// condition is only believed when nothing else is left open.
func (v *verdict) hear(what reason, p *part, r *types.CancellationReason) {
	switch what {
	case none:
	case unmet:
		switch {
		case p.what == aMarker:
			v.before = true
		case p.what == anOp:
			v.unmet = append(v.unmet, p.index)
			v.tables = append(v.tables, p.table)
			v.found = append(v.found, r.Item)
		case p.what == anElse || p.add.Create:
			v.forNow = fmt.Errorf("table %q: %s of a write that has no condition", p.table, textOf(r))
		}
	case forNow:
		v.forNow = fmt.Errorf("table %q: %s", p.table, textOf(r))
		if isOfLoad(r) {
			v.forNow = sluice.Overloaded(v.forNow)
		}
	case forGood:
		v.failed = sluice.Permanent(fmt.Errorf("table %q: %s", p.table, textOf(r)))
	}
}

// drop takes the Adds to an item that is not there out of all units that wait
// or were just sent: of those that were asked for when it was found missing.
// Before a later one the item may have been made.
func (p *pool) drop(missing *part, t *transaction) {
	for _, units := range [][]*unit{t.units, p.waiting} {
		for _, u := range units {
			if u.nth > t.asked {
				continue
			}
			for _, part := range u.parts {
				if part.what == anAdd && !part.add.Create && part.sameItem(missing) {
					part.dropped = true
				}
			}
		}
	}
}
