package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sluicehq/sluice/internal/awserror"
	"github.com/sluicehq/sluice/internal/backoff"
	"github.com/sluicehq/sluice/internal/sqsclient"
)

// source is one queue.
type source struct {
	c      *Consumer
	name   string
	where  string // endpoint and Region, for messages
	region string
	fifo   bool
	client *awssqs.Client

	// Set once it is open.
	url       string
	arn       string
	retention time.Duration

	hand   *hand
	judge  *judge
	pace   pace
	health health
	calls  calls

	failures, troubles warnings // of messages, of calls
}

func newSource(c *Consumer, cfg aws.Config, queue string) (*source, error) {
	at, err := sqsclient.Open(cfg, queue)
	if err != nil {
		return nil, fmt.Errorf("queue: %w", err)
	}
	s := &source{
		c: c, name: at.Name, url: at.URL, where: at.Where, fifo: at.FIFO, client: at.Client,
		region: cfg.Region, retention: retentionOf, health: health{calls: make(map[string]trouble)},
	}
	s.hand = newHand(c.o.Concurrency)
	s.judge = newJudge(2 * c.o.MaxBackoff)
	return s, nil
}

// open finds the queue and its attributes. It retries temporary failures for
// StartTimeout.
func (s *source) open(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.c.o.StartTimeout)
	defer cancel()
	var before error
	for tries := 0; ; tries++ {
		call, err := s.look(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil && before != nil { // it says more than a timeout
			err = before
		}
		before = err
		if needsPerson(err) || backoff.Sleep(ctx, backoff.Full(retryDelay, maxDelay, tries+1)) != nil {
			return s.explain(call, err)
		}
	}
}

// openLater opens a queue that could not be opened at the start because of err. It
// returns false if ctx ends before.
func (s *source) openLater(ctx context.Context, err error) bool {
	const call = "opening it"
	s.log().Warn("the queue cannot be opened: it is tried again until it can", "error", err)
	for err != nil {
		s.health.call(call, err)
		if backoff.Sleep(ctx, s.c.o.StartTimeout) != nil {
			return false
		}
		err = s.open(ctx)
	}
	s.health.call(call, nil)
	s.log().Info("the queue is open")
	return true
}

// once makes the client try once: the caller retries, and knows the last error.
func once(o *awssqs.Options) { o.RetryMaxAttempts = 1 }

func (s *source) look(ctx context.Context) (call string, err error) {
	if s.url == "" {
		out, err := s.client.GetQueueUrl(ctx, &awssqs.GetQueueUrlInput{QueueName: &s.name}, once)
		if err != nil {
			return "GetQueueUrl", err
		}
		if aws.ToString(out.QueueUrl) == "" {
			return "GetQueueUrl", errors.New("SQS answered without a URL")
		}
		s.url = *out.QueueUrl
	}
	s.arn = arnOf(s.url, s.region, s.name)
	out, err := s.client.GetQueueAttributes(ctx, &awssqs.GetQueueAttributesInput{QueueUrl: &s.url, AttributeNames: []types.QueueAttributeName{
		types.QueueAttributeNameQueueArn, types.QueueAttributeNameMessageRetentionPeriod, types.QueueAttributeNameRedrivePolicy,
	}}, once)
	switch {
	case err == nil:
	case awserror.Of(err) == awserror.Denied: // the permission is optional
		s.log().Info("the queue's attributes cannot be read: it is taken to keep messages for four days (permission sqs:GetQueueAttributes)")
		return "", nil
	default:
		return "GetQueueAttributes", err
	}
	if arn := out.Attributes[string(types.QueueAttributeNameQueueArn)]; arn != "" {
		s.arn = arn
	}
	if n, err := strconv.Atoi(out.Attributes[string(types.QueueAttributeNameMessageRetentionPeriod)]); err == nil && n > 0 {
		s.retention = time.Duration(n) * time.Second
	}
	s.tellRedrive(out.Attributes[string(types.QueueAttributeNameRedrivePolicy)])
	return "", nil
}

// tellRedrive logs how the queue's redrive policy fits these options.
func (s *source) tellRedrive(policy string) {
	var p struct {
		Max json.RawMessage `json:"maxReceiveCount"` // a number, or a string with one
	}
	most := 0
	if json.Unmarshal([]byte(policy), &p) == nil {
		most, _ = strconv.Atoi(strings.Trim(string(p.Max), `"`)) // 0 if missing
	}
	switch o := s.c.o; {
	case most > 0 && o.DeadLetter != nil && most < o.MaxReceives:
		s.log().Warn("the queue's redrive policy moves messages away before they would be parked here: raise its maxReceiveCount, or lower MaxReceives",
			"maxReceiveCount", most, "maxReceives", o.MaxReceives)
	case most == 0 && o.DeadLetter == nil:
		s.log().Warn("a message that fails for good is lost when the queue's retention is over: there is no dead letter and the queue has no redrive policy",
			"retention", s.retention)
	}
}

// arnOf makes a queue's ARN from its URL, if the attributes may not be read.
func arnOf(queueURL, region, name string) string {
	account, partition := "", "aws"
	if u, err := url.Parse(queueURL); err == nil {
		if parts := strings.Split(strings.Trim(u.Path, "/"), "/"); len(parts) >= 2 {
			account = parts[len(parts)-2]
		}
	}
	switch {
	case strings.HasPrefix(region, "cn-"):
		partition = "aws-cn"
	case strings.HasPrefix(region, "us-gov-"):
		partition = "aws-us-gov"
	}
	return fmt.Sprintf("arn:%s:sqs:%s:%s:%s", partition, region, account, name)
}
