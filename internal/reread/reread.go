// Package reread reads records of DynamoDB streams again, by position: for an
// on-failure record of Lambda, or for a dead letter that was too large to keep
// whole. A stream keeps a record for a day. Later only the current item may be
// left.
package reread

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/awserror"
	"github.com/sluicehq/sluice/internal/backoff"
	"github.com/sluicehq/sluice/internal/streamsapi"
	"github.com/sluicehq/sluice/internal/wire"
	"github.com/sluicehq/sluice/item/sdkitem"
)

var (
	// ErrTrimmed says that the stream no longer has the records, or no longer
	// exists.
	ErrTrimmed = errors.New("the stream does not hold it any more")
	// ErrNoItem says that the table has no such item. That the table is not there is
	// another error: other credentials may lead to it.
	ErrNoItem = errors.New("there is no such item now")
)

// Range is records of one shard, in their order.
type Range struct {
	StreamARN   string
	ShardID     string
	First, Last sluice.Sequence // both included
}

// String names the range for people.
func (r Range) String() string {
	return fmt.Sprintf("records %s to %s of shard %s of %s", r.First, r.Last, r.ShardID, r.StreamARN)
}

// Reader reads again. Its methods are safe for concurrent use; each makes a call
// that failed for a while again, some times.
type Reader struct {
	streams *streamsapi.Client
	tables  *dynamodb.Client
	region  string
	pause   time.Duration // before a call is made again; doubled each time
}

// New returns a Reader with the Region, credentials and endpoint of DynamoDB.
func New(cfg aws.Config) *Reader {
	return &Reader{streams: streamsapi.New(cfg), tables: dynamodb.NewFromConfig(cfg), region: cfg.Region, pause: 200 * time.Millisecond}
}

// Records calls f with the records of a range in order, a page at a time. f's
// error ends it. An error that wraps [ErrTrimmed] says that part of the range is
// gone: f may already have the beginning.
func (r *Reader) Records(ctx context.Context, rng Range, f func([]sluice.Record) error) error {
	if !rng.First.Valid() || !rng.Last.Valid() || rng.Last.Compare(rng.First) < 0 {
		return fmt.Errorf("%v: the sequence numbers are none, or in the wrong order", rng)
	}
	it, err := r.iterator(ctx, rng)
	if err != nil {
		return fmt.Errorf("%v: %w", rng, err)
	}
	begun := false
	for empty := 0; ; {
		page, err := r.page(ctx, rng, it)
		if err != nil {
			return fmt.Errorf("%v: %w", rng, err)
		}
		n, last := 0, -1 // last compares the record before n with the range's last
		for ; n < len(page.Records) && last < 0; n++ {
			last = page.Records[n].Sequence.Compare(rng.Last)
			page.Records[n].Origin = sluice.Replayed
		}
		recs := page.Records[:n]
		if last > 0 {
			recs = recs[:n-1]
		}
		if !begun && len(page.Records) > 0 {
			if begun = page.Records[0].Sequence.Compare(rng.First) == 0; !begun {
				return fmt.Errorf("%v: %w: it begins with %s", rng, ErrTrimmed, page.Records[0].Sequence)
			}
		}
		if len(recs) > 0 {
			empty = 0
			if err := f(recs); err != nil {
				return err
			}
		}
		if last >= 0 {
			return nil
		}
		// Empty pages may precede data, but not for ever.
		if empty++; page.NextShardIterator == "" || empty > mostEmpty {
			return fmt.Errorf("%v: %w: its end was not found", rng, ErrTrimmed)
		}
		it = page.NextShardIterator
	}
}

const mostEmpty = 50 // pages in a row

func (r *Reader) page(ctx context.Context, rng Range, it string) (sluice.Page, error) {
	return again(ctx, r, func(ctx context.Context) (sluice.Page, error) {
		body, err := r.streams.GetRecords(ctx, it, 0)
		if err != nil {
			return sluice.Page{}, err
		}
		return sluice.DecodeGetRecords(body, sluice.Source{StreamARN: rng.StreamARN, ShardID: rng.ShardID})
	})
}

// iterator begins at the first record of a range.
func (r *Reader) iterator(ctx context.Context, rng Range) (string, error) {
	out, err := again(ctx, r, func(ctx context.Context) (*dynamodbstreams.GetShardIteratorOutput, error) {
		return r.streams.GetShardIterator(ctx, &dynamodbstreams.GetShardIteratorInput{
			StreamArn: &rng.StreamARN, ShardId: &rng.ShardID, SequenceNumber: aws.String(string(rng.First)),
			ShardIteratorType: types.ShardIteratorTypeAtSequenceNumber,
		})
	})
	if err != nil {
		return "", err
	}
	return aws.ToString(out.ShardIterator), nil
}

// Record reads one record of a stream. Where its shard is not known, as under
// Lambda, shardID is empty, and it is looked for in all that may hold it.
func (r *Reader) Record(ctx context.Context, streamARN, shardID string, at sluice.Sequence, eventID string) (*sluice.Record, error) {
	shards := []string{shardID}
	if shardID == "" {
		var err error
		if shards, err = r.holders(ctx, streamARN, at); err != nil {
			return nil, err
		}
	}
	var last error
	for _, shard := range shards {
		var found *sluice.Record
		err := r.Records(ctx, Range{streamARN, shard, at, at}, func(recs []sluice.Record) error {
			if eventID == "" || recs[0].EventID == eventID {
				found = recs[0].Clone()
			}
			return nil
		})
		if found != nil {
			return found, nil
		}
		if err != nil && !errors.Is(err, ErrTrimmed) && awserror.Code(err) != "ValidationException" {
			last = err // else it is of another shard
		}
	}
	if last != nil {
		return nil, last
	}
	return nil, fmt.Errorf("record %s of %s: %w", at, streamARN, ErrTrimmed)
}

