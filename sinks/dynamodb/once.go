package dynamodb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/batch"
	"github.com/sluicehq/sluice/dynamo"
	"github.com/sluicehq/sluice/sdkitem"
)

const (
	maxOperations = 100       // of one transaction
	maxBytes      = 4_000_000 // of one transaction; 4 MB
	maxAttributes = 100       // that one Update adds to, so that its expression stays far from 4 KB

	// unitsPerCommit is half of what a transaction may hold: a marker and one
	// Add each, when no two Units add to the same item.
	unitsPerCommit = maxOperations / 2
)

// Once applies a Unit, or finds that it was applied before. When it returns
// nil, all of the Unit is durable but for the Adds that Applied.Dropped names.
//
// Units that are asked for at the same time share transactions: markers beside
// each other, Adds to one item summed up. Transactions of one Store that touch
// the same item run one after another, and what comes meanwhile goes into the
// next one, so that a hot counter costs one write a transaction, not one a
// record, and does not conflict with itself.
//
// A condition of Ops that does not hold is a [*dynamo.ConditionError] with the
// indexes in u.Ops. What will never succeed is sluice.Permanent: an item that
// is touched twice, more than 100 operations, an Add to what is no number, an
// item that would become too large. Any other error may pass; whether the Unit
// was applied is then unknown, and Once with the same marker tells.
//
// When an answer is lost, the next attempt finds the marker: then
// Applied.Before is true although this very call has written.
//
// When ctx ends before the Unit is sent, it is withdrawn; after that Once
// waits for the true result.
func (s *Store) Once(ctx context.Context, u dynamo.Unit) (dynamo.Applied, error) {
	n, err := s.once.prepare(u)
	if err != nil {
		return dynamo.Applied{}, sluice.Permanent(fmt.Errorf("dynamodb: unit %s: %w", nameOf(u.Marker), err))
	}
	if err := s.once.batch.Do(ctx, n); err != nil {
		return dynamo.Applied{}, fmt.Errorf("dynamodb: unit %s: %w", nameOf(u.Marker), err)
	}
	return n.applied, nil
}

// nameOf says which marker it is, for messages to people.
func nameOf(m dynamo.Marker) string {
	return fmt.Sprintf("%s of table %q", m.Item.Only(m.Key).Raw(), m.Table)
}

// once is what Once needs beside the client.
type once struct {
	pool  *pool
	batch *batch.Batcher[*unit]
	keys  sync.Map // of tables: the names of their key attributes, as Adds and Ops with a Key have shown
}

func newOnce(send func(context.Context, *dynamodb.TransactWriteItemsInput) error, explain func(error) error, o Options) *once {
	p := &pool{send: send, explain: explain, opt: o, busy: map[ref]struct{}{}, changed: make(chan struct{})}
	if p.rest = 3 * o.Linger / 2; o.Linger == 0 {
		p.rest = 3 * time.Millisecond
	}
	return &once{pool: p, batch: batch.New(p.commit, nil, batch.Options{
		MaxItems: unitsPerCommit,
		InFlight: o.InFlight,
		Linger:   o.Linger,
		Timeout:  o.Timeout,
		Hooks:    batch.Hooks{Committed: o.Hooks.Committed},
	})}
}

// transactOnce is how Once sends. Only lost answers are repeated as they are;
// after anything else there is something to change first.
func (s *Store) transactOnce(ctx context.Context, in *dynamodb.TransactWriteItemsInput) error {
	return s.transact(ctx, in, repeated{attempts: 3, backoff: s.opt.Backoff, again: func(err error) bool {
		return reasonsOf(err) == nil && classify(err) == passing
	}})
}

// unit is a dynamo.Unit on its way.
type unit struct {
	parts   []*part // the marker, then Adds, then Ops
	adds    int     // of the parts
	size    int
	state   // of the pool, under its lock
	applied dynamo.Applied
}

// part is one operation of a unit.
type part struct {
	what  what
	index int         // in Unit.Adds or Unit.Ops
	ref   ref         // of the item that it touches
	key   sluice.Item // of that item; absent when it is not known
	table string

	guessed bool                    // the key is what others have shown
	whole   sluice.Item             // of a marker
	item    types.TransactWriteItem // ready; of markers and Ops
	add     *dynamo.Add
	dropped bool  // the item of the Add is not there
	instead *part // of an Add that is dropped; nil: nothing
}

// written is the part that is written, as far as is known; nil when there is none.
func (p *part) written() *part {
	if p.dropped {
		return p.instead
	}
	return p
}

type what uint8

const (
	aMarker what = iota
	anAdd
	anOp
	anElse // of an Add that was dropped
)

// ref stands for an item of a table. Two items may share one: they are then
// kept apart as if they were the same, which does no harm.
type ref struct {
	table string
	key   uint64
}

func newRef(table string, key uint64) ref { return ref{tableName(table), key} }

