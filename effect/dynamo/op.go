package dynamo

import (
	"errors"
	"fmt"

	"github.com/sluicehq/sluice"
)

// Op is one write, or the check of a condition in a transaction. [Put],
// [Update], [Delete] and [Check] make them, and the methods add to them:
//
//	dynamo.Update("searches", key, "SET #s = :failed").
//		If("#s = :active").
//		Name("#s", "status").
//		Value(":failed", "failed").Value(":active", "active")
//
// An Op is a value: its methods return another one.
type Op struct {
	Kind      OpKind
	Table     string
	Key       sluice.Item // of Update, Delete and Check
	Item      sluice.Item // of Put, whole
	Update    string      // update expression
	Condition string      // condition expression; "" is none
	Names     map[string]string
	Values    map[string]any // see Value
}

// OpKind says what an Op does.
type OpKind uint8

const (
	PutOp    OpKind = iota + 1 // writes an item whole
	UpdateOp                   // changes attributes of an item, or makes one
	DeleteOp                   // deletes an item
	CheckOp                    // nothing but its condition; in a transaction only
)

// Put writes an item in the place of the one with its key, if there is one.
func Put(table string, it sluice.Item) Op { return Op{Kind: PutOp, Table: table, Item: it} }

// Update changes the item with the key, or makes one: where there is to be one
// already, say so with If.
func Update(table string, key sluice.Item, expression string) Op {
	return Op{Kind: UpdateOp, Table: table, Key: key, Update: expression}
}

// Delete deletes the item with the key, if there is one.
func Delete(table string, key sluice.Item) Op { return Op{Kind: DeleteOp, Table: table, Key: key} }

// Check writes nothing: its condition holds, or its transaction fails.
func Check(table string, key sluice.Item, condition string) Op {
	return Op{Kind: CheckOp, Table: table, Key: key, Condition: condition}
}

// If sets the condition under which the item is written.
func (o Op) If(condition string) Op {
	o.Condition = condition
	return o
}

// Name says which attribute a #placeholder of the expressions stands for.
func (o Op) Name(placeholder, attribute string) Op {
	names := make(map[string]string, len(o.Names)+1)
	for k, v := range o.Names {
		names[k] = v
	}
	names[placeholder] = attribute
	o.Names = names
	return o
}

// Value says which value a :placeholder of the expressions stands for: a string
// (S), a whole number or a Number (N), a bool, a []byte (B), nil (NULL), a
// Strings (SS), a sluice.Value, or a sluice.Item (M). What else stands there
// fails the write for good.
func (o Op) Value(placeholder string, value any) Op {
	values := make(map[string]any, len(o.Values)+1)
	for k, v := range o.Values {
		values[k] = v
	}
	values[placeholder] = value
	o.Values = values
	return o
}

// Number is the decimal form of a number, of up to 38 digits.
type Number string

// Strings is a string set.
type Strings []string

// ConditionError says that the conditions of writes did not hold; nothing was
// written. It is not retried, and is no [sluice.Permanent] error: what it means
// is the caller's to say.
type ConditionError struct {
	Failed []int         // which of a transaction's Ops, ascending; [0] of a single write
	Items  []sluice.Item // beside Failed: the item as it was found; absent when there was none
	Tables []string      // beside Failed
}

// Error names the writes and their tables.
func (e *ConditionError) Error() string {
	return fmt.Sprintf("conditions of writes %v to %v do not hold", e.Failed, e.Tables)
}

// IsCondition reports whether err says that a condition did not hold.
func IsCondition(err error) bool {
	var c *ConditionError
	return errors.As(err, &c)
}
