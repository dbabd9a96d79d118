package streamtest

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/aws/smithy-go"

	"github.com/sluicehq/sluice"
)

const (
	horizon = types.ShardIteratorTypeTrimHorizon
	latest  = types.ShardIteratorTypeLatest
	at      = types.ShardIteratorTypeAtSequenceNumber
	after   = types.ShardIteratorTypeAfterSequenceNumber
)

// letters returns the keys of records, which are letters.
func letters(recs []sluice.Record) string {
	var sb strings.Builder
	for i := range recs {
		v, _ := recs[i].Keys.Lookup("pk")
		sb.WriteString(v.Str())
	}
	return sb.String()
}

// putLetters writes an item for each letter.
func (w *world) putLetters(table, letters string) {
	for _, l := range letters {
		w.put(table, fmt.Sprintf(`{"pk":{"S":"%c"}}`, l))
	}
}

func code(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return fmt.Sprint(err)
}

func iterators(w *world) error {
	table := w.table("", both)
	w.putLetters(table, "abc")
	arn := w.arn(table)
	recs := w.read(table)
	for _, c := range []struct {
		name string
		it   string
		want string
	}{
		{"TRIM_HORIZON", w.iterator(arn, horizon), "abc"},
		{"LATEST", w.iterator(arn, latest), ""},
		{"AT the first", w.iterator(arn, at, recs[0].Sequence), "abc"},
		{"AFTER the first", w.iterator(arn, after, recs[0].Sequence), "bc"},
		{"AT the last", w.iterator(arn, at, recs[2].Sequence), "c"},
		{"AFTER the last", w.iterator(arn, after, recs[2].Sequence), ""},
		{"AT the shard's start", w.iterator(arn, at, sluice.Sequence(*w.describe(arn).Shards[0].SequenceNumberRange.StartingSequenceNumber)), "abc"},
	} {
		page := w.page(c.it, 0)
		if got := letters(page.Records); got != c.want || page.NextShardIterator == "" {
			return fmt.Errorf("%s: records %q and next iterator %q, want %q and one", c.name, got, page.NextShardIterator, c.want)
		}
	}
	it := w.iterator(arn, latest)
	w.putLetters(table, "de")
	if got := letters(w.page(it, 0).Records); got != "de" {
		return fmt.Errorf("LATEST gives %q of what was written later, want de", got)
	}
	return nil
}

func latestBeforeTheFirst(w *world) error {
	table := w.table("", both)
	it := w.iterator(w.arn(table), latest)
	w.putLetters(table, "a")
	body, err := w.streams.GetRecords(w.ctx, it, 0)
	if err != nil {
		return err
	}
	page, err := sluice.DecodeGetRecords(body, sluice.Source{})
	if err != nil || letters(page.Records) != "a" {
		return fmt.Errorf("records %q, error %v", letters(page.Records), err)
	}
	return nil
}

// The iterator behind the first, empty page of a shard leads to its first record.
func emptyBesideWrites(w *world) error {
	table, other := w.table("", both), w.table("", both)
	empty := w.page(w.iterator(w.arn(table), horizon), 0)
	w.putLetters(other, "ab")
	w.putLetters(table, "c")
	body, err := w.streams.GetRecords(w.ctx, empty.NextShardIterator, 0)
	if err != nil {
		if got := letters(w.page(w.iterator(w.arn(table), horizon), 0).Records); got != "c" {
			w.t.Errorf("a new iterator gives %q, want c", got)
		}
		return err
	}
	page, err := sluice.DecodeGetRecords(body, sluice.Source{})
	if err != nil || letters(page.Records) != "c" {
		return fmt.Errorf("records %q, error %v", letters(page.Records), err)
	}
	return nil
}

func iteratorAgain(w *world) error {
	table := w.table("", both)
	w.putLetters(table, "ab")
	it := w.iterator(w.arn(table), horizon)
	first, again := w.page(it, 0), w.page(it, 0)
	if letters(first.Records) != "ab" || letters(again.Records) != "ab" {
		return fmt.Errorf("records %q and %q, want ab twice", letters(first.Records), letters(again.Records))
	}
	end := w.page(first.NextShardIterator, 0)
	if len(end.Records) != 0 || end.NextShardIterator == "" {
		return fmt.Errorf("an open shard's end: %d records, next iterator %q", len(end.Records), end.NextShardIterator)
	}
	w.putLetters(table, "c")
	if got := letters(w.page(first.NextShardIterator, 0).Records) + letters(w.page(end.NextShardIterator, 0).Records); got != "cc" {
		return fmt.Errorf("both iterators at the end give %q, want cc", got)
	}
	return nil
}

