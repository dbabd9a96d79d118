package kcl

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/sluicehq/sluice/state"
)

const arn = "arn:aws:dynamodb:us-west-2:123456789012:table/orders/stream/2024-02-03T00:00:00.000"

// items are the pages of a lease table.
type items [][]map[string]any

func (p items) Scan(_ context.Context, in *dynamodb.ScanInput, _ ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	if !aws.ToBool(in.ConsistentRead) {
		return nil, fmt.Errorf("the read is not consistent")
	}
	page := 0
	if in.ExclusiveStartKey != nil {
		fmt.Sscan(in.ExclusiveStartKey["leaseKey"].(*types.AttributeValueMemberS).Value, &page)
	}
	out := &dynamodb.ScanOutput{}
	for _, v := range p[page] {
		item, err := attributevalue.MarshalMap(v)
		if err != nil {
			return nil, err
		}
		if parents, ok := v["parentShardId"].([]string); ok { // a list would be L
			item["parentShardId"] = &types.AttributeValueMemberSS{Value: parents}
		}
		out.Items = append(out.Items, item)
	}
	if page+1 < len(p) {
		out.LastEvaluatedKey = map[string]types.AttributeValue{"leaseKey": &types.AttributeValueMemberS{Value: fmt.Sprint(page + 1)}}
	}
	return out, nil
}

func lease(key, checkpoint string, more ...any) map[string]any {
	m := map[string]any{
		"leaseKey": key, "checkpoint": checkpoint, "leaseCounter": 17, "leaseOwner": "worker-1",
		"checkpointSubSequenceNumber": 0, "ownerSwitchesSinceCheckpoint": 2, "startingHashKey": "0", "endingHashKey": "1",
	}
	for i := 0; i < len(more); i += 2 {
		m[more[i].(string)] = more[i+1]
	}
	return m
}

func TestRead(t *testing.T) {
	const multi = "123456789012:us-west-2$123456789012$orders$2024-02-03T00_00_00.000:1:"
	got, err := Read(t.Context(), items{
		{
			lease("shardId-00000001706918400000-aaaa", "SHARD_END"),
			lease("shardId-00000001706918400001-bbbb", "8935985800002395190001559217", "parentShardId", []string{"shardId-00000001706918400000-aaaa"}, "checkpointOwner", "worker-2", "throughputKBps", 1.5),
		},
		{},
		{
			{"leaseKey": "worker-1", "entityType": "WORKER_METRIC_STATS", "metricStats": map[string]any{}},
			lease(multi+"shardId-00000001706918400002-cccc", "LATEST", "entityType", "LEASE", "streamName", "x", "shardId", "y"),
			lease("111122223333:us-gov-west-1$111122223333$abc$2024-02-03T00_00_00.000:1:shardId-1-3", "AT_TIMESTAMP"),
			lease("111122223333:cn-north-1$111122223333$a_b.c-d$2024-02-03T00_00_00.000:1:shardId-1-2", "TRIM_HORIZON"),
		},
	}, "app")
	if err != nil {
		t.Fatal(err)
	}
	want := []Lease{
		{"", "shardId-00000001706918400000-aaaa", "SHARD_END", nil, "worker-1", 17},
		{"", "shardId-00000001706918400001-bbbb", "8935985800002395190001559217", []string{"shardId-00000001706918400000-aaaa"}, "worker-1", 17},
		{arn, "shardId-00000001706918400002-cccc", "LATEST", nil, "worker-1", 17},
		{"arn:aws-us-gov:dynamodb:us-gov-west-1:111122223333:table/abc/stream/2024-02-03T00:00:00.000", "shardId-1-3", "AT_TIMESTAMP", nil, "worker-1", 17},
		{"arn:aws-cn:dynamodb:cn-north-1:111122223333:table/a_b.c-d/stream/2024-02-03T00:00:00.000", "shardId-1-2", "TRIM_HORIZON", nil, "worker-1", 17},
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v\nwant\n%v", got, want)
	}
}

func TestReadRefuses(t *testing.T) {
	for _, tt := range []struct {
		row  map[string]any
		want string
	}{
		{lease("shardId-1-2", ""), `has the checkpoint ""`},
		{lease("shardId-1-2", "49590338271490256608559692538361571095921575989136588898123456789"), "no sequence number of DynamoDB"},
		{lease("orders", "1"), "is it a lease table of KCL?"},
		{map[string]any{"pk": "a"}, "is it a lease table of KCL?"},
		{lease("123456789012:stream:1:shardId-1-2", "1"), "not of a stream of DynamoDB"},
		{lease("stream:shardId-1-2", "1"), "not of a stream of DynamoDB"},
	} {
		if got, err := Read(t.Context(), items{{tt.row}}, "app"); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: %v, %v; want %s", tt.row, got, err, tt.want)
		}
	}
}

func TestLiving(t *testing.T) {
	a, b := Lease{ShardID: "a", Owner: "w1", counter: 1}, Lease{ShardID: "b", Owner: "w2", counter: 1}
	beaten, taken, moved := b, b, b
	beaten.counter, taken.Owner, moved.Checkpoint = 2, "w3", "7"
	for _, tt := range []struct {
		after []Lease
		want  string
	}{
		{[]Lease{a, b}, "[]"},
		{[]Lease{b, a}, "[]"},
		{[]Lease{a, beaten}, "[w2]"},
		{[]Lease{a, taken}, "[w3]"},
		{[]Lease{a, moved}, "[w2]"},
		{[]Lease{a, b, {ShardID: "c", Owner: "w4"}}, "[w4]"},
		{[]Lease{a}, "[]"}, // a lease that was deleted
	} {
		if got := fmt.Sprint(Living([]Lease{a, b}, tt.after)); got != tt.want {
			t.Errorf("%v: %s, want %s", tt.after, got, tt.want)
		}
	}
}

