package writer

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
)

// DefaultTable is the table's name where no other is given.
const DefaultTable = "meadowlark"

// Store reads and writes tables; a sinks/dynamodb.Store is one.
type Store interface {
	Get(ctx context.Context, table string, key sluice.Item) (sluice.Item, error) // consistently
	Query(ctx context.Context, q dynamo.Query) (dynamo.Page, error)
	Transact(ctx context.Context, ops ...dynamo.Op) error
}

// Config is what a Writer works on.
type Config struct {
	Store     Store
	Table     string // default DefaultTable
	Resources Resources
	Now       func() time.Time // default time.Now
}

// Writer reads and writes documents. It is safe for concurrent use, and beside
// Writers of other processes.
type Writer struct {
	c    Config
	last atomic.Int64 // rev that it has given
}

// New returns a Writer.
func New(c Config) (*Writer, error) {
	if c.Store == nil {
		return nil, errors.New("writer: Config.Store is nil: want the store that has the table")
	}
	c.Table = cmp.Or(c.Table, DefaultTable)
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Writer{c: c}, nil
}

// rev is the time in µs, or a number above least, and never one that this Writer
// has used. It identifies a document: one that is deleted and created again has
// another rev, so a change based on the first is not applied to the second.
// Between processes their clocks ensure that.
func (w *Writer) rev(least int64) int64 {
	for {
		last := w.last.Load()
		now := max(w.c.Now().UnixMicro(), last+1)
		if w.last.CompareAndSwap(last, now) {
			return max(now, least+1)
		}
	}
}

// attempts are how often a change begins again when what it read is not so any
// more.
const attempts = 10

// maxOperations are those of one transaction.
const maxOperations = 100

// step is one write of a transaction, and what it means when its condition does
// not hold.
type step struct {
	op    dynamo.Op
	means meaning
	ref   Reference // of missing
	pair  pair      // of counterGone and counterBack
}

type meaning uint8

const (
	changed     meaning = iota // others were faster: to be read again
	exists                     // the item to create exists
	missing                    // the target of a reference does not exist
	referenced                 // others refer to it
	counterGone                // the count of a pair that goes is gone
	counterBack                // it exists again
)

// transact makes the steps, all or none, and returns those whose condition does
// not hold.
func (w *Writer) transact(ctx context.Context, steps []step) (failed []step, err error) {
	if len(steps) > maxOperations {
		return nil, invalid("it takes %d writes at once, and %d are possible: it has too many references, or changes too many", len(steps), maxOperations)
	}
	ops := make([]dynamo.Op, len(steps))
	for i, s := range steps {
		ops[i] = s.op
	}
	err = w.c.Store.Transact(ctx, ops...)
	var condition *dynamo.ConditionError
	if !errors.As(err, &condition) {
		return nil, err
	}
	for _, i := range condition.Failed {
		failed = append(failed, steps[i])
	}
	return failed, nil
}

// some reports whether one of the steps means m.
func some(failed []step, m meaning) bool {
	return slices.ContainsFunc(failed, func(s step) bool { return s.means == m })
}

func (w *Writer) put(it sluice.Item, condition string) dynamo.Op {
	return dynamo.Put(w.c.Table, it).If(condition)
}

func (w *Writer) delete(key sluice.Item) dynamo.Op { return dynamo.Delete(w.c.Table, key) }

func (w *Writer) check(key sluice.Item, condition string) dynamo.Op {
	return dynamo.Check(w.c.Table, key, condition)
}

// count adds to a count.
func (w *Writer) count(key sluice.Item, by int) dynamo.Op {
	return dynamo.Update(w.c.Table, key, "ADD refCount :by").Value(":by", by)
}

// unreferenced deletes a count on condition that it is 0.
func (w *Writer) unreferenced(key sluice.Item) dynamo.Op {
	return w.delete(key).If(absent+" OR refCount = :zero").Value(":zero", 0)
}

const (
	present = "attribute_exists(sk)"
	absent  = "attribute_not_exists(sk)"
)
