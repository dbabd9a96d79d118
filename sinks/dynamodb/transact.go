package dynamodb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/internal/awserror"
	"github.com/sluicehq/sluice/internal/backoff"
)

// Transact makes all writes or none: one TransactWriteItems of up to 100
// operations and 4 MB, each of another item. Without any it returns nil.
//
// Conditions that do not hold are one [*dynamo.ConditionError] with the indexes
// of all of them. What the service will never take is sluice.Permanent.
// Conflicts with other writes, and what else is refused for the moment, are
// tried again, up to Options.Attempts times within Options.Timeout. A repetition after a lost answer
// does nothing when the first was done; a call that failed, and is made again,
// is a new transaction: see [Store.Once].
func (s *Store) Transact(ctx context.Context, ops ...dynamo.Op) error {
	if len(ops) == 0 {
		return nil
	}
	if len(ops) > maxOperations {
		return sluice.Permanent(fmt.Errorf("dynamodb: %d operations: a transaction holds %d", len(ops), maxOperations))
	}
	in := &dynamodb.TransactWriteItemsInput{TransactItems: make([]types.TransactWriteItem, len(ops))}
	tables := make([]string, len(ops))
	for i, op := range ops {
		o, err := convert(op)
		if err != nil {
			return sluice.Permanent(fmt.Errorf("dynamodb: write %d of a transaction, to table %q: %w", i, op.Table, err))
		}
		in.TransactItems[i], tables[i] = o.transacted(), op.Table
	}
	err := s.transact(ctx, in, repeated{attempts: s.opt.Attempts, backoff: s.opt.Backoff, again: func(err error) bool {
		if reasons := reasonsOf(err); reasons != nil {
			return worst(reasons) == forNow
		}
		return awserror.Of(err).Passes()
	}})
	reasons := reasonsOf(err)
	if reasons == nil {
		return s.explain("TransactWriteItems", "", err)
	}
	return s.cancelled(reasons, tables, err)
}

// cancelled says what the reasons mean for the writes of a transaction.
func (s *Store) cancelled(reasons []types.CancellationReason, tables []string, err error) error {
	var failed []int
	var of []string
	var found []map[string]types.AttributeValue
	for i := range reasons {
		if i >= len(tables) {
			break
		}
		switch reasonOf(&reasons[i]) {
		case forGood:
			return sluice.Permanent(fmt.Errorf("dynamodb: write %d of a transaction, to table %q: %s", i, tables[i], textOf(&reasons[i])))
		case unmet:
			failed, of, found = append(failed, i), append(of, tables[i]), append(found, reasons[i].Item)
		}
	}
	if failed == nil {
		return s.explain("TransactWriteItems", "", err)
	}
	return conditionError(failed, of, found)
}

// transact makes one TransactWriteItems, with its repetitions.
//
// These are left to the SDK, which gives each call a token: a token covers only
// requests that are alike to the byte, and the SDK writes maps in another order
// each time that it is called.
func (s *Store) transact(ctx context.Context, in *dynamodb.TransactWriteItemsInput, r repeated) error {
	if len(s.budget.buckets) > 0 || s.consumed != nil {
		in.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
	}
	estimate := units{}
	for i := range in.TransactItems {
		estimate[tableOf(&in.TransactItems[i])] += 2
	}
	if err := s.take(ctx, estimate); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.opt.Timeout)
	defer cancel()
	out, err := s.db.TransactWriteItems(ctx, in, func(o *dynamodb.Options) {
		o.Retryer = r
		o.APIOptions = append(o.APIOptions, s.eachTry)
	})
	if err != nil {
		s.settleAfter(err, estimate, nil)
		return err
	}
	s.settle(estimate, out.ConsumedCapacity)
	return nil
}

// eachTry is try for those that the SDK makes.
func (s *Store) eachTry(stack *middleware.Stack) error {
	return stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc("OneTry", func(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (out middleware.FinalizeOutput, m middleware.Metadata, err error) {
		err = s.try(ctx, func(ctx context.Context) (err error) {
			out, m, err = next.HandleFinalize(ctx, in)
			return err
		})
		return out, m, err
	}), "Retry", middleware.After)
}

func tableOf(t *types.TransactWriteItem) string {
	switch {
	case t.Put != nil:
		return *t.Put.TableName
	case t.Update != nil:
		return *t.Update.TableName
	case t.Delete != nil:
		return *t.Delete.TableName
	default:
		return *t.ConditionCheck.TableName
	}
}

// repeated is an aws.Retryer with full jitter and without a quota.
type repeated struct {
	attempts int
	backoff  time.Duration
	again    func(error) bool
}

func (r repeated) IsErrorRetryable(err error) bool { return r.again(err) }
func (r repeated) MaxAttempts() int                { return r.attempts }

func (r repeated) RetryDelay(attempt int, _ error) (time.Duration, error) {
	return backoff.Full(r.backoff, r.backoff<<10, attempt), nil
}

func (r repeated) GetRetryToken(context.Context, error) (func(error) error, error) {
	return func(error) error { return nil }, nil
}

func (r repeated) GetInitialToken() func(error) error { return func(error) error { return nil } }

// reason is what one reason of a cancelled transaction means.
type reason uint8

const (
	none    reason = iota
	unmet          // the condition does not hold
	forNow         // a conflict, throughput, or what is not known yet
	forGood        // the write can never be
)

func reasonOf(r *types.CancellationReason) reason {
	if r.Code == nil {
		return none
	}
	switch *r.Code {
	case "None", "":
		return none
	case "ConditionalCheckFailed":
		return unmet
	case "ValidationError", "ItemCollectionSizeLimitExceeded":
		return forGood
	}
	return forNow
}

func textOf(r *types.CancellationReason) string {
	if r.Message == nil || *r.Message == "" {
		return *r.Code
	}
	return *r.Code + ": " + *r.Message
}

// isOfLoad reports whether a transaction was cancelled for this write's share of
// the throughput: see TransactionCanceledException in the API reference.
func isOfLoad(r types.CancellationReason) bool {
	return r.Code != nil && (*r.Code == "ProvisionedThroughputExceeded" || *r.Code == "ThrottlingError")
}

// reasonsOf returns the reasons if err says that a transaction was cancelled.
func reasonsOf(err error) []types.CancellationReason {
	var c *types.TransactionCanceledException
	if errors.As(err, &c) {
		return c.CancellationReasons
	}
	return nil
}

func worst(reasons []types.CancellationReason) (w reason) {
	for i := range reasons {
		w = max(w, reasonOf(&reasons[i]))
	}
	return w
}
