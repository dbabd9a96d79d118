package dynamodb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/internal/awserror"
	"github.com/sluicehq/sluice/internal/backoff"
)

// Transact makes all writes or none: one TransactWriteItems of up to 100
// operations and 4 MB, each of another item. Without operations it returns nil.
//
// Failed conditions are one [*dynamo.ConditionError] with all of their indexes. An
// impossible write is sluice.Permanent. Conflicts with other writes and other
// temporary refusals are retried, up to Options.Attempts times within
// Options.Timeout. A retry after a lost response does nothing if the first was
// done. A second call of Transact is a new transaction: see [Store.Once].
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

// cancelled interprets the reasons for the writes of a cancelled transaction.
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

// errBefore is in an error of transact that tells of two tries.
var errBefore = errors.New("the try before failed")

// transact makes one TransactWriteItems with retries.
//
// The SDK makes the retries, because it gives each call a token. A token covers
// only identical bytes, and the SDK writes maps in another order in each call.
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
	var before error // of the last try that was not tooLate
	again := r.again
	r.again = func(err error) bool {
		if !tooLate(ctx, err) {
			before = err
		}
		return again(err)
	}
	out, err := s.db.TransactWriteItems(ctx, in, func(o *dynamodb.Options) {
		o.Retryer = r
		o.APIOptions = append(o.APIOptions, s.eachTry)
	})
	if err != nil {
		s.settleAfter(err, estimate, nil)
		if before != nil && tooLate(ctx, err) {
			// Only in words: the last try may be done, and reasons of the one
			// before would deny it.
			err = fmt.Errorf("%w; %w: %v", err, errBefore, before) //nolint:errorlint // see above
			if ofLoad(before) {
				err = sluice.Overloaded(err)
			}
		}
		return err
	}
	s.settle(estimate, out.ConsumedCapacity)
	return nil
}

// eachTry is try for the SDK's retries.
func (s *Store) eachTry(stack *middleware.Stack) error {
	return stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc("OneTry", func(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
		ctx, cancel := context.WithTimeout(ctx, s.opt.Timeout/3)
		defer cancel()
		return next.HandleFinalize(ctx, in)
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
	aws.NopRetryer
	attempts int
	backoff  time.Duration
	again    func(error) bool
}

func (r repeated) IsErrorRetryable(err error) bool { return r.again(err) }
func (r repeated) MaxAttempts() int                { return r.attempts }

func (r repeated) RetryDelay(attempt int, _ error) (time.Duration, error) {
	return backoff.Full(r.backoff, r.backoff<<10, attempt), nil
}

// reason is the meaning of one reason of a cancelled transaction.
type reason uint8

const (
	none    reason = iota
	unmet          // the condition does not hold
	forNow         // conflict, throughput, or unknown
	forGood        // the write is impossible
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

// isOfLoad reports whether a transaction was cancelled because this write exceeded
// the throughput: see TransactionCanceledException in the API reference.
func isOfLoad(r types.CancellationReason) bool {
	return r.Code != nil && (*r.Code == "ProvisionedThroughputExceeded" || *r.Code == "ThrottlingError")
}

// reasonsOf returns the reasons if err is a cancelled transaction.
func reasonsOf(err error) []types.CancellationReason {
	if c, ok := errors.AsType[*types.TransactionCanceledException](err); ok {
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
