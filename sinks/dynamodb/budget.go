package dynamodb

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// budget bounds the write units taken of the tables that have a limit.
//
// Only the answer says what a write has consumed: indexes, and the item that
// was there before, count as well. A request therefore takes an estimate,
// waits while what others took is more than there is, and settles the
// difference afterwards. What was underestimated is waited for by the next.
type budget struct {
	buckets map[string]*bucket // by name of the table; not changed
}

// bucket fills with rate, up to a second's worth. Who finds it below zero
// waits until what was taken before has flown in: first come, first served.
type bucket struct {
	rate float64 // units a second

	mu    sync.Mutex
	level float64
	at    time.Time // of level
}

// units are write units by table.
type units map[string]float64

func newBudget(rates map[string]float64) budget {
	b := budget{buckets: make(map[string]*bucket, len(rates))}
	for table, rate := range rates {
		b.buckets[tableName(table)] = &bucket{rate: rate, level: max(rate, 1), at: time.Now()}
	}
	return b
}

// of returns the bucket of a table, nil when it has no limit.
func (b budget) of(table string) *bucket { return b.buckets[tableName(table)] }

// tableName is the name in a table's ARN, or the name itself: requests and
// answers may have either.
func tableName(table string) string {
	if strings.HasPrefix(table, "arn:") {
		return table[strings.LastIndexByte(table, '/')+1:]
	}
	return table
}

// take waits until the budgets of all tables have something left, and takes
// the estimate from them. Each request that writes calls it first, and settle
// afterwards with the same estimate. On an error nothing is taken.
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
		if err := b.take(ctx, n); err != nil {
			for table, n := range took {
				s.budget.of(table).add(n)
			}
			return fmt.Errorf("not sent: the budget of %v write units a second for table %q is used up: %w", b.rate, table, err)
		}
		took[table] = n
	}
	return nil
}

// settle gives the estimate of a request back and takes what was consumed
// instead, which the answer says if the request asked for
// ReturnConsumedCapacity. Without an answer, consumed is nil.
func (s *Store) settle(estimate units, consumed []types.ConsumedCapacity) {
	if len(s.budget.buckets) > 0 {
		for table, n := range estimate {
			if b := s.budget.of(table); b != nil {
				b.add(n)
			}
		}
	}
	for _, c := range consumed {
		if c.TableName == nil || c.CapacityUnits == nil {
			continue
		}
		if b := s.budget.of(*c.TableName); b != nil {
			b.add(-*c.CapacityUnits)
		}
		if hook := s.opt.Hooks.Consumed; hook != nil {
			hook(*c.TableName, *c.CapacityUnits)
		}
	}
}

// settleAfter is settle for a request that may have failed. What DynamoDB may
// have done, and a condition that it has judged, cost units that no answer
// tells: then the estimate stays taken.
func (s *Store) settleAfter(err error, estimate units, consumed []types.ConsumedCapacity) {
	if mayBeDone(err) || codeOf(err) == "ConditionalCheckFailedException" || reasonsOf(err) != nil {
		return
	}
	s.settle(estimate, consumed)
}

// take is at once when the bucket has anything.
func (b *bucket) take(ctx context.Context, n float64) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	wait := b.reserve(n)
	if wait <= 0 {
		return nil
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= wait {
		b.add(n)
		return fmt.Errorf("the next %v are taken, and the deadline is before: %w", wait.Round(time.Millisecond), context.DeadlineExceeded)
	}
	if !sleep(ctx, wait) {
		b.add(n)
		return context.Cause(ctx)
	}
	return nil
}

// reserve takes n and returns how long to wait for it.
func (b *bucket) reserve(n float64) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fill()
	wait := time.Duration(0)
	if b.level <= 0 {
		wait = time.Duration(-b.level/b.rate*float64(time.Second)) + 1
	}
	b.level -= n
	return wait
}

// add gives n units, or takes them when n is negative.
func (b *bucket) add(n float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fill()
	b.level += n
}

// fill adds what has flown in; a second's worth at most stays, and room for
// one unit, without which nothing could be written at all.
func (b *bucket) fill() {
	now := time.Now()
	b.level = min(b.level+b.rate*now.Sub(b.at).Seconds(), max(b.rate, 1))
	b.at = now
}
