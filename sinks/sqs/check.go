package sqs

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/awserror"
)

// Check verifies at the start that the queue exists and is reachable with the
// current credentials. Its error has advice. It needs the permission
// sqs:GetQueueAttributes; without it Check only logs a warning. It adopts the
// queue's MaximumMessageSize if that is lower than MaxBytes. It logs a warning
// when the queue delays messages by default. A FIFO queue without content-based
// deduplication is an error, unless Options.DeduplicationIDs is set. Check makes
// one request, with the client's own retries.
func (q *Queue) Check(ctx context.Context) error {
	url, err := q.lookUp(ctx)
	if err != nil {
		return q.wrap(err)
	}
	names := []types.QueueAttributeName{types.QueueAttributeNameDelaySeconds, types.QueueAttributeNameMaximumMessageSize}
	if q.fifo { // SQS refuses this name for other queues
		names = append(names, types.QueueAttributeNameContentBasedDeduplication)
	}
	out, err := q.client.GetQueueAttributes(ctx, &awssqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: names})
	if awserror.Of(err) == awserror.Denied {
		q.log().Warn("the queue was not checked, for want of the permission sqs:GetQueueAttributes; the limit of its messages is learned from the first refusal", "error", err)
		return nil
	}
	if err != nil {
		return q.wrap(q.explain("GetQueueAttributes", err))
	}
	if most, err := strconv.ParseInt(out.Attributes[string(types.QueueAttributeNameMaximumMessageSize)], 10, 64); err == nil {
		lower(&q.maxMessage, most)
	}
	if out.Attributes[string(types.QueueAttributeNameContentBasedDeduplication)] == "false" && !q.opt.DeduplicationIDs {
		return q.wrap(errors.New("it is a FIFO queue without content-based deduplication, and takes no message without a DeduplicationID: set ContentBasedDeduplication of the queue, or give each message an id and set Options.DeduplicationIDs"))
	}
	if delay := out.Attributes[string(types.QueueAttributeNameDelaySeconds)]; delay != "" && delay != "0" {
		q.log().Warn("the queue delays every message that has no delay of its own; set its DelaySeconds to 0 unless that is meant", "delaySeconds", delay)
	}
	return nil
}

// lookUp returns the queue's URL and requests it once.
func (q *Queue) lookUp(ctx context.Context) (string, error) {
	q.mu.Lock()
	url := q.url
	q.mu.Unlock()
	if url != "" {
		return url, nil
	}
	var before error
	out, err := q.client.GetQueueUrl(ctx, &awssqs.GetQueueUrlInput{QueueName: &q.name}, q.eachTry(&before))
	if before != nil && tooLate(ctx, err) {
		err = before
	}
	if err != nil {
		return "", q.explain("GetQueueUrl", err)
	}
	if out.QueueUrl == nil || *out.QueueUrl == "" {
		return "", fmt.Errorf("SQS answered GetQueueUrl without a URL %s", q.where)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.url = *out.QueueUrl
	return q.url, nil
}

// explain adds the place, and advice for common mistakes.
func (q *Queue) explain(call string, err error) error {
	at := call + " " + q.where
	if hint := awserror.Hint(err, "sqs:"+call, "queue", "name or URL"); hint != "" {
		at += ": " + hint
	}
	if awserror.Of(err) == awserror.Throttled {
		err = sluice.Overloaded(err)
	}
	return fmt.Errorf("%s: %w", at, err)
}
