package dynamo

import (
	"context"

	"github.com/sluicehq/sluice"
)

// GuardedDelete is the deletion of many items of one table, each of which may have
// to stay after all.
//
// A write can wait for seconds: for a budget, after a throttle, for other
// requests. What its caller knew when it asked for the write is old by then. Guard
// looks again after the wait. A condition holds at the moment of the write itself.
type GuardedDelete struct {
	Table string
	Keys  []sluice.Item

	// Guard is called right before each request, a repetition too, when the
	// request waits for nothing else. Its error holds the request back, and all
	// requests after it: their keys have that error. It is called by several
	// goroutines at once, and once more when the guards of other calls in the same
	// request take long, so that it should keep a good answer for a moment.
	Guard func(context.Context) error

	// Done is called with the result of each key, some keys at a time, by several
	// goroutines at once. errs is beside keys, or nil when all are deleted. An item
	// that is not there is deleted.
	Done func(keys []sluice.Item, errs []error)

	// Condition is that of each item, as of an [Op]; "" is none. An item for which
	// it does not hold has a [*ConditionError]. With a condition each item is a
	// request of its own.
	Condition string
	Names     map[string]string
	Values    map[string]any
}

// Op returns the deletion of one of the items.
func (d GuardedDelete) Op(key sluice.Item) Op {
	return Op{Kind: DeleteOp, Table: d.Table, Key: key, Condition: d.Condition, Names: d.Names, Values: d.Values}
}
