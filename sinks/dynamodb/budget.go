package dynamodb

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice/internal/awserror"
	"github.com/sluicehq/sluice/internal/budget"
)

// tableBudgets limit the write units taken from tables. A write consumes more than
// the item: indexes and the previous item count too.
type tableBudgets struct {
	buckets map[string]*budget.Bucket // by name of the table; not changed
}

// units are write units by table.
type units map[string]float64

func newBudget(rates map[string]float64) tableBudgets {
	b := tableBudgets{buckets: make(map[string]*budget.Bucket, len(rates))}
	for table, rate := range rates {
		b.buckets[tableName(table)] = budget.New(rate)
	}
	return b
}

// errBudget is in each error of take.
var errBudget = errors.New("not sent: the budget")

// of returns the bucket of a table, or nil without a limit.
func (b tableBudgets) of(table string) *budget.Bucket { return b.buckets[tableName(table)] }

// tableName returns the name in a table's ARN, or the name itself: requests and
// responses may have either.
func tableName(table string) string {
	if strings.HasPrefix(table, "arn:") {
		return table[strings.LastIndexByte(table, '/')+1:]
	}
	return table
}

// take waits until the budgets of all tables have units left, and takes the
// estimate from them. Each write request calls it first, and then settle with the
// same estimate. On an error it takes nothing.
func (s *Store) take(ctx context.Context, estimate units) error {
	if len(s.budget.buckets) == 0 {
		return nil
	}
	took := make(units, len(estimate))
	for table, n := range estimate {
		b := s.budget.of(table)
		if b == nil {
			continue
		}
		if err := b.Take(ctx, n); err != nil {
			for table, n := range took {
				s.budget.of(table).Add(n)
			}
			return fmt.Errorf("%w of %v write units a second for table %q is used up: %w", errBudget, b.Rate(), table, err)
		}
		took[table] = n
	}
	return nil
}

// settle returns the estimate of a request and takes the real consumption instead.
// The response has it if the request set ReturnConsumedCapacity. Without a
// response, consumed is nil.
func (s *Store) settle(estimate units, consumed []types.ConsumedCapacity) {
	for _, c := range consumed {
		if c.TableName == nil || c.CapacityUnits == nil {
			continue
		}
		if b := s.budget.of(*c.TableName); b != nil {
			b.Add(-*c.CapacityUnits)
		}
		s.consumed.Add(*c.CapacityUnits, *c.TableName)
	}
	for table, n := range estimate { // last: who waits must not have units that are consumed
		if b := s.budget.of(table); b != nil {
			b.Add(n)
		}
	}
}

// settleAfter is settle for a request that may have failed. A write that may have
// happened, and a checked condition, cost units that no response reports: then the
// estimate stays taken.
func (s *Store) settleAfter(err error, estimate units, consumed []types.ConsumedCapacity) {
	if mayBeDone(err) || awserror.Code(err) == "ConditionalCheckFailedException" || reasonsOf(err) != nil {
		return
	}
	s.settle(estimate, consumed)
}
