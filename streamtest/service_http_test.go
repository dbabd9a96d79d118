package streamtest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"go.uber.org/goleak"

	"github.com/sluicehq/sluice/internal/streamsapi"
)

// An answer that never comes ends with its context, with the test, or with the
// connection, and leaves nothing behind.
func TestHangEnds(t *testing.T) {
	t.Run("with its context, in a bubble", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := newProbe(t)
			p.s.Fail(Fault{Hang: true})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			start := time.Now()
			_, err := p.api.ListStreams(ctx, &dynamodbstreams.ListStreamsInput{})
			if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Minute {
				t.Errorf("%v after %v", err, time.Since(start))
			}
		})
	})
	t.Run("with the test", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := newProbe(t)
			p.s.Fail(Fault{Hang: true})
			ended := make(chan error)
			go func() {
				_, err := p.api.ListStreams(context.Background(), &dynamodbstreams.ListStreamsInput{})
				ended <- err
			}()
			synctest.Wait()
			p.s.Close()
			if err := <-ended; !errors.Is(err, errEnded) {
				t.Errorf("the call ended with %v", err)
			}
			if _, err := p.api.ListStreams(t.Context(), &dynamodbstreams.ListStreamsInput{}); !errors.Is(err, errEnded) {
				t.Errorf("a call afterwards: %v", err)
			}
		})
	})
	t.Run("over a socket", func(t *testing.T) {
		defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
		s := NewService(nil)
		hung := make(chan struct{})
		s.OnCall(func(Call) { close(hung) })
		s.Fail(Fault{Hang: true})
		client := &http.Client{Transport: &http.Transport{}}
		defer client.CloseIdleConnections()
		ended := make(chan error)
		go func() {
			resp, err := client.Do(newRequest(t, s.URL()))
			if err == nil {
				resp.Body.Close()
			}
			ended <- err
		}()
		<-hung
		s.Close()
		if err := <-ended; err == nil {
			t.Error("the call was answered")
		}
	})
}

// The body of an answer ends with the context of its call, as that of a
// connection does.
func TestBodyEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	resp, err := NewService(t).Config().HTTPClient.Do(newRequest(t, "http://any").WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := io.ReadAll(resp.Body); !errors.Is(err, context.Canceled) {
		t.Errorf("reading ended with %v", err)
	}
}

func newRequest(t testing.TB, url string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, url, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Amz-Target", "DynamoDBStreams_20120810.ListStreams")
	return req
}

func TestSockets(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	s := NewService(nil)
	defer s.Close()
	table := s.CreateTable("orders", TableOptions{})
	put(table, "abc")
	want(t, "the URL again", s.URL(), s.URL())
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	cfg := s.Config()
	cfg.BaseEndpoint, cfg.HTTPClient = aws.String(s.URL()), &http.Client{Transport: transport}
	p := &probe{t: t, ctx: t.Context(), s: s, api: streamsapi.New(cfg)}
	shard := table.Shards()[0].ID
	want(t, "records", p.letters(p.must(p.iterator(table, shard, horizon))), "abc")
	s.Fail(Fault{Op: "GetRecords", Cut: true, Times: 1})
	_, err := p.page(p.must(p.iterator(table, shard, horizon)), 0)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a cut answer: %v", err)
	}
	want(t, "and the next", p.letters(p.must(p.iterator(table, shard, horizon))), "abc")
}

// What is not a call of the API is refused as one.
func TestNotTheAPI(t *testing.T) {
	s := NewService(t)
	client := s.Config().HTTPClient
	for _, c := range []struct{ method, target, body, want string }{
		{"POST", "DynamoDB_20120810.PutItem", "{}", "UnknownOperationException"},
		{"POST", "", "{}", "UnknownOperationException"},
		{"GET", "DynamoDBStreams_20120810.ListStreams", "{}", "UnknownOperationException"},
		{"POST", "DynamoDBStreams_20120810.ListStreams", "{", "SerializationException"},
		{"POST", "DynamoDBStreams_20120810.DescribeStream", "{}", "ValidationException"},
		{"POST", "DynamoDBStreams_20120810.GetShardIterator", "{}", "ValidationException"},
		{"POST", "DynamoDBStreams_20120810.GetRecords", "{}", "ValidationException"},
	} {
		req := newRequest(t, "http://any")
		req.Method, req.Body, req.ContentLength = c.method, io.NopCloser(strings.NewReader(c.body)), -1
		req.Header.Set("X-Amz-Target", c.target)
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		if resp.StatusCode != 400 || !strings.Contains(string(body), "#"+c.want) {
			t.Errorf("%s %s %s: %d %s", c.method, c.target, c.body, resp.StatusCode, body)
		}
	}
}

func TestCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProbe(t)
		table := p.s.CreateTable("orders", TableOptions{})
		seq := put(table, "ab")
		shard := table.Shards()[0].ID
		var told []Call
		p.s.OnCall(func(c Call) {
			told = append(told, c)
			p.s.Now() // it may use the service
		})
		time.Sleep(time.Second)
		p.letters(p.must(p.iterator(table, shard, horizon)))
		if _, err := p.iterator(table, shard, after, "1"); err == nil { // too short
			t.Fatal("no error")
		}
		p.shards(table.StreamARN(), shard)
		got := p.s.Calls()
		want(t, "told", told, got)
		arn := table.StreamARN()
		want(t, "calls", got, []Call{
			{Op: "GetShardIterator", Time: time.Now(), Table: "orders", StreamARN: arn, Shard: shard, Iterator: "TRIM_HORIZON"},
			{Op: "GetRecords", Time: time.Now(), Table: "orders", StreamARN: arn, Shard: shard, Records: 2},
			{Op: "GetShardIterator", Time: time.Now(), Table: "orders", StreamARN: arn, Shard: shard, Iterator: "AFTER_SEQUENCE_NUMBER", Sequence: "1", Error: "ValidationException"},
			{Op: "DescribeStream", Time: time.Now(), Table: "orders", StreamARN: arn, Shard: shard, Iterator: "CHILD_SHARDS"},
		})
		if seq == "" {
			t.Error("no sequence number")
		}
	})
}
