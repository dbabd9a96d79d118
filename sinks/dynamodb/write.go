package dynamodb

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/item/sdkitem"
)

// Write makes one write, with its condition if set. A failed condition is a
// [*dynamo.ConditionError] with the item found. An impossible write is
// sluice.Permanent. Temporary refusals are retried, up to Options.Attempts times
// within Options.Timeout.
//
// After a lost response Write repeats the write, and its condition sees the effect
// of the first. A Put that finds the same item, and a Delete that finds none, have
// succeeded. An Update whose condition no longer holds returns that error. An
// expression that counts, such as "ADD #n :one", may count twice: see
// [Store.Once].
func (s *Store) Write(ctx context.Context, op dynamo.Op) error {
	return s.writeGuarded(ctx, op, nil)
}

// writeGuarded is Write with a guard before each request.
func (s *Store) writeGuarded(ctx context.Context, op dynamo.Op, g *guard) error {
	if err := g.refusal(); err != nil {
		return &tableError{op.Table, err}
	}
	if op.Kind == dynamo.CheckOp {
		return refuse(op.Table, errors.New("a Check writes nothing and has its place in Transact"))
	}
	o, err := convert(op)
	if err != nil {
		return refuse(op.Table, err)
	}
	// Wait for the budget before the time of the write begins.
	estimate := units{op.Table: 1}
	if err := s.take(ctx, estimate); err != nil {
		return &tableError{op.Table, err}
	}
	ctx, cancel := context.WithTimeout(ctx, s.opt.Timeout)
	defer cancel()
	taken, lost := true, false
	var held error
	err = s.retry(ctx, s.opt.Attempts, func(ctx context.Context) error {
		if !taken {
			if err := s.take(ctx, estimate); err != nil {
				return err
			}
		}
		taken = false
		if g != nil {
			if s.guarded.Acquire(ctx, 1) != nil {
				s.settle(estimate, nil)
				return context.Cause(ctx)
			}
			defer s.guarded.Release(1)
			g.ask(ctx)
			if held = g.refusal(); held != nil {
				s.settle(estimate, nil)
				return nil
			}
		}
		capacity, err := s.writeSingle(ctx, &o)
		s.settleAfter(err, estimate, capacity)
		if lost && foundOwn(err, op) {
			return nil
		}
		lost = lost || mayBeDone(err)
		return err
	})
	if held != nil {
		return &tableError{op.Table, held}
	}
	if failed, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
		return conditionError([]int{0}, []string{op.Table}, []map[string]types.AttributeValue{failed.Item})
	}
	return s.explain(callOf(op.Kind), op.Table, err)
}

// writeSingle makes one request.
func (s *Store) writeSingle(ctx context.Context, o *operation) ([]types.ConsumedCapacity, error) {
	const old, total = types.ReturnValuesOnConditionCheckFailureAllOld, types.ReturnConsumedCapacityTotal
	var capacity *types.ConsumedCapacity
	switch o.kind {
	case dynamo.PutOp:
		out, err := try(ctx, s, s.db.PutItem, &dynamodb.PutItemInput{
			TableName: &o.table, Item: o.item, ConditionExpression: o.condition, ExpressionAttributeNames: o.names,
			ExpressionAttributeValues: o.values, ReturnValuesOnConditionCheckFailure: old, ReturnConsumedCapacity: total,
		})
		if err != nil {
			return nil, err
		}
		capacity = out.ConsumedCapacity
	case dynamo.UpdateOp:
		out, err := try(ctx, s, s.db.UpdateItem, &dynamodb.UpdateItemInput{
			TableName: &o.table, Key: o.key, UpdateExpression: o.update, ConditionExpression: o.condition, ExpressionAttributeNames: o.names,
			ExpressionAttributeValues: o.values, ReturnValuesOnConditionCheckFailure: old, ReturnConsumedCapacity: total,
		})
		if err != nil {
			return nil, err
		}
		capacity = out.ConsumedCapacity
	default:
		out, err := try(ctx, s, s.db.DeleteItem, &dynamodb.DeleteItemInput{
			TableName: &o.table, Key: o.key, ConditionExpression: o.condition, ExpressionAttributeNames: o.names,
			ExpressionAttributeValues: o.values, ReturnValuesOnConditionCheckFailure: old, ReturnConsumedCapacity: total,
		})
		if err != nil {
			return nil, err
		}
		capacity = out.ConsumedCapacity
	}
	if capacity == nil {
		return nil, nil
	}
	return []types.ConsumedCapacity{*capacity}, nil
}

// foundOwn reports whether a condition fails because op itself was done.
func foundOwn(err error, op dynamo.Op) bool {
	var failed *types.ConditionalCheckFailedException
	if !errors.As(err, &failed) {
		return false
	}
	switch op.Kind {
	case dynamo.PutOp:
		found, err := sdkitem.FromMap(failed.Item)
		return err == nil && found.Equal(op.Item)
	case dynamo.DeleteOp:
		return len(failed.Item) == 0
	}
	return false
}

func callOf(k dynamo.OpKind) string {
	switch k {
	case dynamo.PutOp:
		return "PutItem"
	case dynamo.DeleteOp:
		return "DeleteItem"
	}
	return "UpdateItem"
}

// conditionError returns the error for failed conditions, with the items found.
func conditionError(failed []int, tables []string, found []map[string]types.AttributeValue) error {
	items := make([]sluice.Item, len(found))
	for i, m := range found {
		if len(m) == 0 {
			continue
		}
		it, err := sdkitem.FromMap(m)
		if err != nil {
			return fmt.Errorf("dynamodb: table %q: a condition does not hold, and the item that was found cannot be read: %w", tables[i], err)
		}
		items[i] = it
	}
	return &dynamo.ConditionError{Failed: failed, Items: items, Tables: tables}
}
