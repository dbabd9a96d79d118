package dynamodb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/internal/keyhash"
	"github.com/sluicehq/sluice/internal/quorum"
	"github.com/sluicehq/sluice/item/sdkitem"
)

const (
	maxOperations = 100       // of one transaction
	maxBytes      = 4_000_000 // of one transaction; 4 MB
	maxAttributes = 100       // in one Update, which keeps its expression far below 4 KB
)

// unit is a pending dynamo.Unit.
type unit struct {
	marker dynamo.Marker
	parts  []*part // the marker, then each Add with its Else, then Ops
	size   int
	alone  bool   // it touches an item with an unknown key, and shares no transaction
	nth    uint64 // number of the unit in this Store
	tries  int    // refused temporarily
	member *quorum.Member
	ctx    context.Context // of the handler; nil if it is not traced
	at     *transaction
	sent   bool // part of at; else waiting behind at

	applied dynamo.Applied
	outcome
}

// outcome is the result of a unit in a commit; zero means applied.
type outcome struct {
	again   bool // retry at once
	err     error
	refused bool          // temporarily
	late    bool          // the error says only that the time ended
	wait    time.Duration // before the retry; 0: no retry
}

// part is one operation of a unit.
type part struct {
	what    what
	index   int // in Unit.Adds or Unit.Ops
	ref     ref
	table   string
	key     sluice.Item             // of its item; absent if unknown
	item    types.TransactWriteItem // of markers and Ops
	add     *dynamo.Add
	dropped bool  // the item of the Add does not exist
	instead *part // the Add that this Else replaces when dropped
	step    int   // index in its transaction
}

type what uint8

const (
	aMarker what = iota
	anAdd
	anOp
)

// ref identifies an item of a table. Two items may share one: they are then
// treated as the same, which does no harm.
type ref struct {
	table string
	key   uint64
}

// newUnit makes a unit of u, or returns why it can never be applied.
func (s *Store) newUnit(u dynamo.Unit) (*unit, error) {
	if count := 1 + len(u.Adds) + len(u.Ops); count > maxOperations {
		return nil, fmt.Errorf("it is %d operations with its marker, a transaction holds %d", count, maxOperations)
	}
	key := u.Marker.Item.Only(u.Marker.Key)
	if u.Marker.Table == "" || key.Len() != 1 {
		return nil, errors.New("marker: it needs a Table, and an Item with the attribute that Key names")
	}
	n := &unit{marker: u.Marker, size: len(u.Marker.Item.Raw())}
	n.parts = append(n.parts, newPart(aMarker, 0, u.Marker.Table, key))
	n.parts[0].item.Put = &types.Put{
		TableName: &u.Marker.Table, Item: sdkitem.Map(u.Marker.Item),
		ConditionExpression: new("attribute_not_exists(#k)"), ExpressionAttributeNames: map[string]string{"#k": u.Marker.Key},
	}
	for i := range u.Adds {
		a := &u.Adds[i]
		if err := s.appendAdd(n, i, a); err != nil {
			return nil, fmt.Errorf("add %d, to table %q: %w", i, a.Table, err)
		}
	}
	for i, op := range u.Ops {
		if err := s.appendOp(n, i, op, nil); err != nil {
			return nil, fmt.Errorf("write %d, to table %q: %w", i, op.Table, err)
		}
	}
	for i, p := range n.parts {
		if slices.ContainsFunc(n.parts[:i], p.sameItem) {
			return nil, fmt.Errorf("item %s of table %q is touched twice; a transaction may touch an item once", keyhash.Item(p.key), p.table)
		}
	}
	return n, nil
}

func (s *Store) appendAdd(n *unit, i int, a *dynamo.Add) error {
	switch {
	case a.Table == "":
		return errors.New("no table is named")
	case a.Key.Len() == 0:
		return errors.New("there is no key")
	case len(a.By) == 0:
		return errors.New("By is empty: there is nothing to add")
	}
	p := newPart(anAdd, i, a.Table, a.Key)
	p.add = a
	n.parts = append(n.parts, p)
	n.size += len(a.Key.Raw()) + 100*len(a.By)
	if a.Else.Kind == 0 {
		return nil
	}
	if a.Create || a.Else.Condition != "" || a.Else.Key.Len() == 0 {
		return errors.New("Else is for an Add without Create; it needs a Key, and no condition")
	}
	if err := s.appendOp(n, i, a.Else, p); err != nil {
		return fmt.Errorf("Else, to table %q: %w", a.Else.Table, err)
	}
	return nil
}

// appendOp appends the part of an Op to n. The key of a Put is known if the names
// of the table's key attributes are.
func (s *Store) appendOp(n *unit, i int, op dynamo.Op, instead *part) error {
	c, err := convert(op)
	if err != nil {
		return err
	}
	key := op.Key
	if op.Kind == dynamo.PutOp {
		names := s.keys.known(op.Table)
		if key = op.Item.Only(names...); len(names) == 0 || key.Len() != len(names) {
			key, n.alone = sluice.Item{}, true
		}
	}
	p := newPart(anOp, i, op.Table, key)
	p.item, p.instead = c.transacted(), instead
	n.parts = append(n.parts, p)
	n.size += c.size
	return nil
}

func newPart(w what, index int, table string, key sluice.Item) *part {
	return &part{what: w, index: index, table: table, key: key, ref: ref{tableName(table), key.Hash()}}
}

// sameItem reports whether p and q touch the same item, as far as known. Tables of
// the same name may belong to two accounts.
func (p *part) sameItem(q *part) bool {
	return p.ref == q.ref && p.table == q.table && p.key.Exists() && q.key.Exists() && p.key.Equal(q.key)
}

// written yields the parts of u that will be written, as far as known.
func (u *unit) written(yield func(*part) bool) {
	for _, p := range u.parts {
		if !p.dropped && (p.instead == nil || p.instead.dropped) && !yield(p) {
			return
		}
	}
}

// dropped returns the indexes of the Adds whose item does not exist.
func (u *unit) dropped() (adds []int) {
	for _, p := range u.parts {
		if p.dropped {
			adds = append(adds, p.index)
		}
	}
	return adds
}
