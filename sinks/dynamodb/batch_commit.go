package dynamodb

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/awserror"
	"github.com/sluicehq/sluice/item/sdkitem"
)

// errUnprocessed is the error of a write that DynamoDB returned unprocessed. The
// reference of BatchWriteItem gives throughput as the usual reason, and backoff as
// the remedy.
var errUnprocessed = sluice.Overloaded(errors.New("DynamoDB gave the write back unprocessed: the table, or one of its partitions, has not the throughput"))

// commit writes ws, which have distinct keys, until each has its result. It
// repeats only temporary failures. A repeated Put or Delete has the same effect if
// the first one's response was lost.
func (s *Store) commit(ctx context.Context, ws []*batchWrite) []error {
	c := committing{store: s, writes: ws, errs: make([]error, len(ws))}
	open := make([]int, len(ws))
	for i := range ws {
		open[i] = i
	}
	// Wait for the budget before the time of the commit begins.
	estimate := c.estimate(open)
	if err := s.take(ctx, estimate); err != nil {
		c.fail(open, func(table string) error { return &tableError{table, err} })
		return c.errs
	}
	ctx, cancel := context.WithTimeout(ctx, s.opt.Timeout)
	defer cancel()
	for n := 1; ; n++ {
		again := c.request(ctx, open, estimate)
		if len(again) == 0 {
			return c.errs
		}
		if n >= s.opt.Attempts || !s.pause(ctx, n) {
			c.giveUp(again, n)
			return c.errs
		}
		open = again
		estimate = c.estimate(open)
		if err := s.take(ctx, estimate); err != nil {
			c.giveUp(open, n)
			return c.errs
		}
	}
}

// committing is the state of one commit. Lists of int are indexes into writes.
type committing struct {
	store  *Store
	writes []*batchWrite
	errs   []error // of writes to repeat: the last refusal
}

func (c *committing) estimate(open []int) units {
	if len(c.store.budget.buckets) == 0 {
		return nil
	}
	u := units{}
	for _, i := range open {
		u[c.writes[i].table] += c.writes[i].units
	}
	return u
}

func (c *committing) fail(open []int, err func(table string) error) {
	for _, i := range open {
		c.errs[i] = err(c.writes[i].table)
	}
}

func (c *committing) giveUp(open []int, attempts int) {
	for _, i := range open {
		c.errs[i] = fmt.Errorf("%w (after %d attempts in one commit)", c.errs[i], attempts)
	}
}

// request sends the open writes once, and returns those to send again. estimate
// was taken from the budgets. Guards are asked after that wait and right before
// the request.
func (c *committing) request(ctx context.Context, open []int, estimate units) (again []int) {
	s := c.store
	if open, estimate = c.allowed(ctx, open, estimate); len(open) == 0 {
		return nil
	}
	in := &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{}, ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal}
	for _, i := range open {
		w := c.writes[i]
		in.RequestItems[w.table] = append(in.RequestItems[w.table], w.request)
	}
	out, err := try(ctx, s, s.db.BatchWriteItem, in)
	if err != nil {
		s.settleAfter(err, estimate, nil)
		return c.refused(ctx, open, err)
	}
	s.settle(estimate, out.ConsumedCapacity)
	return c.unprocessed(open, out.UnprocessedItems)
}

// refused applies a request's error to its writes. If some writes may have caused
// it, the others are sent without them.
func (c *committing) refused(ctx context.Context, open []int, err error) (again []int) {
	s := c.store
	meaning := awserror.Of(err)
	late := tooLate(ctx, err)
	for _, i := range open {
		if !late || !awserror.Of(c.errs[i]).Passes() { // else the earlier refusal says more
			c.errs[i] = s.explain("BatchWriteItem", c.writes[i].table, err)
		}
	}
	if meaning.Passes() {
		if meaning == awserror.Throttled && c.divide(open, false) == nil { // of one table
			c.store.setApart(c.writes[open[0]].table)
		}
		return open
	}
	for _, part := range c.divide(open, meaning == awserror.Invalid || awserror.Code(err) == "ItemCollectionSizeLimitExceededException") {
		estimate := c.estimate(part)
		if err := s.take(ctx, estimate); err != nil {
			c.fail(part, func(table string) error { return &tableError{table, err} })
			continue
		}
		again = append(again, c.request(ctx, part, estimate)...)
	}
	return again
}

// divide returns the parts in which to search for the cause of a refusal: halves
// if a write may be the cause, else tables. nil means that no search is possible.
func (c *committing) divide(open []int, ofWrite bool) [][]int {
	if ofWrite {
		if len(open) < 2 {
			return nil
		}
		half := len(open) / 2
		return [][]int{open[:half], open[half:]}
	}
	var parts [][]int
	at := map[string]int{}
	for _, i := range open {
		table := c.writes[i].table
		n, ok := at[table]
		if !ok {
			n = len(parts)
			at[table] = n
			parts = append(parts, nil)
		}
		parts[n] = append(parts[n], i)
	}
	if len(parts) < 2 {
		return nil
	}
	return parts
}

// unprocessed sets the results of a successful request; returned writes are
// repeated. The map may be nil. If it has an unknown write, all writes of its
// table count as returned: writing twice is better than not at all.
func (c *committing) unprocessed(open []int, back map[string][]types.WriteRequest) (again []int) {
	ids := map[keyID]bool{}
	tables := map[string]bool{}
	for table, requests := range back {
		for _, r := range requests {
			if id, ok := c.find(open, table, r); ok {
				ids[id] = true
			} else {
				tables[tableName(table)] = true
			}
		}
	}
	for _, i := range open {
		w := c.writes[i]
		c.errs[i] = nil
		if ids[w.id] || tables[w.id.table] {
			c.errs[i] = &tableError{w.table, errUnprocessed}
			again = append(again, i)
			c.store.setApart(w.table)
		}
	}
	return again
}

// find returns the id of the write that was returned.
func (c *committing) find(open []int, table string, r types.WriteRequest) (keyID, bool) {
	attributes := map[string]types.AttributeValue(nil)
	switch {
	case r.PutRequest != nil:
		attributes = r.PutRequest.Item
	case r.DeleteRequest != nil:
		attributes = r.DeleteRequest.Key
	}
	var names []string
	for _, i := range open {
		if c.writes[i].id.table == tableName(table) {
			names = c.writes[i].key
			break
		}
	}
	key := make(map[string]types.AttributeValue, len(names))
	for _, name := range names {
		if v := attributes[name]; v != nil {
			key[name] = v
		}
	}
	it, err := sdkitem.FromMap(key)
	if err != nil {
		return keyID{}, false
	}
	id := keyID{tableName(table), it.Hash()}
	for _, i := range open {
		if c.writes[i].id == id {
			return id, true
		}
	}
	return keyID{}, false
}
