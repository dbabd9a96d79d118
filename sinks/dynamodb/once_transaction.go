package dynamodb

import (
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/awserror"
)

// transaction is a TransactWriteItems for some units.
type transaction struct {
	units []*unit
	steps []*step
	bytes int
	err   error

	refs   []ref         // that it holds; refs and behind are guarded by once.mu
	behind []*unit       // that wait for refs
	freed  chan struct{} // closed when refs are free
	ended  chan struct{} // closed when units have their outcome
}

// step is one operation of a transaction: one part, or several that add to the
// same item.
type step struct {
	of    *transaction
	index int
	parts []*part
	by    map[string]int64 // of Adds: the sums
}

// pack puts units into new transactions. No two transactions touch one item: at
// has those of all that hold any. A unit without a place is to go again, once the
// transaction at places is freed. Until then that one holds all items of the unit,
// so that no younger unit takes them.
func pack(units []*unit, at map[ref]*step) (ts, places []*transaction) {
	for _, u := range units {
		var t *transaction
		for p := range u.written {
			if s := at[p.ref]; s != nil {
				t = s.of
				break
			}
		}
		if t == nil && len(ts) > 0 && ts[len(ts)-1].fits(u, at) {
			t = ts[len(ts)-1]
		}
		if t == nil {
			t = &transaction{freed: make(chan struct{}), ended: make(chan struct{})}
			ts = append(ts, t)
		}
		if u.again = !slices.Contains(ts, t) || !t.fits(u, at); u.again {
			t.hold(u, at)
		} else {
			t.add(u, at)
		}
		places = append(places, t)
	}
	return ts, places
}

// hold has those who need an item of u wait for t, as u does.
func (t *transaction) hold(u *unit, at map[ref]*step) {
	for p := range u.written {
		if at[p.ref] == nil {
			at[p.ref] = &step{of: t}
			t.refs = append(t.refs, p.ref)
		}
	}
}

func (t *transaction) fits(u *unit, at map[ref]*step) bool {
	if len(t.units) == 0 {
		return true
	}
	steps := len(t.steps)
	for p := range u.written {
		if s := at[p.ref]; s == nil {
			steps++
		} else if s.of != t || !s.merges(p) {
			return false
		}
	}
	return !u.alone && !t.units[0].alone && steps <= maxOperations && t.bytes+u.size <= maxBytes
}

func (t *transaction) add(u *unit, at map[ref]*step) {
	t.units = append(t.units, u)
	t.bytes += u.size
	for p := range u.written {
		s := at[p.ref]
		if s == nil || !s.merges(p) { // of u's own, when they are only alike
			s = &step{of: t, index: len(t.steps)}
			at[p.ref] = s
			t.refs = append(t.refs, p.ref)
			t.steps = append(t.steps, s)
		}
		p.step = s.index
		s.parts = append(s.parts, p)
		if p.what == anAdd {
			if s.by == nil {
				s.by = make(map[string]int64, len(p.add.By))
			}
			for name, by := range p.add.By {
				s.by[name] += by
			}
		}
	}
}

// merges reports whether p can be added to what s adds. A sum that leaves the
// range of int64 cannot: it would wrap.
func (s *step) merges(p *part) bool {
	if len(s.parts) == 0 { // held for another unit
		return false
	}
	first := s.parts[0]
	if p.what != anAdd || first.what != anAdd || !p.sameItem(first) || p.add.Create != first.add.Create {
		return false
	}
	attributes := len(s.by)
	for name, by := range p.add.By {
		sum, ok := s.by[name]
		if !ok {
			attributes++
		} else if total := sum + by; (total < sum) != (by < 0) {
			return false
		}
	}
	return attributes <= maxAttributes
}

func (t *transaction) input() *dynamodb.TransactWriteItemsInput {
	items := make([]types.TransactWriteItem, len(t.steps))
	for i, s := range t.steps {
		if items[i] = s.parts[0].item; s.by != nil {
			items[i].Update = addition(s.parts[0].add, s.by)
		}
	}
	return &dynamodb.TransactWriteItemsInput{TransactItems: items}
}

// settle says what became of the units of t. It returns those that have to be
// sent apart, because t was refused for one of them.
func (o *once) settle(t *transaction) (apart []*unit) {
	if t.err == nil {
		for _, u := range t.units {
			u.applied.Dropped = u.dropped()
		}
		return nil
	}
	reasons, meaning := reasonsOf(t.err), awserror.Of(t.err)
	switch {
	case len(reasons) == len(t.steps) && worst(reasons) != none:
		for _, u := range t.units {
			if u.cancelled(t, reasons) {
				apart = append(apart, u)
			}
		}
	case reasons != nil || meaning.Passes():
		t.fail(outcome{err: o.explain(t.err), refused: true})
	case len(t.units) > 1 && meaning != awserror.NoCredentials && meaning != awserror.NotAccepted:
		return t.units
	default:
		t.fail(outcome{err: o.explain(t.err)})
	}
	return apart
}

func (t *transaction) fail(with outcome) {
	for _, u := range t.units {
		u.outcome = with
	}
}

// cancelled says what the reasons of a transaction mean for u, and whether u has
// to be sent apart. A marker that is there outweighs all: the unit's own effect
// may be why its conditions do not hold. And a condition is only believed when
// nothing else is left open. A unit of which no reason speaks, or which does
// without an Add now, goes again.
func (u *unit) cancelled(t *transaction, reasons []types.CancellationReason) (apart bool) {
	var passing, final error
	var failed []int
	var tables []string
	var found []map[string]types.AttributeValue
	for p := range u.written {
		r := &reasons[p.step]
		what := reasonOf(r)
		if what == none {
			continue
		}
		err := fmt.Errorf("table %q: %s", p.table, textOf(r))
		switch {
		case what == unmet && p.what == aMarker:
			u.applied.Before = true
			return false
		case what == unmet && p.what == anOp && p.instead == nil:
			failed, tables, found = append(failed, p.index), append(tables, p.table), append(found, r.Item)
		case what == unmet && p.what == anAdd && !p.add.Create:
			p.dropped = true
		case what == forGood && len(t.steps[p.step].parts) > 1: // another one's part may be to blame
			apart = true
		case what == forGood:
			final = sluice.Permanent(err)
		case isOfLoad(*r):
			passing = sluice.Overloaded(err)
		default:
			passing = err
		}
	}
	switch {
	case passing != nil:
		u.outcome = outcome{err: passing, refused: true}
	case final != nil:
		u.outcome = outcome{err: final}
	case apart:
		return true
	case failed != nil:
		u.outcome = outcome{err: conditionError(failed, tables, found)}
	default:
		u.again = true
	}
	return false
}