func limits(w *world) error {
	table := w.table("", both)
	w.putLetters(table, "abcde")
	it := w.iterator(w.arn(table), horizon)
	var got []string
	for range 3 {
		page := w.page(it, 2)
		got = append(got, letters(page.Records))
		it = page.NextShardIterator
	}
	if fmt.Sprint(got) != "[ab cd e]" {
		return fmt.Errorf("pages %q, want ab cd e", got)
	}
	return nil
}

func badRequests(w *world) error {
	table := w.table("", both)
	w.putLetters(table, "a")
	arn := w.arn(table)
	shard := w.shard(arn)
	seq := string(w.read(table)[0].Sequence)
	iterator := func(in dynamodbstreams.GetShardIteratorInput) error {
		in.StreamArn, in.ShardId = &arn, &shard
		_, err := w.streams.GetShardIterator(w.ctx, &in)
		return err
	}
	records := func(it string, limit int32) error {
		_, err := w.streams.Client.GetRecords(w.ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: &it, Limit: &limit})
		return err
	}
	describe := func(in dynamodbstreams.DescribeStreamInput) error {
		in.StreamArn = &arn
		_, err := w.streams.DescribeStream(w.ctx, &in)
		return err
	}
	_, listLimit := w.streams.ListStreams(w.ctx, &dynamodbstreams.ListStreamsInput{Limit: aws.Int32(101)})
	good := w.iterator(arn, horizon)
	var errs []error
	for _, c := range []struct {
		name string
		err  error
	}{
		{"an iterator type of Kinesis", iterator(dynamodbstreams.GetShardIteratorInput{ShardIteratorType: "AT_TIMESTAMP"})},
		{"no sequence number", iterator(dynamodbstreams.GetShardIteratorInput{ShardIteratorType: after})},
		{"an empty sequence number", iterator(dynamodbstreams.GetShardIteratorInput{ShardIteratorType: after, SequenceNumber: aws.String("")})},
		{"a short sequence number", iterator(dynamodbstreams.GetShardIteratorInput{ShardIteratorType: after, SequenceNumber: aws.String("1")})},
		{"a long sequence number", iterator(dynamodbstreams.GetShardIteratorInput{ShardIteratorType: after, SequenceNumber: aws.String(strings.Repeat("1", 41))})},
		{"a sequence number before the shard", iterator(dynamodbstreams.GetShardIteratorInput{ShardIteratorType: after, SequenceNumber: aws.String(strings.Repeat("0", 21))})},
		{"a sequence number with TRIM_HORIZON", iterator(dynamodbstreams.GetShardIteratorInput{ShardIteratorType: horizon, SequenceNumber: &seq})},
		{"a sequence number with LATEST", iterator(dynamodbstreams.GetShardIteratorInput{ShardIteratorType: latest, SequenceNumber: &seq})},
		{"no records", records(good, 0)},
		{"1,001 records", records(good, 1001)},
		{"an iterator of one's own", records("made-up", 1)},
		{"no shards", describe(dynamodbstreams.DescribeStreamInput{Limit: aws.Int32(0)})},
		{"101 shards", describe(dynamodbstreams.DescribeStreamInput{Limit: aws.Int32(101)})},
		{"a start that is no shard id", describe(dynamodbstreams.DescribeStreamInput{ExclusiveStartShardId: aws.String("x")})},
		{"101 streams", listLimit},
	} {
		if got := code(c.err); got != "ValidationException" {
			errs = append(errs, fmt.Errorf("%s: %s, want ValidationException", c.name, got))
		}
	}
	return errors.Join(errs...)
}

func futureSequence(w *world) error {
	table := w.table("", both)
	w.putLetters(table, "a")
	seq := w.read(table)[0].Sequence
	_, err := w.tryIterator(w.arn(table), after, seq[:len(seq)-3]+"999")
	if code(err) != "ValidationException" {
		return fmt.Errorf("error %v, want a ValidationException", err)
	}
	return nil
}

var shardID = regexp.MustCompile(`^shardId-\d{20}-[0-9a-f]{8}$`)

