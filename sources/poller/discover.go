package poller

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/aws/smithy-go/middleware"
	"golang.org/x/time/rate"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/sources/poller/internal/lineage"
)

// The service allows 10 DescribeStream calls a second per stream. Other callers
// may use some of them.
const (
	describeRate  = 5 // a second
	describeBurst = 3
	childrenTries = 2 // of a call: a listing of all shards shows children too
)

// listing is the content of DescribeStream responses.
type listing struct {
	table  string
	view   string
	status types.StreamStatus
	shards []lineage.Listed
	pages  int
	began  time.Time // start of a full listing, by the service's clock; zero: partial listing
	date   time.Time // of the last response, by the service's clock; else by the machine's
}

// describer is the part of the service that discovery needs.
type describer interface {
	DescribeStream(context.Context, *dynamodbstreams.DescribeStreamInput, ...func(*dynamodbstreams.Options)) (*dynamodbstreams.DescribeStreamOutput, error)
}

// discovery lists the shards of one stream.
type discovery struct {
	api      describer
	arn      string
	timeout  time.Duration
	limiter  *rate.Limiter
	clock    *clock // set from the responses
	answered func() // called for each good response; may be nil
	failed   func(action string, err error, k kind, retryIn time.Duration)
}

func newDiscovery(api describer, arn string, timeout time.Duration) *discovery {
	return &discovery{api: api, arn: arn, timeout: timeout, limiter: rate.NewLimiter(describeRate, describeBurst)}
}

// list lists all shards. It retries a page that fails, so a long listing never
// starts over. It fails only if the stream does not exist or ctx ends.
func (d *discovery) list(ctx context.Context) (listing, error) {
	return d.pages(ctx, nil, 0)
}

// children lists the children of a closed shard. It gives up early.
func (d *discovery) children(ctx context.Context, id string) (listing, error) {
	return d.pages(ctx, &types.ShardFilter{Type: types.ShardFilterTypeChildShards, ShardId: &id}, childrenTries)
}

// pages makes each call at most tries times; 0 is without a limit.
func (d *discovery) pages(ctx context.Context, filter *types.ShardFilter, tries int) (listing, error) {
	var began time.Time
	if filter == nil {
		began = d.clock.now()
	}
	l := listing{began: began}
	from := ""
	asked := map[string]bool{"": true}
	for {
		out, err := d.page(ctx, from, filter, tries)
		switch {
		case err != nil && from != "" && classify(err) == invalid:
			// The shard before this page may be trimmed by now.
			l, from, asked = listing{began: began}, "", map[string]bool{"": true}
			continue
		case err != nil:
			return l, err
		}
		l.add(out)
		from = aws.ToString(out.StreamDescription.LastEvaluatedShardId)
		if asked[from] { // empty, or the service goes round in circles
			return l, nil
		}
		asked[from] = true
	}
}

// page requests one page until it succeeds, tries are used up, or it cannot
// succeed.
func (d *discovery) page(ctx context.Context, from string, filter *types.ShardFilter, tries int) (*dynamodbstreams.DescribeStreamOutput, error) {
	var b backoff
	for {
		out, err := d.try(ctx, from, filter)
		if err == nil {
			return out, nil
		}
		k := classify(err)
		if ctx.Err() != nil || k == notFound || d.failed == nil {
			return nil, err
		}
		wait := b.next(k)
		d.failed("dynamodb:DescribeStream", err, k, wait)
		if err := sleep(ctx, wait); err != nil {
			return nil, err
		}
		if b.failures == tries || k == invalid && from != "" {
			return nil, err
		}
	}
}

func (d *discovery) try(ctx context.Context, from string, filter *types.ShardFilter) (*dynamodbstreams.DescribeStreamOutput, error) {
	if err := d.limiter.Wait(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	in := &dynamodbstreams.DescribeStreamInput{StreamArn: &d.arn, ShardFilter: filter}
	if from != "" {
		in.ExclusiveStartShardId = &from
	}
	out, err := d.api.DescribeStream(ctx, in)
	if err == nil {
		d.clock.heard(out.ResultMetadata)
	}
	if err == nil && d.answered != nil {
		d.answered()
	}
	return out, err
}

func (l *listing) add(out *dynamodbstreams.DescribeStreamOutput) {
	s := out.StreamDescription
	l.table, l.view, l.status = aws.ToString(s.TableName), string(s.StreamViewType), s.StreamStatus
	l.pages++
	for _, sh := range s.Shards {
		shard := lineage.Listed{ID: aws.ToString(sh.ShardId), Parent: aws.ToString(sh.ParentShardId)}
		if r := sh.SequenceNumberRange; r != nil {
			shard.First = sluice.Sequence(aws.ToString(r.StartingSequenceNumber))
			shard.Closed = aws.ToString(r.EndingSequenceNumber) != ""
		}
		l.shards = append(l.shards, shard)
	}
	l.date = serviceTime(out.ResultMetadata)
}

// serviceTime returns the time in the Date header of a response.
func serviceTime(md middleware.Metadata) time.Time {
	if t, ok := awsmiddleware.GetServerTime(md); ok {
		return t
	}
	return time.Now()
}

// sleep waits for d, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
