package streamtest

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/streamsapi"
)

// probe looks at a service by the SDK's client.
type probe struct {
	t   testing.TB
	ctx context.Context
	s   *Service
	api *streamsapi.Client
}

func (p *probe) with(ctx context.Context) *probe {
	q := *p
	q.ctx = ctx
	return &q
}

func newProbe(t testing.TB) *probe {
	t.Helper()
	s := NewService(t)
	s.SetLimits(Limits{ReadsPerShard: math.Inf(1), DescribesPerStream: math.Inf(1)})
	return &probe{t: t, ctx: t.Context(), s: s, api: streamsapi.New(s.Config())}
}

func (p *probe) iterator(table *Table, shard string, kind types.ShardIteratorType, seq ...sluice.Sequence) (string, error) {
	in := &dynamodbstreams.GetShardIteratorInput{StreamArn: aws.String(table.StreamARN()), ShardId: &shard, ShardIteratorType: kind}
	for _, s := range seq {
		in.SequenceNumber = aws.String(string(s))
	}
	out, err := p.api.GetShardIterator(p.ctx, in)
	if err != nil {
		return "", err
	}
	return *out.ShardIterator, nil
}

func (p *probe) must(it string, err error) string {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
	return it
}

func (p *probe) page(iterator string, limit int32) (sluice.Page, error) {
	body, err := p.api.GetRecords(p.ctx, iterator, limit)
	if err != nil {
		return sluice.Page{}, err
	}
	return sluice.DecodeGetRecords(body, sluice.Source{})
}

// letters reads one page and returns its keys, and "." when the shard ends.
func (p *probe) letters(iterator string) string {
	p.t.Helper()
	page, err := p.page(iterator, 0)
	if err != nil {
		return code(err)
	}
	if page.NextShardIterator == "" {
		return letters(page.Records) + "."
	}
	return letters(page.Records)
}

// shards lists a stream, all pages, as "id<parent" and "+" when open.
func (p *probe) shards(arn string, filter ...string) (shards []string, pages int) {
	p.t.Helper()
	in := &dynamodbstreams.DescribeStreamInput{StreamArn: &arn}
	if len(filter) > 0 {
		in.ShardFilter = &types.ShardFilter{Type: types.ShardFilterTypeChildShards, ShardId: &filter[0]}
	}
	for {
		out, err := p.api.DescribeStream(p.ctx, in)
		if err != nil {
			p.t.Fatal(err)
		}
		pages++
		for _, s := range out.StreamDescription.Shards {
			text := *s.ShardId + "<" + aws.ToString(s.ParentShardId)
			if s.SequenceNumberRange.EndingSequenceNumber == nil {
				text += "+"
			}
			shards = append(shards, text)
		}
		if in.ExclusiveStartShardId = out.StreamDescription.LastEvaluatedShardId; in.ExclusiveStartShardId == nil {
			return shards, pages
		}
	}
}

func put(table *Table, letters string) (last sluice.Sequence) {
	for _, l := range letters {
		last = table.Put(map[string]any{"pk": string(l)})
	}
	return last
}

// want compares what is printed.
func want(t testing.TB, what string, got, want any) {
	t.Helper()
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		t.Errorf("%s: %s, want %s", what, g, w)
	}
}

func wantCode(t testing.TB, what string, err error, want string) {
	t.Helper()
	if got := code(err); got != want {
		t.Errorf("%s: %s, want %s", what, got, want)
	}
}

func sorted(s []string) []string { return slices.Sorted(slices.Values(s)) }

// panics runs f with mistakes that a test would fail for, and returns what it
// would say.
func panics(f func(s *Service)) (msg string) {
	s := NewService(nil)
	defer s.Close()
	defer func() {
		if p := recover(); p != nil {
			msg = strings.TrimPrefix(fmt.Sprint(p), "streamtest: ")
		}
	}()
	f(s)
	return ""
}
