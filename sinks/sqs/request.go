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

// result is what became of one entry of a request.
type result struct {
	err   error // nil: the queue has it
	again bool  // refused for the moment: worth another try in this commit
}

// request sends entries once and matches the answers to them. The client
// itself repeats what fails as a whole and may pass (network, throttling).
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
		return q.request(ctx, url, entries) // by the limit that was learned
	case len(entries) > 1:
		// One of them spoils it for all: look for it.
		half := len(entries) / 2
		return append(q.request(ctx, url, entries[:half]), q.request(ctx, url, entries[half:])...)
	case neverTaken(err):
		results[0].err = sluice.Permanent(results[0].err)
	}
	return results
}

// reconcile fills results from an answer with status 200, which may still
// refuse messages, and may leave some out. It returns the limit of a message
// that a refusal names; 0 when none does.
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
// content-based deduplication, which takes no message without an id: it would
// meet every message.
func wantsDeduplication(message string) bool {
	return strings.Contains(message, "ContentBasedDeduplication")
}

// ofQueue reports whether a refusal says something about the queue, its key or
// the rate, although it is called the sender's fault: it may pass, and would
// meet every message.
func ofQueue(code string) bool {
	switch awserror.OfCode(code) {
	case awserror.Throttled, awserror.Denied, awserror.BadKey, awserror.Missing:
		return true
	}
	return false
}

// ofContent reports whether a request was refused as a whole for what is in
// it, which may be a single message.
func ofContent(err error) bool {
	code := awserror.Code(err)
	return neverTaken(err) || strings.Contains(code, "InvalidParameterValue") || strings.Contains(code, "InvalidAttributeValue")
}

// neverTaken reports whether a request was refused for a reason that can only
// be in the message, if there is but one. Others, such as an invalid parameter
// value, can be the queue's as well: the flow tells the two apart.
func neverTaken(err error) bool {
	code := awserror.Code(err)
	if awserror.Status(err) == http.StatusRequestEntityTooLarge {
		return true // whatever stands before SQS, with an answer of its own
	}
	return strings.Contains(code, "BatchRequestTooLong") || strings.Contains(code, "InvalidMessageContents") ||
		strings.Contains(code, "Invalid") && strings.Contains(err.Error(), "MessageTooLong")
}
