package streamtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

func TestFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProbe(t)
		table := p.s.CreateTable("orders", TableOptions{})
		other := p.s.CreateTable("others", TableOptions{})
		put(table, "abcdef")
		put(other, "x")
		shard := table.Shards()[0].ID
		read := func() string { return p.letters(p.must(p.iterator(table, shard, horizon))) }
		status := func() int {
			_, err := p.page(p.must(p.iterator(table, shard, horizon)), 0)
			var resp *smithyhttp.ResponseError
			if errors.As(err, &resp) {
				return resp.HTTPStatusCode()
			}
			return 200
		}

		p.s.Fail(Fault{Op: "GetRecords", Table: "orders", Error: "InternalServerError", After: 1, Times: 2})
		want(t, "reads", []string{read(), read(), read(), read()}, "[abcdef InternalServerError InternalServerError abcdef]")
		remove := p.s.Fail(Fault{Op: "GetRecords", Shard: shard, Error: "ProvisionedThroughputExceededException"})
		want(t, "another shard", p.letters(p.must(p.iterator(other, other.Shards()[0].ID, horizon))), "x")
		want(t, "reads", []string{read(), read()}, "[ProvisionedThroughputExceededException ProvisionedThroughputExceededException]")
		remove()
		remove()
		want(t, "a read without the fault", read(), "abcdef")

		p.s.Fail(Fault{Op: "GetRecords", Error: "InternalServerError", Times: 1})
		p.s.Fail(Fault{Op: "GetRecords", Error: "LimitExceededException", Times: 1})
		p.s.Fail(Fault{Op: "GetRecords", Status: 502, Times: 1})
		p.s.Fail(Fault{Op: "GetRecords", Error: "Odd", Status: 418, Times: 1})
		want(t, "statuses, one fault after the other", []int{status(), status(), status(), status(), status()}, "[500 400 502 418 200]")

		p.s.Fail(Fault{Op: "GetRecords", Records: 2, Times: 2})
		page, _ := p.page(p.must(p.iterator(table, shard, horizon)), 0)
		rest, _ := p.page(page.NextShardIterator, 0)
		want(t, "short pages", letters(page.Records)+" "+letters(rest.Records), "ab cd")

		child := table.Roll(shard)
		p.s.Fail(Fault{Op: "GetRecords", Shard: shard, Empty: true, Times: 2})
		it := p.must(p.iterator(table, shard, horizon))
		var got []string
		for range 3 {
			page, _ := p.page(it, 0)
			got = append(got, letters(page.Records))
			it = page.NextShardIterator
		}
		want(t, "empty pages before data, and the end", fmt.Sprint(got, it), "[  abcdef]")
		p.s.Fail(Fault{Op: "GetRecords", Empty: true, Times: 1})
		last := p.must(p.iterator(table, shard, after, table.Changes()[5].Sequence))
		want(t, "an empty page before the end, and the end", []string{p.letters(last), p.letters(last)}, "[ .]")

		p.s.Fail(Fault{Op: "GetRecords", Cut: true, Times: 1})
		if _, err := p.page(p.must(p.iterator(table, shard, horizon)), 0); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("a cut answer: %v", err)
		}

		p.s.Fail(Fault{Op: "DescribeStream", Loop: true, Times: 3})
		for range 3 {
			out, err := p.api.DescribeStream(t.Context(), &dynamodbstreams.DescribeStreamInput{StreamArn: aws.String(table.StreamARN())})
			if err != nil || aws.ToString(out.StreamDescription.LastEvaluatedShardId) != *out.StreamDescription.Shards[0].ShardId {
				t.Errorf("a listing that does not end: %v, %v", out, err)
			}
		}
		if n := len(table.Shards()); n != 2 || table.Shards()[1].ID != child {
			t.Errorf("%d shards", n)
		}
	})
}

// What only one operation can do wrong is not used up by others.
func TestFaultsOfOneOperation(t *testing.T) {
	p := newProbe(t)
	table := p.s.CreateTable("orders", TableOptions{})
	put(table, "abc")
	shard := table.Shards()[0].ID
	p.s.Fail(Fault{Empty: true, Times: 1})
	p.s.Fail(Fault{Records: 1, Times: 1})
	p.s.Fail(Fault{Loop: true, Times: 1})
	it := p.must(p.iterator(table, shard, horizon))
	want(t, "reads", []string{p.letters(it), p.letters(it), p.letters(it)}, "[ a abc]")
	for _, last := range []string{shard, ""} {
		out, err := p.api.DescribeStream(t.Context(), &dynamodbstreams.DescribeStreamInput{StreamArn: aws.String(table.StreamARN())})
		if err != nil {
			t.Fatal(err)
		}
		want(t, "the last shard of a page", aws.ToString(out.StreamDescription.LastEvaluatedShardId), last)
	}
}

// A slow answer is that of the moment when it was asked for.
func TestSlowAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProbe(t)
		table := p.s.CreateTable("orders", TableOptions{})
		shard := table.Shards()[0].ID
		p.s.Fail(Fault{Op: "GetRecords", Delay: 3 * time.Second})
		it := p.must(p.iterator(table, shard, horizon))
		time.AfterFunc(time.Second, func() { put(table, "a") })
		start := time.Now()
		want(t, "a slow answer", p.letters(it), "")
		want(t, "a second one", p.letters(it), "a")
		want(t, "took", time.Since(start), 6*time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := p.api.GetRecords(ctx, it, 0); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 7*time.Second {
			t.Errorf("one that comes too late: %v after %v", err, time.Since(start))
		}
	})
}