func describesStream(w *world) error {
	table := w.table("sk", "OLD_IMAGE")
	arn := w.arn(table)
	d := w.describe(arn)
	label := aws.ToString(d.StreamLabel)
	switch {
	case aws.ToString(d.StreamArn) != arn || !strings.HasSuffix(arn, ":table/"+table+"/stream/"+label) || label == "":
		return fmt.Errorf("stream %s of label %q", aws.ToString(d.StreamArn), label)
	case aws.ToString(d.TableName) != table || d.StreamViewType != "OLD_IMAGE" || d.StreamStatus != "ENABLED" || d.CreationRequestDateTime == nil:
		return fmt.Errorf("table %s, view type %s, status %s, created %v", aws.ToString(d.TableName), d.StreamViewType, d.StreamStatus, d.CreationRequestDateTime)
	case len(d.KeySchema) != 2 || *d.KeySchema[0].AttributeName != "pk" || d.KeySchema[0].KeyType != "HASH" || *d.KeySchema[1].AttributeName != "sk" || d.KeySchema[1].KeyType != "RANGE":
		return fmt.Errorf("key schema %v", d.KeySchema)
	case len(d.Shards) != 1 || aws.ToString(d.LastEvaluatedShardId) != "":
		return fmt.Errorf("%d shards, last %q", len(d.Shards), aws.ToString(d.LastEvaluatedShardId))
	}
	s := d.Shards[0]
	if !shardID.MatchString(*s.ShardId) || s.ParentShardId != nil || s.SequenceNumberRange.StartingSequenceNumber == nil || s.SequenceNumberRange.EndingSequenceNumber != nil {
		return fmt.Errorf("shard %s, parent %v, range %v", *s.ShardId, s.ParentShardId, s.SequenceNumberRange)
	}
	out, err := w.streams.DescribeStream(w.ctx, &dynamodbstreams.DescribeStreamInput{StreamArn: &arn, ExclusiveStartShardId: s.ShardId})
	if err != nil || len(out.StreamDescription.Shards) != 0 {
		return fmt.Errorf("behind the last shard: %v, error %w", out, err)
	}
	return nil
}

func childShards(w *world) error {
	table := w.table("", both)
	arn := w.arn(table)
	out, err := w.streams.DescribeStream(w.ctx, &dynamodbstreams.DescribeStreamInput{
		StreamArn: &arn, ShardFilter: &types.ShardFilter{Type: types.ShardFilterTypeChildShards, ShardId: aws.String(w.shard(arn))},
	})
	if err != nil {
		return err
	}
	if n := len(out.StreamDescription.Shards); n != 0 {
		return fmt.Errorf("an open shard has %d children", n)
	}
	return nil
}

func describesTable(w *world) error {
	plain, streaming := w.table("", ""), w.table("sk", "KEYS_ONLY")
	for table, view := range map[string]dbtypes.StreamViewType{plain: "", streaming: "KEYS_ONLY"} {
		out, err := w.tables.DescribeTable(w.ctx, &dynamodb.DescribeTableInput{TableName: &table})
		if err != nil {
			return err
		}
		d := out.Table
		var got dbtypes.StreamViewType
		if d.StreamSpecification != nil {
			got = d.StreamSpecification.StreamViewType
		}
		if *d.TableName != table || d.TableStatus != "ACTIVE" || got != view || (d.LatestStreamArn == nil) != (view == "") || (d.LatestStreamLabel == nil) != (view == "") ||
			!strings.HasSuffix(*d.TableArn, ":table/"+table) || len(d.KeySchema) != len(d.AttributeDefinitions) || *d.KeySchema[0].AttributeName != "pk" {
			return fmt.Errorf("table %s, status %s, view type %q, stream %v, keys %v", *d.TableName, d.TableStatus, got, aws.ToString(d.LatestStreamArn), d.KeySchema)
		}
		list, err := w.streams.ListStreams(w.ctx, &dynamodbstreams.ListStreamsInput{TableName: &table})
		if err != nil {
			return err
		}
		if view == "" && len(list.Streams) != 0 || view != "" && (len(list.Streams) != 1 || *list.Streams[0].StreamArn != *d.LatestStreamArn) {
			return fmt.Errorf("streams of %s: %v", table, list.Streams)
		}
	}
	return nil
}

