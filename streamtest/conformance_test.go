package streamtest

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/internal/streamsapi"
)

// conformance is what AWS documents of the API, as far as a stream of one shard
// shows it. The suite runs against Service, and with the build tag integration
// against DynamoDB Local.
//
// Where DynamoDB Local is known to differ, local says how, and the case must
// fail there: Service follows the documentation.
var conformance = []struct {
	name  string
	local string
	check func(w *world) error
}{
	{name: "images by view type", check: imagesByView},
	{name: "a write that changes nothing makes no record", check: nothingChanges},
	{name: "values of every type", check: keptValues},
	{name: "numbers in one form", check: keptNumbers},
	{name: "numbers in lists and maps in one form", check: keptNested, local: "they stay as they were written"},
	{name: "SizeBytes", check: sizes},
	{name: "what a record says beside its images", check: envelope},
	{name: "awsRegion is the Region", check: region, local: "it is ddblocal, in ARNs too"},
	{name: "creation times are rounded down to the second", check: creationTimes, local: "they are rounded down to the minute"},
	{name: "sequence numbers grow in the order of writes", check: sequencesGrow},
	{name: "sequence numbers have no leading zeros", check: sequenceDigits, local: "they count from 000000000000000000001"},

	{name: "iterators", check: iterators},
	{name: "LATEST before the first record", check: latestBeforeTheFirst},
	{name: "an empty shard's iterator beside writes to another table", check: emptyBesideWrites, local: "TrimmedDataAccessException, as soon as the shard has a record; a new iterator finds it"},
	{name: "an iterator can be used again", check: iteratorAgain},
	{name: "Limit", check: limits},
	{name: "1,000 records a page", check: thousandRecords},
	{name: "1 MB a page", check: megabyte, local: "pages are larger"},
	{name: "requests that are not valid", check: badRequests},
	{name: "a sequence number that is not there yet", check: futureSequence, local: "it is a position like any other"},

	{name: "DescribeStream", check: describesStream},
	{name: "CHILD_SHARDS", check: childShards, local: "the filter is ignored"},
	{name: "DescribeTable and ListStreams", check: describesTable},
	{name: "what does not exist", check: notThere},
	{name: "a disabled stream can be read to its end", check: disabledStream},
	{name: "a stream that is enabled again is another", check: enabledAgain},
	{name: "the stream of a deleted table can be read", check: deletedTable},
	{name: "a table that is made again has another stream", check: tableAgain},
}

// errUndecided says that a case could tell nothing at this moment.
var errUndecided = errors.New("undecided")

func conform(t *testing.T, local bool, driver func(testing.TB) driver) {
	for _, c := range conformance {
		t.Run(c.name, func(t *testing.T) {
			err := c.check(newWorld(t, driver(t)))
			switch {
			case errors.Is(err, errUndecided):
			case !local || c.local == "":
				if err != nil {
					t.Error(err)
				}
			case err == nil:
				t.Errorf("DynamoDB Local conforms now; it was thought to differ: %s", c.local)
			default:
				t.Logf("DynamoDB Local differs, %s: %v", c.local, err)
			}
		})
	}
}

// driver writes to tables; streams are read by the SDK with its config.
type driver interface {
	config() aws.Config
	create(name, sortKey, view string)
	drop(name string)
	stream(table, view string) // empty: disable
	put(table, item string)
	remove(table, key string)
}

func TestConformance(t *testing.T) {
	conform(t, false, func(t testing.TB) driver {
		s := NewService(t)
		s.SetLimits(Limits{ReadsPerShard: math.Inf(1), DescribesPerStream: math.Inf(1)})
		return fake{s}
	})
}

type fake struct{ s *Service }

func (f fake) config() aws.Config { return f.s.Config() }
func (f fake) create(name, sortKey, view string) {
	f.s.CreateTable(name, TableOptions{SortKey: sortKey, View: view, NoStream: view == ""})
}
func (f fake) drop(name string)         { f.s.DeleteTable(name) }
func (f fake) put(table, item string)   { f.table(table).Put(item) }
func (f fake) remove(table, key string) { f.table(table).Delete(key) }
func (f fake) stream(table, view string) {
	if view == "" {
		f.table(table).DisableStream()
		return
	}
	f.table(table).EnableStream(view)
}

func (f fake) table(name string) *Table {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	return f.s.tables[name]
}

// world is a driver and the clients to look at what it did.
type world struct {
	driver
	t       testing.TB
	ctx     context.Context
	streams *streamsapi.Client
	tables  *dynamodb.Client
}

func newWorld(t testing.TB, d driver) *world {
	cfg := streamsapi.Tuned(d.config())
	return &world{driver: d, t: t, ctx: t.Context(), streams: streamsapi.New(cfg), tables: dynamodb.NewFromConfig(cfg)}
}

// table makes a table and returns its name.
func (w *world) table(sortKey, view string) string {
	name := localtest.Name("conformance")
	w.create(name, sortKey, view)
	return name
}

// arn returns the ARN of a table's latest stream.
func (w *world) arn(table string) string {
	out, err := w.tables.DescribeTable(w.ctx, &dynamodb.DescribeTableInput{TableName: &table})
	if err != nil {
		w.t.Fatal(err)
	}
	return aws.ToString(out.Table.LatestStreamArn)
}

// describe returns the whole description of a stream.
func (w *world) describe(arn string) *types.StreamDescription {
	out, err := w.streams.DescribeStream(w.ctx, &dynamodbstreams.DescribeStreamInput{StreamArn: &arn})
	if err != nil {
		w.t.Fatal(err)
	}
	return out.StreamDescription
}

// shard returns the only shard of a stream.
func (w *world) shard(arn string) string {
	d := w.describe(arn)
	if len(d.Shards) != 1 {
		w.t.Fatalf("%d shards", len(d.Shards))
	}
	return *d.Shards[0].ShardId
}

// tryIterator asks for an iterator in the only shard of a stream.
func (w *world) tryIterator(arn string, kind types.ShardIteratorType, seq ...sluice.Sequence) (string, error) {
	in := &dynamodbstreams.GetShardIteratorInput{StreamArn: &arn, ShardId: aws.String(w.shard(arn)), ShardIteratorType: kind}
	for _, s := range seq {
		in.SequenceNumber = aws.String(string(s))
	}
	out, err := w.streams.GetShardIterator(w.ctx, in)
	if err != nil {
		return "", err
	}
	return *out.ShardIterator, nil
}

func (w *world) iterator(arn string, kind types.ShardIteratorType, seq ...sluice.Sequence) string {
	it, err := w.tryIterator(arn, kind, seq...)
	if err != nil {
		w.t.Fatal(err)
	}
	return it
}

func (w *world) page(iterator string, limit int32) sluice.Page {
	body, err := w.streams.GetRecords(w.ctx, iterator, limit)
	if err != nil {
		w.t.Fatal(err)
	}
	page, err := sluice.DecodeGetRecords(body, sluice.Source{})
	if err != nil {
		w.t.Fatal(err)
	}
	for i := range page.Records {
		if err := page.Records[i].Err(); err != nil {
			w.t.Fatal(err)
		}
	}
	return page
}

// read returns what a table's stream holds.
func (w *world) read(table string) []sluice.Record {
	return w.page(w.iterator(w.arn(table), types.ShardIteratorTypeTrimHorizon), 0).Records
}
