//go:build integration

package reread

import (
	"errors"
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/localtest"
)

// On DynamoDB Local: ranges, single records with and without their shard, and
// items.
func TestLocal(t *testing.T) {
	cfg := localtest.OwnDynamoDB(t) // it reads from where the listing says that the shard begins
	db := dynamodb.NewFromConfig(cfg)
	name, arn := localtest.Streamed(t, "reread")
	for i := range 5 {
		if _, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &name, Item: map[string]types.AttributeValue{
			"id": &types.AttributeValueMemberS{Value: fmt.Sprint("item ", i)}, "n": &types.AttributeValueMemberN{Value: "7"},
		}}); err != nil {
			t.Fatal(err)
		}
	}
	d, err := dynamodbstreams.NewFromConfig(cfg).DescribeStream(t.Context(), &dynamodbstreams.DescribeStreamInput{StreamArn: &arn})
	if err != nil {
		t.Fatal(err)
	}
	shard := *d.StreamDescription.Shards[0].ShardId
	first := sluice.Sequence(*d.StreamDescription.Shards[0].SequenceNumberRange.StartingSequenceNumber)
	r := New(cfg)

	var all []sluice.Record
	collect := func(recs []sluice.Record) error { all = append(all, recs...); return nil }
	// The last is not known: it goes to where the shard ends for now.
	if err := r.Records(t.Context(), Range{arn, shard, first, "9999999999999999999999999999999999999999"}, collect); !errors.Is(err, ErrTrimmed) || len(all) != 5 {
		t.Fatalf("%d records, %v", len(all), err)
	}
	whole := all
	all = nil
	if err := r.Records(t.Context(), Range{arn, shard, whole[1].Sequence, whole[3].Sequence}, collect); err != nil || len(all) != 3 || all[0].EventID != whole[1].EventID || all[2].EventID != whole[3].EventID {
		t.Errorf("a range: %d records, %v", len(all), err)
	}
	for _, in := range []string{shard, ""} {
		rec, err := r.Record(t.Context(), arn, in, whole[2].Sequence, whole[2].EventID)
		if err != nil || rec.EventID != whole[2].EventID || string(rec.Raw()) != string(whole[2].Raw()) || rec.ShardID != shard {
			t.Errorf("one record of shard %q: %+v, %v", in, rec, err)
		}
		if _, err := r.Record(t.Context(), arn, in, whole[2].Sequence, "another"); !errors.Is(err, ErrTrimmed) {
			t.Errorf("another event: %v", err)
		}
	}
	rec, err := r.Item(t.Context(), arn, whole[2].Keys)
	if n, _ := rec.New.Lookup("n"); err != nil || rec.EventName != sluice.Snapshot || rec.Table != name || n.Str() != "7" || !rec.Keys.Equal(whole[2].Keys) {
		t.Errorf("the item: %+v, %v", rec, err)
	}
	gone := sluice.DecodeRecord([]byte(`{"eventName":"REMOVE","dynamodb":{"SequenceNumber":"300000000000000000001","Keys":{"id":{"S":"nobody"}}}}`)).Keys
	if _, err := r.Item(t.Context(), arn, gone); !errors.Is(err, ErrNoItem) {
		t.Errorf("an item that is not there: %v", err)
	}
	if _, err := r.Record(t.Context(), arn+"x", "", "1", ""); !errors.Is(err, ErrTrimmed) {
		t.Errorf("a stream that is not there: %v", err)
	}
}