func notThere(w *world) error {
	table := w.table("", both)
	arn := w.arn(table)
	none := arn[:strings.LastIndex(arn, "/")] + "/2001-01-01T00:00:00.000"
	shard := "shardId-00000001414576573621-f55eea83"
	_, describe := w.streams.DescribeStream(w.ctx, &dynamodbstreams.DescribeStreamInput{StreamArn: &none})
	_, iterator := w.streams.GetShardIterator(w.ctx, &dynamodbstreams.GetShardIteratorInput{StreamArn: &arn, ShardId: &shard, ShardIteratorType: latest})
	_, stream := w.streams.GetShardIterator(w.ctx, &dynamodbstreams.GetShardIteratorInput{StreamArn: &none, ShardId: &shard, ShardIteratorType: latest})
	_, tables := w.tables.DescribeTable(w.ctx, &dynamodb.DescribeTableInput{TableName: aws.String("no-such-table")})
	for what, err := range map[string]error{"stream": describe, "shard": iterator, "shard's stream": stream, "table": tables} {
		if code(err) != "ResourceNotFoundException" {
			return fmt.Errorf("a %s that does not exist: %s", what, code(err))
		}
	}
	return nil
}

func disabledStream(w *world) error {
	table := w.table("", both)
	w.putLetters(table, "abc")
	arn := w.arn(table)
	begin, end := w.iterator(arn, horizon), w.iterator(arn, latest)
	last := w.read(table)[2].Sequence
	w.stream(table, "")
	w.putLetters(table, "d") // no record
	d := w.describe(arn)
	if d.StreamStatus != "DISABLED" || len(d.Shards) != 1 || aws.ToString(d.Shards[0].SequenceNumberRange.EndingSequenceNumber) != string(last) {
		return fmt.Errorf("status %s, shards %v, want an end at %s", d.StreamStatus, d.Shards, last)
	}
	if w.arn(table) != arn {
		return errors.New("the table does not name its latest stream any more")
	}
	for _, c := range []struct {
		name  string
		it    string
		limit int32
		want  string
		more  bool
	}{
		{"a page within", begin, 2, "ab", true},
		{"records with a null iterator", w.iterator(arn, horizon), 0, "abc", false},
		{"no records with a null iterator", end, 0, "", false},
		{"LATEST of a closed shard", w.iterator(arn, latest), 0, "", false},
	} {
		page := w.page(c.it, c.limit)
		if got := letters(page.Records); got != c.want || (page.NextShardIterator != "") != c.more {
			return fmt.Errorf("%s: records %q, next iterator %q", c.name, got, page.NextShardIterator)
		}
	}
	return nil
}

func enabledAgain(w *world) error {
	table := w.table("", both)
	w.putLetters(table, "a")
	old := w.arn(table)
	w.stream(table, "")
	w.putLetters(table, "b")
	w.stream(table, "NEW_IMAGE")
	w.putLetters(table, "abc") // a and b are there already
	arn := w.arn(table)
	if arn == old || w.describe(arn).StreamViewType != "NEW_IMAGE" || w.shard(arn) == w.shard(old) {
		return fmt.Errorf("the new stream %s, the old one %s", arn, old)
	}
	if got := letters(w.read(table)) + letters(w.page(w.iterator(old, horizon), 0).Records); got != "ca" {
		return fmt.Errorf("new and old stream hold %q, want ca", got)
	}
	list, err := w.streams.ListStreams(w.ctx, &dynamodbstreams.ListStreamsInput{TableName: &table})
	if err != nil || len(list.Streams) != 2 {
		return fmt.Errorf("streams %v, error %w", list, err)
	}
	return nil
}

func deletedTable(w *world) error {
	table := w.table("", both)
	w.putLetters(table, "ab")
	arn := w.arn(table)
	w.drop(table)
	if d := w.describe(arn); d.StreamStatus != "DISABLED" || aws.ToString(d.Shards[0].SequenceNumberRange.EndingSequenceNumber) == "" {
		return fmt.Errorf("the stream is %s", d.StreamStatus)
	}
	page := w.page(w.iterator(arn, horizon), 0)
	if letters(page.Records) != "ab" || page.NextShardIterator != "" {
		return fmt.Errorf("records %q, next iterator %q", letters(page.Records), page.NextShardIterator)
	}
	return nil
}

func tableAgain(w *world) error {
	table := w.table("", both)
	w.putLetters(table, "a")
	old := w.arn(table)
	w.drop(table)
	w.create(table, "", both)
	w.putLetters(table, "a")
	arn := w.arn(table)
	recs := w.read(table)
	if arn == old || len(recs) != 1 || recs[0].EventName != sluice.Insert {
		return fmt.Errorf("the new stream %s holds %d records; the old one is %s", arn, len(recs), old)
	}
	return nil
}
