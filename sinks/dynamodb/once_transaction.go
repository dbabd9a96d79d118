package dynamodb

import (
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/awserror"
)

// transaction is one TransactWriteItems for some units.
type transaction struct {
	units []*unit
	steps []*step
	bytes int
	err   error
	late  bool // err is only tooLate

	refs   []ref         // items that it holds; once.mu guards refs and behind
	behind []*unit       // units that wait for refs
	freed  chan struct{} // closed when refs are free
	ended  chan struct{} // closed when units have their outcome
}

// step is one operation of a transaction: one part, or several additions to the
// same item.
type step struct {
	of    *transaction
	index int
	parts []*part
	by    map[string]int64 // sums of Adds
}

// pack puts units into new transactions. No two transactions touch one item: at
// has the items of all that hold any. A unit without a place waits for the
// transaction at places. Until then that transaction holds all items of the unit,
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

// hold makes units that need an item of u wait for t, like u.
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
		if s == nil || !s.merges(p) { // of u itself, if they are only alike
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

// merges reports whether p can be added to the sums of s. A sum that overflows
// int64 cannot.
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

// settle sets the outcomes of t's units. It returns those to send separately,
// because t was refused for one of them.
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
		t.fail(outcome{err: o.explain(t.err), refused: true, late: t.late})
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

// cancelled interprets the reasons of a cancelled transaction for u, and reports
// whether u must be sent separately. An existing marker outweighs everything: the
// unit's own effect may be why its conditions fail. A failed condition counts only
// if nothing else is unclear. A unit without a reason, or one that now drops an
// Add, is sent again.
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
		case what == forGood && len(t.steps[p.step].parts) > 1: // another unit's part may be the cause
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