// holders lists the shards whose range has a sequence number.
func (r *Reader) holders(ctx context.Context, streamARN string, at sluice.Sequence) (ids []string, err error) {
	in := &dynamodbstreams.DescribeStreamInput{StreamArn: &streamARN}
	for {
		out, err := again(ctx, r, func(ctx context.Context) (*dynamodbstreams.DescribeStreamOutput, error) {
			return r.streams.DescribeStream(ctx, in)
		})
		if err != nil {
			return nil, fmt.Errorf("shards of %s: %w", streamARN, err)
		}
		for _, sh := range out.StreamDescription.Shards {
			if rg := sh.SequenceNumberRange; rg != nil {
				first, last := sluice.Sequence(aws.ToString(rg.StartingSequenceNumber)), sluice.Sequence(aws.ToString(rg.EndingSequenceNumber))
				if first.Compare(at) > 0 || last != "" && last.Compare(at) < 0 {
					continue
				}
			}
			ids = append(ids, aws.ToString(sh.ShardId))
		}
		if in.ExclusiveStartShardId = out.StreamDescription.LastEvaluatedShardId; in.ExclusiveStartShardId == nil {
			return ids, nil
		}
	}
}

// Item reads an item as it is now, as the record that a backfill would make of
// it: its event is SNAPSHOT. tableARN may be that of a stream of the table.
func (r *Reader) Item(ctx context.Context, tableARN string, keys sluice.Item) (*sluice.Record, error) {
	tableARN, _, _ = strings.Cut(tableARN, "/stream/")
	_, name, _ := strings.Cut(tableARN, ":table/")
	failed := func(err error) error { return fmt.Errorf("item of table %s: %w", name, err) }
	if name == "" || keys.Len() == 0 {
		return nil, failed(errors.New("its table or its key is unknown"))
	}
	// A table of the same name may be elsewhere: a missing item there proves
	// nothing, and a found one is another.
	if in, _ := arn.Parse(tableARN); r.tables.Options().BaseEndpoint == nil && in.Region != r.region {
		return nil, failed(fmt.Errorf("it is in Region %s, and Region %s is set: set the other one, by AWS_REGION or aws.region", in.Region, r.region))
	}
	table, err := again(ctx, r, func(ctx context.Context) (*dynamodb.DescribeTableOutput, error) {
		return r.tables.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &name})
	})
	if err == nil && table.Table == nil { // whoever answered, that it has no item says nothing
		err = errors.New("the service does not describe the table")
	}
	var out *dynamodb.GetItemOutput
	if err == nil {
		if found := aws.ToString(table.Table.TableArn); found != "" && found != tableARN {
			return nil, failed(fmt.Errorf("it is %s, and the credentials lead to %s: use those of its account, and an endpoint of its Region", tableARN, found))
		}
		out, err = again(ctx, r, func(ctx context.Context) (*dynamodb.GetItemOutput, error) {
			return r.tables.GetItem(ctx, &dynamodb.GetItemInput{TableName: &name, Key: sdkitem.Map(keys), ConsistentRead: aws.Bool(true)})
		})
	}
	switch {
	case errors.Is(err, ErrTrimmed): // the service's answer for a deleted table, and for another account's
		return nil, failed(fmt.Errorf("it is %s, and the credentials lead to no table of this name (ResourceNotFoundException): use those of its account; only if the table was deleted is the item gone", tableARN))
	case err != nil:
		return nil, failed(err)
	case len(out.Item) == 0:
		return nil, failed(ErrNoItem)
	}
	it, err := sdkitem.FromMap(out.Item)
	if err != nil {
		return nil, failed(err)
	}
	src := wire.ScanSource{TableARN: tableARN, TableID: aws.ToString(table.Table.TableId), Region: r.region}
	for _, k := range table.Table.KeySchema {
		src.Keys = append(src.Keys, aws.ToString(k.AttributeName))
	}
	page, err := wire.DecodeScan(fmt.Appendf(nil, `{"Count":1,"Items":[%s]}`, it.Raw()), src)
	if err != nil {
		return nil, failed(err)
	}
	return &page.Records[0], nil
}

// again makes a call until it does not fail for a while, a few times.
func again[T any](ctx context.Context, r *Reader, call func(context.Context) (T, error)) (T, error) {
	for tries := 1; ; tries++ {
		one, cancel := context.WithTimeout(ctx, 30*time.Second)
		got, err := call(one)
		cancel()
		m := awserror.Of(err)
		mayPass := m.Passes() || m == awserror.NoCredentials // they may come
		if err == nil || ctx.Err() != nil || tries == 6 || !mayPass {
			return got, explain(err)
		}
		if backoff.Sleep(ctx, backoff.Doubled(r.pause, r.pause<<5, tries-1)) != nil {
			return got, err
		}
	}
}

func explain(err error) error {
	switch awserror.Code(err) {
	case "TrimmedDataAccessException", "ResourceNotFoundException":
		return fmt.Errorf("%w: %w", ErrTrimmed, err)
	case "ExpiredIteratorException":
		return fmt.Errorf("%w: the records took longer than 15 minutes to handle: read them again", err)
	}
	return err
}