func TestStartFor(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	of := func(checkpoints ...string) (all []Lease) {
		for _, c := range checkpoints {
			all = append(all, Lease{Checkpoint: c})
		}
		return all
	}
	for _, tt := range []struct {
		leases    []Lease
		undecided string
		want      string
	}{
		{of("12", "TRIM_HORIZON", "SHARD_END"), "", "TRIM_HORIZON 0001"},
		{of("12"), "LATEST", "TRIM_HORIZON 0001"},
		{of("LATEST", "12"), "", "1 of 2 leases are at LATEST or AT_TIMESTAMP"},
		{of("AT_TIMESTAMP"), "", "1 of 1 leases"},
		{of("LATEST", "12"), "TRIM_HORIZON", "TRIM_HORIZON 0001"},
		{of("LATEST", "12"), "LATEST", "skip records of the 1 shards that KCL has begun"},
		{of("LATEST", "TRIM_HORIZON"), "LATEST", "skip records of the 1 shards"},
		{of("LATEST", "SHARD_END"), "LATEST", "skip records of the 1 shards"}, // of its children
		{of("LATEST", "AT_TIMESTAMP"), "LATEST", "LATEST 2026"},
	} {
		start, err := StartFor(tt.leases, tt.undecided, now)
		if got := fmt.Sprint(start.Position, " ", start.At.Format("2006"), " ", err); !strings.Contains(got, tt.want) {
			t.Errorf("%v, %s: %s, want %s", tt.leases, tt.undecided, got, tt.want)
		}
	}
}

// A shard with a lease is where KCL left it, an ancestor without one is finished, and
// a child that KCL has not seen begins at its beginning.
func TestAdd(t *testing.T) {
	st := state.Stream{Application: "shop", ARN: arn}
	m := state.NewMemory()
	err := Add(t.Context(), m, st, []Lease{
		{ShardID: "closed", Checkpoint: "SHARD_END"},
		{ShardID: "open", Checkpoint: "4421584500000000017450439091"},
		{ShardID: "unread", Checkpoint: "TRIM_HORIZON"},
		{ShardID: "trimmed", Checkpoint: "7", Parents: []string{"long-gone"}},
	}, map[string]string{"root": "older", "mid": "root", "open": "mid", "closed": "", "unread": "closed", "child": "open"}, state.Start{Position: "TRIM_HORIZON"})
	if err != nil {
		t.Fatal(err)
	}
	shards, err := m.Shards(t.Context(), st)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, sh := range shards {
		got[sh.ID] = fmt.Sprint(sh.Parent, sh.Position, sh.Owner)
	}
	want := map[string]string{
		"closed": fmt.Sprint("", state.Position{Finished: true}), "open": fmt.Sprint("mid", state.Position{Sequence: "4421584500000000017450439091"}),
		"unread": fmt.Sprint("closed", state.Position{}), "trimmed": fmt.Sprint("long-gone", state.Position{Sequence: "7"}),
	}
	for _, id := range []string{"root", "mid", "older", "long-gone"} {
		want[id] = fmt.Sprint("", state.Position{Finished: true})
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v\nwant\n%v", got, want)
	}
	if start, err := m.Start(t.Context(), st, state.Start{}); err != nil || start.Position != "TRIM_HORIZON" {
		t.Errorf("start %+v, %v", start, err)
	}
}

// pages are the pages of DescribeStream.
type pages [][]streams.Shard

func (p pages) DescribeStream(_ context.Context, in *dynamodbstreams.DescribeStreamInput, _ ...func(*dynamodbstreams.Options)) (*dynamodbstreams.DescribeStreamOutput, error) {
	if len(p) == 0 {
		return nil, &streams.ResourceNotFoundException{}
	}
	page := 0
	fmt.Sscan(aws.ToString(in.ExclusiveStartShardId), &page)
	d := &streams.StreamDescription{Shards: p[page]}
	if page+1 < len(p) {
		d.LastEvaluatedShardId = aws.String(fmt.Sprint(page + 1))
	}
	return &dynamodbstreams.DescribeStreamOutput{StreamDescription: d}, nil
}

// holed are listings. Each can lack shards.
type holed []pages

func (h *holed) DescribeStream(ctx context.Context, in *dynamodbstreams.DescribeStreamInput, o ...func(*dynamodbstreams.Options)) (*dynamodbstreams.DescribeStreamOutput, error) {
	p := (*h)[0]
	if len(*h) > 1 {
		*h = (*h)[1:]
	}
	return p.DescribeStream(ctx, in, o...)
}

func TestShardsOfListingsWithHoles(t *testing.T) {
	shard := func(id, parent string) streams.Shard {
		return streams.Shard{ShardId: &id, ParentShardId: &parent}
	}
	got, err := Shards(t.Context(), &holed{{{shard("root", ""), shard("leaf", "")}}, {{shard("mid", "root"), shard("leaf", "mid")}}}, arn)
	if err != nil || fmt.Sprint(got) != "map[leaf:mid mid:root root:]" {
		t.Errorf("%v, %v", got, err)
	}
}

func TestShards(t *testing.T) {
	shard := func(id, parent string) streams.Shard {
		return streams.Shard{ShardId: &id, ParentShardId: &parent}
	}
	got, err := Shards(t.Context(), pages{{shard("a", "")}, {}, {shard("b", "a")}}, arn)
	if err != nil || fmt.Sprint(got) != "map[a: b:a]" {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := Shards(t.Context(), pages{}, arn); err == nil || !strings.Contains(err.Error(), arn+" is gone") {
		t.Errorf("a stream that is gone: %v", err)
	}
}
