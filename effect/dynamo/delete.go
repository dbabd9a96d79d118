package dynamo

import (
	"context"

	"github.com/sluicehq/sluice"
)

// GuardedDelete deletes many items of one table, and can still spare each.
//
// A write can wait for seconds: for a budget, after a throttle, for other
// requests. By then the caller's knowledge is old. Guard checks again after the
// wait. A condition holds at the moment of the write.
type GuardedDelete struct {
	Table string
	Keys  []sluice.Item

	// Guard runs right before each request and each retry, after all waiting.
	// Its error stops the request and all later ones: their keys get that
	// error. It runs concurrently. It runs once more if guards of other calls
	// in the same request are slow, so it should cache a good answer for a
	// moment.
	Guard func(context.Context) error

	// Done is called with the results of some keys at a time, concurrently.
	// errs has one error per key, or is nil when all are deleted. A missing
	// item counts as deleted.
	Done func(keys []sluice.Item, errs []error)

	// Condition applies to each item, as in an [Op]; "" is none. An item that
	// fails it gets a [*ConditionError]. With a condition each item needs its
	// own request.
	Condition string
	Names     map[string]string
	Values    map[string]any
}

// Op returns the deletion of one item.
func (d GuardedDelete) Op(key sluice.Item) Op {
	return Op{Kind: DeleteOp, Table: d.Table, Key: key, Condition: d.Condition, Names: d.Names, Values: d.Values}
}
