package queue

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sluicehq/sluice/batch"
	"github.com/sluicehq/sluice/internal/backoff"
)

// calls batches the calls of lanes to SQS.
type calls struct {
	deletes *batch.Batcher[string] // by receipt handle
	changes *batch.Batcher[change]
}

// change is a new visibility of a message.
type change struct {
	handle string
	after  time.Duration // until it is visible again
}

// newCalls makes calls that end with writes.
func (s *source) newCalls(writes context.Context) calls {
	o := batch.Options{MaxItems: maxBatch, InFlight: 8, Linger: 5 * time.Millisecond, Timeout: s.c.o.CallTimeout}
	return calls{
		deletes: batch.New(endedBy(writes, s.deleteBatch), nil, o),
		changes: batch.New(endedBy(writes, s.changeBatch), nil, o),
	}
}

// endedBy returns call with a context that also ends with other.
func endedBy[T any](other context.Context, call func(context.Context, []T) []error) func(context.Context, []T) []error {
	return func(ctx context.Context, items []T) []error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(other, cancel)()
		return call(ctx, items)
	}
}

func (s *source) deleteBatch(ctx context.Context, handles []string) []error {
	in := &awssqs.DeleteMessageBatchInput{QueueUrl: &s.url, Entries: make([]types.DeleteMessageBatchRequestEntry, len(handles))}
	for i := range handles {
		in.Entries[i] = types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: &handles[i]}
	}
	start := time.Now()
	out, err := s.client.DeleteMessageBatch(ctx, in)
	if err != nil {
		out = &awssqs.DeleteMessageBatchOutput{}
	}
	var done []*string
	for i := range out.Successful {
		done = append(done, out.Successful[i].Id)
	}
	return s.answered("DeleteMessageBatch", len(handles), start, done, out.Failed, err, s.c.o.Hooks.Deleted)
}

func (s *source) changeBatch(ctx context.Context, cs []change) []error {
	in := &awssqs.ChangeMessageVisibilityBatchInput{QueueUrl: &s.url, Entries: make([]types.ChangeMessageVisibilityBatchRequestEntry, len(cs))}
	for i := range cs {
		in.Entries[i] = types.ChangeMessageVisibilityBatchRequestEntry{
			Id: aws.String(strconv.Itoa(i)), ReceiptHandle: &cs[i].handle, VisibilityTimeout: seconds(cs[i].after),
		}
	}
	start := time.Now()
	out, err := s.client.ChangeMessageVisibilityBatch(ctx, in)
	if err != nil {
		out = &awssqs.ChangeMessageVisibilityBatchOutput{}
	}
	var done []*string
	for i := range out.Successful {
		done = append(done, out.Successful[i].Id)
	}
	return s.answered("ChangeMessageVisibilityBatch", len(cs), start, done, out.Failed, err, s.c.o.Hooks.Changed)
}

// seconds rounds d up.
func seconds(d time.Duration) int32 { return int32((max(d, 0) + time.Second - 1) / time.Second) }

var errUnanswered = errors.New("SQS answered the request, but said nothing about this message")

// answered matches a response to the n entries of a request. Even with status 200
// it may refuse or omit some.
func (s *source) answered(call string, n int, start time.Time, done []*string, refused []types.BatchResultErrorEntry, err error, hook func(string, Call)) []error {
	errs := slices.Repeat([]error{cmp.Or(err, errUnanswered)}, n)
	index := func(id *string) (int, bool) {
		i, err := strconv.Atoi(aws.ToString(id))
		return i, err == nil && i >= 0 && i < n
	}
	for _, id := range done {
		if i, ok := index(id); ok {
			errs[i] = nil
		}
	}
	for _, f := range refused {
		if i, ok := index(f.Id); ok {
			errs[i] = &entryError{aws.ToString(f.Code), aws.ToString(f.Message), f.SenderFault}
		}
	}
	c := Call{Messages: n, Took: time.Since(start), Err: err}
	worst := err
	for _, e := range errs {
		if e != nil {
			c.Failed++
			if !isGone(e) {
				worst = e
			}
		}
	}
	s.health.call(call, worst)
	if hook != nil {
		hook(s.name, c)
	}
	return errs
}

// delete deletes m, which is settled, and releases it. It retries while m may be
// hidden from others: a message that cannot be deleted must not be handled again
// and again. An error says that m will come again.
func (s *source) delete(t terms, m *message) error {
	s.hand.set(m, settled)
	for tries := 0; ; tries++ {
		handle, _, limit := s.hand.lease(m)
		err := s.calls.deletes.Do(t.writes, handle)
		if err == nil || isGone(err) || t.writes.Err() != nil || !time.Now().Before(limit) {
			if s.hand.end(m, handle) {
				return err
			}
			tries = -1 // it came again: only the newest handle counts
			continue
		}
		s.tell("a message was handled, and cannot be deleted: will be tried again", "DeleteMessageBatch", err)
		_ = backoff.Sleep(t.writes, backoff.Full(retryDelay, maxDelay, tries+1)) // the next call returns the error
	}
}

// giveBack makes messages visible again after the delay, and releases them. If SQS
// does not accept that, they come when their visibility ends.
func (s *source) giveBack(t terms, ms []*message, after time.Duration) {
	for open, tries := ms, 0; len(open) > 0; tries++ {
		cs := make([]change, len(open))
		untils := make([]time.Time, len(open))
		for i, m := range open {
			handle, until, limit := s.hand.lease(m)
			cs[i] = change{handle, min(after, time.Until(limit).Truncate(time.Second))}
			untils[i] = until
		}
		errs := s.calls.changes.DoAll(t.writes, cs)
		var again []*message
		for i, m := range open {
			var err error
			if errs != nil {
				err = errs[i]
			}
			final := err == nil || isGone(err) || t.writes.Err() != nil || !time.Now().Before(untils[i])
			if !final || !s.hand.end(m, cs[i].handle) {
				again = append(again, m)
			}
			if !final {
				s.tell("a message cannot be given back: will be tried again", "ChangeMessageVisibilityBatch", err)
			}
		}
		if open = again; len(open) > 0 {
			_ = backoff.Sleep(t.writes, backoff.Full(retryDelay, maxDelay, tries+1))
		}
	}
}

// drop releases messages: they come again by themselves.
func (s *source) drop(ms []*message) {
	for _, m := range ms {
		for {
			if handle, _, _ := s.hand.lease(m); s.hand.end(m, handle) {
				break
			}
		}
	}
}

// tell logs failing calls, once a second.
func (s *source) tell(msg, call string, err error) {
	if unlogged, ok := s.troubles.due(time.Now()); ok {
		s.log().Warn(msg, "error", s.explain(call, err), "unlogged", unlogged)
	}
}
