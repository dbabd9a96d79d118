package streamtest

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
)

func TestIteratorsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProbe(t)
		table := p.s.CreateTable("orders", TableOptions{})
		put(table, "a")
		shard := table.Shards()[0].ID
		for _, pass := range []struct {
			name string
			time func(time.Duration)
		}{{"Sleep", time.Sleep}, {"Advance", p.s.Advance}} {
			it := p.must(p.iterator(table, shard, horizon))
			pass.time(15*time.Minute - time.Nanosecond)
			page, err := p.page(it, 0)
			if err != nil {
				t.Fatal(pass.name, err)
			}
			pass.time(time.Nanosecond)
			want(t, pass.name+": 15 minutes old", p.letters(it), "ExpiredIteratorException")
			want(t, pass.name+": the next one lives longer", p.letters(page.NextShardIterator), "")
		}
	})
}

func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProbe(t)
		table := p.s.CreateTable("orders", TableOptions{})
		p.s.Advance(3*time.Hour + 500*time.Millisecond)
		time.Sleep(time.Hour)
		put(table, "a")
		now := time.Now().Add(3*time.Hour + 500*time.Millisecond)
		want(t, "Now", p.s.Now(), now)
		want(t, "a change", table.Changes()[0].Time, now)
		page, err := p.page(p.must(p.iterator(table, table.Shards()[0].ID, horizon)), 0)
		if err != nil {
			t.Fatal(err)
		}
		want(t, "a record", page.Records[0].Created, now.UTC().Truncate(time.Second))
		out, err := p.api.DescribeStream(t.Context(), &dynamodbstreams.DescribeStreamInput{StreamArn: aws.String(table.StreamARN())})
		if err != nil {
			t.Fatal(err)
		}
		date, _ := awsmiddleware.GetServerTime(out.ResultMetadata)
		want(t, "the Date of an answer", date, now.UTC().Truncate(time.Second))
	})
}

func TestThrottles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProbe(t)
		p.s.SetLimits(Limits{})
		table := p.s.CreateTable("orders", TableOptions{Shards: 2})
		shards := table.Shards()
		its := []string{p.must(p.iterator(table, shards[0].ID, horizon)), p.must(p.iterator(table, shards[1].ID, horizon))}
		read := func(i int) error { _, err := p.page(its[i], 0); return err }
		describe := func() error {
			_, err := p.api.DescribeStream(t.Context(), &dynamodbstreams.DescribeStreamInput{StreamArn: aws.String(table.StreamARN())})
			return err
		}
		for range 10 {
			if err := errors.Join(read(0), describe()); err != nil {
				t.Fatal(err)
			}
		}
		wantCode(t, "the 11th read", read(0), "LimitExceededException")
		wantCode(t, "the 11th listing", describe(), "ThrottlingException")
		wantCode(t, "another shard", read(1), "<nil>")
		time.Sleep(100 * time.Millisecond)
		wantCode(t, "a tenth of a second later", read(0), "<nil>")
		wantCode(t, "and again", read(0), "LimitExceededException")
		p.s.Advance(10 * time.Minute)
		for i := range 11 {
			wantCode(t, fmt.Sprint("after ten minutes, read ", i), read(0), map[bool]string{true: "<nil>", false: "LimitExceededException"}[i < 10])
		}
	})
}

func TestPages(t *testing.T) {
	p := newProbe(t)
	p.s.SetLimits(Limits{PageRecords: 4, PageBytes: 100, PageShards: 2, ReadsPerShard: math.Inf(1)})
	table := p.s.CreateTable("orders", TableOptions{Shards: 5})
	_, pages := p.shards(table.StreamARN())
	want(t, "pages of shards", pages, 3)
	table = p.s.CreateTable("others", TableOptions{View: "NEW_IMAGE"})
	put(table, "abcdef")
	for _, size := range []int{30, 30, 300, 30} {
		table.Put(map[string]any{"pk": string(rune('A' + size/10)), "x": strings.Repeat("x", size)})
		table.Put(map[string]any{"pk": string(rune('A' + size/10))})
	}
	it := p.must(p.iterator(table, table.Shards()[0].ID, horizon))
	var got []string
	for range 7 {
		page, err := p.page(it, 0)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, letters(page.Records))
		it = page.NextShardIterator
	}
	// A record of letters has 6 bytes; the one with 300 stands alone.
	want(t, "pages of records", got, "[abcd efDD DD _ _DD  ]")
}

// A stream that was disabled is there for 24 hours more.
func TestDisabledStreamIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProbe(t)
		table := p.s.CreateTable("orders", TableOptions{})
		arn := table.StreamARN()
		put(table, "a")
		time.Sleep(time.Hour)
		table.DisableStream()
		time.Sleep(24*time.Hour - time.Nanosecond)
		if _, pages := p.shards(arn); pages != 1 {
			t.Error("it was forgotten early")
		}
		time.Sleep(time.Nanosecond)
		_, err := p.api.DescribeStream(t.Context(), &dynamodbstreams.DescribeStreamInput{StreamArn: &arn})
		wantCode(t, "a day later", err, "ResourceNotFoundException")
		list, err := p.api.ListStreams(t.Context(), &dynamodbstreams.ListStreamsInput{})
		if err != nil || len(list.Streams) != 0 {
			t.Errorf("streams %v, error %v", list.Streams, err)
		}
		first, second := table.EnableStream(""), ""
		table.DisableStream() // in the same millisecond
		second = table.EnableStream("KEYS_ONLY")
		if first == arn || first == second {
			t.Errorf("streams %s, %s and %s", arn, first, second)
		}
	})
}

func TestListStreamsInPages(t *testing.T) {
	p := newProbe(t)
	var made, listed []string
	for i := range 7 {
		table := p.s.CreateTable(fmt.Sprint("table-", i), TableOptions{})
		made = append(made, table.StreamARN())
	}
	in := &dynamodbstreams.ListStreamsInput{Limit: aws.Int32(3)}
	for {
		out, err := p.api.ListStreams(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range out.Streams {
			listed = append(listed, *s.StreamArn)
		}
		if in.ExclusiveStartStreamArn = out.LastEvaluatedStreamArn; in.ExclusiveStartStreamArn == nil {
			break
		}
	}
	want(t, "streams", listed, made)
}
