package dynamo

import (
	"errors"
	"fmt"
	"maps"

	"github.com/sluicehq/sluice"
)

// Op is one write, or the check of a condition in a transaction. [Put], [Update],
// [Delete] and [Check] make Ops, and methods add to them:
//
//	dynamo.Update("searches", key, "SET #s = :failed").
//		If("#s = :active").
//		Name("#s", "status").
//		Value(":failed", "failed").Value(":active", "active")
//
// An Op is a value: its methods return a new one.
type Op struct {
	Kind      OpKind
	Table     string
	Key       sluice.Item // of Update, Delete and Check
	Item      sluice.Item // of Put: the whole item
	Update    string      // update expression
	Condition string      // condition expression; "" is none
	Names     map[string]string
	Values    map[string]any // see Value
}

// OpKind is the kind of an Op.
type OpKind uint8

const (
	PutOp    OpKind = iota + 1 // writes a whole item
	UpdateOp                   // changes attributes of an item, or creates it
	DeleteOp                   // deletes an item
	CheckOp                    // checks a condition only; in a transaction only
)

// Put writes an item, and replaces one with the same key.
func Put(table string, it sluice.Item) Op { return Op{Kind: PutOp, Table: table, Item: it} }

// Update changes the item with the key, or creates it. To require an existing
// item, use If.
func Update(table string, key sluice.Item, expression string) Op {
	return Op{Kind: UpdateOp, Table: table, Key: key, Update: expression}
}

// Delete deletes the item with the key if it exists.
func Delete(table string, key sluice.Item) Op { return Op{Kind: DeleteOp, Table: table, Key: key} }

// Check writes nothing. If its condition fails, so does its transaction.
func Check(table string, key sluice.Item, condition string) Op {
	return Op{Kind: CheckOp, Table: table, Key: key, Condition: condition}
}

// If sets the condition of the write.
func (o Op) If(condition string) Op {
	o.Condition = condition
	return o
}

// Name sets the attribute of a #placeholder in the expressions.
func (o Op) Name(placeholder, attribute string) Op {
	o.Names = with(o.Names, placeholder, attribute)
	return o
}

// Value sets the value of a :placeholder in the expressions: a string (S), an
// integer or a json.Number of up to 38 digits (N), a bool, a []byte (B), nil
// (NULL), a Strings (SS), an item.Value, or a sluice.Item (M). Another type fails
// the write permanently.
func (o Op) Value(placeholder string, value any) Op {
	o.Values = with(o.Values, placeholder, value)
	return o
}

func with[V any](m map[string]V, key string, v V) map[string]V {
	c := make(map[string]V, len(m)+1)
	maps.Copy(c, m)
	c[key] = v
	return c
}

// Strings is a string set.
type Strings []string

// ConditionError says that conditions of writes failed; nothing was written.
// Sluice does not retry it. It is not a [sluice.Permanent] error: the caller
// decides what it means.
type ConditionError struct {
	Failed []int         // indexes of a transaction's Ops, ascending; [0] of a single write
	Items  []sluice.Item // for each of Failed: the item found; absent if none
	Tables []string      // for each of Failed
}

// Error lists the writes and their tables.
func (e *ConditionError) Error() string {
	return fmt.Sprintf("conditions of writes %v to %v do not hold", e.Failed, e.Tables)
}

// IsCondition reports whether err is a failed condition.
func IsCondition(err error) bool {
	return errors.As(err, new(*ConditionError))
}