// prepare makes a unit of u, or says why it will never be applied.
func (o *once) prepare(u dynamo.Unit) (*unit, error) {
	n := &unit{adds: len(u.Adds)}
	if count := 1 + len(u.Adds) + len(u.Ops); count > maxOperations {
		return nil, fmt.Errorf("it is %d operations with its marker, a transaction holds %d", count, maxOperations)
	}
	marker, err := markerPart(u.Marker)
	if err != nil {
		return nil, fmt.Errorf("marker: %w", err)
	}
	n.parts = append(n.parts, marker)
	n.size = len(u.Marker.Item.Raw())
	for i := range u.Adds {
		p, err := o.addPart(i, &u.Adds[i])
		if err != nil {
			return nil, fmt.Errorf("add %d, to table %q: %w", i, u.Adds[i].Table, err)
		}
		n.parts = append(n.parts, p)
		n.size += len(p.key.Raw()) + 100*len(p.add.By)
		if u.Adds[i].Else.Kind != 0 {
			size, err := o.elsePart(p, u.Adds[i].Else)
			if err != nil {
				return nil, fmt.Errorf("what stands for add %d, to table %q: %w", i, u.Adds[i].Else.Table, err)
			}
			n.size += size
		}
	}
	for i, op := range u.Ops {
		p, size, err := o.opPart(i, op)
		if err != nil {
			return nil, fmt.Errorf("write %d, to table %q: %w", i, op.Table, err)
		}
		n.parts = append(n.parts, p)
		n.size += size
		if !p.key.Exists() {
			n.alone = true
		}
	}
	all := slices.Clone(n.parts)
	for _, p := range n.parts {
		if p.instead != nil {
			all = append(all, p.instead)
		}
	}
	for i, p := range all {
		if j := slices.IndexFunc(all[:i], p.sameItem); j >= 0 {
			if p.guessed || all[j].guessed {
				n.alone = true // DynamoDB knows
				continue
			}
			return nil, fmt.Errorf("item %s of table %q is touched twice; a transaction may touch an item once", p.key.Raw(), p.table)
		}
	}
	return n, nil
}

// sameItem reports whether p and q surely touch the same item. Tables of the
// same name may be those of two accounts.
func (p *part) sameItem(q *part) bool {
	return p.ref == q.ref && p.table == q.table && p.key.Exists() && q.key.Exists() && p.key.Equal(q.key)
}

func markerPart(m dynamo.Marker) (*part, error) {
	key := m.Item.Only(m.Key)
	if m.Table == "" || key.Len() != 1 {
		return nil, errors.New("it needs a Table, and an Item with the attribute that Key names")
	}
	return &part{
		what: aMarker, table: m.Table, key: key, whole: m.Item, ref: newRef(m.Table, key.Hash()),
		item: types.TransactWriteItem{Put: &types.Put{
			TableName: &m.Table, Item: sdkitem.Map(m.Item),
			ConditionExpression: new("attribute_not_exists(#k)"), ExpressionAttributeNames: map[string]string{"#k": m.Key},
		}},
	}, nil
}

func (o *once) addPart(i int, a *dynamo.Add) (*part, error) {
	switch {
	case a.Table == "":
		return nil, errors.New("no table is named")
	case a.Key.Len() == 0:
		return nil, errors.New("there is no key")
	case len(a.By) == 0:
		return nil, errors.New("By is empty: there is nothing to add")
	}
	o.learn(a.Table, a.Key)
	return &part{what: anAdd, index: i, table: a.Table, key: a.Key, ref: newRef(a.Table, a.Key.Hash()), add: a}, nil
}

// elsePart makes what is written in the place of an Add.
func (o *once) elsePart(add *part, op dynamo.Op) (size int, err error) {
	if add.add.Create || op.Condition != "" || op.Key.Len() == 0 {
		return 0, errors.New("Else is for an Add without Create; it needs a Key, and no condition")
	}
	p, size, err := o.opPart(add.index, op)
	if err != nil {
		return 0, err
	}
	p.what = anElse
	add.instead = p
	return size, nil
}

func (o *once) opPart(i int, op dynamo.Op) (*part, int, error) {
	c, err := convert(op)
	if err != nil {
		return nil, 0, err
	}
	p := &part{what: anOp, index: i, table: op.Table, key: op.Key, item: c.transacted()}
	if op.Kind == dynamo.PutOp {
		p.key, p.guessed = o.keyOf(op.Table, op.Item), true
	} else {
		o.learn(op.Table, op.Key)
	}
	if p.key.Exists() {
		p.ref = newRef(op.Table, p.key.Hash())
	} else {
		p.ref = newRef(op.Table, op.Item.Hash())
	}
	return p, c.size, nil
}

// learn keeps the names of a table's key attributes.
func (o *once) learn(table string, key sluice.Item) {
	if _, ok := o.keys.Load(table); ok {
		return
	}
	var names []string
	for name := range key.All() {
		names = append(names, name)
	}
	o.keys.LoadOrStore(table, names)
}

// keyOf returns the key of an item that is put, or an absent one as long as no
// other write has shown of what it is made. That may be mistaken, and does no
// harm: what should not have shared a transaction is refused, and sent apart.
func (o *once) keyOf(table string, it sluice.Item) sluice.Item {
	names, ok := o.keys.Load(table)
	if !ok {
		return sluice.Item{}
	}
	key := it.Only(names.([]string)...)
	if key.Len() != len(names.([]string)) {
		return sluice.Item{}
	}
	return key
}
