package sqs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/awserror"
)

// request sends entries once and sets their results. The client itself retries
// temporary failures of whole requests (network, throttling).
func (q *Queue) request(ctx context.Context, url string, entries []*entry) {
	if requests := q.fitting(entries); len(requests) > 1 {
		for _, one := range requests {
			q.request(ctx, url, one)
		}
		return
	}
	in := &awssqs.SendMessageBatchInput{QueueUrl: &url, Entries: make([]types.SendMessageBatchRequestEntry, len(entries))}
	for i, e := range entries {
		in.Entries[i] = e.SendMessageBatchRequestEntry
		in.Entries[i].Id = aws.String(strconv.Itoa(i))
	}
	var before error
	out, err := q.client.SendMessageBatch(ctx, in, q.eachTry(&before))
	if err == nil {
		lower(&q.maxMessage, reconcile(entries, out))
		return
	}
	if limit := limitIn(err.Error()); limit > 0 {
		lower(&q.maxRequest, limit)
		lower(&q.maxMessage, limit)
	}
	late := tooLate(ctx, err)
	if late && before != nil {
		err, late = before, false
	}
	for _, e := range entries {
		if !late || !e.again { // else the refusal of the message says more
			e.err = q.explain("SendMessageBatch", err)
		}
		e.again = false
	}
	switch {
	case !ofContent(err):
	case len(q.fitting(entries)) > 1:
		q.request(ctx, url, entries) // with the limit just learned
	case len(entries) > 1:
		// One entry fails the whole request: search for it.
		half := len(entries) / 2
		q.request(ctx, url, entries[:half])
		q.request(ctx, url, entries[half:])
	case neverTaken(err):
		entries[0].err = sluice.Permanent(entries[0].err)
	}
}

// tooLate reports whether err says only that the time of ctx ended before an answer.
// A caller that cancels ctx wants to see that.
func tooLate(ctx context.Context, err error) bool {
	return errors.Is(ctx.Err(), context.DeadlineExceeded) && awserror.Of(err) == awserror.Lost
}

// eachTry gives each try of the client a third of Timeout, so that a silently dead
// connection leaves time for others. It keeps the refusal for load by the last try that
// has an answer in time. The client itself forgets it when the time ends during the
// next try, or the pause before it.
func (q *Queue) eachTry(refusal *error) func(*awssqs.Options) {
	each := middleware.FinalizeMiddlewareFunc("EachTry", func(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
		limit := q.opt.Timeout / 3
		try, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		out, md, err := next.HandleFinalize(try, in)
		if tooLate(try, err) && ctx.Err() == nil {
			err = noAnswer(limit)
		}
		if !tooLate(ctx, err) {
			if *refusal = nil; awserror.Of(err) == awserror.Throttled {
				*refusal = &smithy.OperationError{ServiceID: awssqs.ServiceID, OperationName: middleware.GetOperationName(ctx), Err: err}
			}
		}
		return out, md, err
	})
	return awssqs.WithAPIOptions(func(stack *middleware.Stack) error {
		return stack.Finalize.Insert(each, "Retry", middleware.After)
	})
}

// noAnswer is the error of a try without an answer for so long. The client repeats it.
type noAnswer time.Duration

func (e noAnswer) Error() string        { return "no answer within " + time.Duration(e).String() }
func (e noAnswer) RetryableError() bool { return true }

// reconcile sets the results of a response with status 200, which may still refuse
// messages or omit some. It returns the message limit in a refusal; 0 if it has
// none.
func reconcile(entries []*entry, out *awssqs.SendMessageBatchOutput) (limit int64) {
	for _, e := range entries {
		e.err, e.again = errors.New("SQS answered the request, but said nothing about this message"), true
	}
	find := func(id *string) *entry {
		if i, err := strconv.Atoi(aws.ToString(id)); err == nil && i >= 0 && i < len(entries) {
			return entries[i]
		}
		return new(entry) // of no message
	}
	for _, s := range out.Successful {
		e := find(s.Id)
		e.err, e.again = nil, false
	}
	for _, f := range out.Failed {
		code, message := aws.ToString(f.Code), aws.ToString(f.Message)
		if n := limitIn(message); n > 0 {
			limit = n
		}
		e, err := find(f.Id), fmt.Errorf("SQS refused the message: %s: %s", code, message)
		switch {
		case f.SenderFault && !ofQueue(code) && !wantsDeduplication(message):
			e.err, e.again = sluice.Permanent(err), false
		case awserror.OfCode(code) == awserror.Throttled:
			e.err, e.again = sluice.Overloaded(err), true
		default:
			e.err, e.again = err, true
		}
	}
	return limit
}

// wantsDeduplication reports whether a refusal is that of a FIFO queue without
// content-based deduplication. It refuses every message without an id.
func wantsDeduplication(message string) bool {
	return strings.Contains(message, "ContentBasedDeduplication")
}

// ofQueue reports whether a refusal concerns the queue, its key or the rate,
// although SQS blames the sender. It may be temporary, and would fail every
// message.
func ofQueue(code string) bool {
	switch awserror.OfCode(code) {
	case awserror.Throttled, awserror.Denied, awserror.BadKey, awserror.Missing:
		return true
	}
	return false
}

// ofContent reports whether a request was refused as a whole for its content,
// possibly of a single message.
func ofContent(err error) bool {
	code := awserror.Code(err)
	return neverTaken(err) || strings.Contains(code, "InvalidParameterValue") || strings.Contains(code, "InvalidAttributeValue")
}

// neverTaken reports whether a request of one message was refused for a reason
// that only the message can cause. Other reasons, such as an invalid parameter
// value, may be the queue's: the flow distinguishes them.
func neverTaken(err error) bool {
	code := awserror.Code(err)
	if awserror.Status(err) == http.StatusRequestEntityTooLarge {
		return true // a proxy before SQS, with its own response
	}
	return strings.Contains(code, "BatchRequestTooLong") || strings.Contains(code, "InvalidMessageContents") ||
		strings.Contains(code, "Invalid") && strings.Contains(err.Error(), "MessageTooLong")
}
