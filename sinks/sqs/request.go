package sqs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/awserror"
)

// result is the result of one entry of a request.
type result struct {
	err   error // nil: the queue has it
	again bool  // refused temporarily: retry in this commit
}

// request sends entries once and matches the results. The client itself retries
// temporary failures of whole requests (network, throttling).
func (q *Queue) request(ctx context.Context, url string, entries []*entry) []result {
	if requests := q.fitting(entries); len(requests) > 1 {
		var results []result
		for _, one := range requests {
			results = append(results, q.request(ctx, url, one)...)
		}
		return results
	}
	in := &awssqs.SendMessageBatchInput{QueueUrl: &url, Entries: make([]types.SendMessageBatchRequestEntry, len(entries))}
	for i, e := range entries {
		in.Entries[i] = e.SendMessageBatchRequestEntry
		in.Entries[i].Id = aws.String(strconv.Itoa(i))
	}
	out, err := q.client.SendMessageBatch(ctx, in)
	results := make([]result, len(entries))
	if err == nil {
		lower(&q.maxMessage, reconcile(results, out))
	} else {
		if limit := limitIn(err.Error()); limit > 0 {
			lower(&q.maxRequest, limit)
			lower(&q.maxMessage, limit)
		}
		for i := range results {
			results[i].err = q.explain("SendMessageBatch", err)
		}
	}
	switch {
	case err == nil || !ofContent(err):
	case len(q.fitting(entries)) > 1:
		return q.request(ctx, url, entries) // with the limit just learned
	case len(entries) > 1:
		// One entry fails the whole request: search for it.
		half := len(entries) / 2
		return append(q.request(ctx, url, entries[:half]), q.request(ctx, url, entries[half:])...)
	case neverTaken(err):
		results[0].err = sluice.Permanent(results[0].err)
	}
	return results
}

// reconcile fills results from a response with status 200, which may still refuse
// messages or omit some. It returns the message limit in a refusal; 0 if it has
// none.
func reconcile(results []result, out *awssqs.SendMessageBatchOutput) (limit int64) {
	for i := range results {
		results[i] = result{errors.New("SQS answered the request, but said nothing about this message"), true}
	}
	index := func(id *string) (int, bool) {
		i, err := strconv.Atoi(aws.ToString(id))
		return i, err == nil && i >= 0 && i < len(results)
	}
	for _, s := range out.Successful {
		if i, ok := index(s.Id); ok {
			results[i] = result{}
		}
	}
	for _, f := range out.Failed {
		i, ok := index(f.Id)
		if !ok {
			continue
		}
		code, message := aws.ToString(f.Code), aws.ToString(f.Message)
		if n := limitIn(message); n > 0 {
			limit = n
		}
		err := fmt.Errorf("SQS refused the message: %s: %s", code, message)
		if f.SenderFault && !ofQueue(code) && !wantsDeduplication(message) {
			results[i] = result{sluice.Permanent(err), false}
		} else {
			if awserror.OfCode(code) == awserror.Throttled {
				err = sluice.Overloaded(err)
			}
			results[i] = result{err, true}
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
