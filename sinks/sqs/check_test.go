package sqs

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sluicehq/sluice"
)

func TestNew(t *testing.T) {
	t.Setenv("AWS_ENDPOINT_URL", "")
	for _, c := range []struct {
		queue, region string
		o             Options
		name, url     string
		where         string
		fifo          bool
		want          string // error
	}{
		{queue: "jobs", name: "jobs", where: "at AWS in region us-east-1"},
		{queue: "jobs.fifo", name: "jobs.fifo", fifo: true, where: "at AWS in region us-east-1"},
		{queue: standard, name: "jobs", url: standard, where: "at AWS in region us-east-1"},
		{queue: "http://127.0.0.1:9324/000000000000/jobs.fifo", name: "jobs.fifo", fifo: true, url: "http://127.0.0.1:9324/000000000000/jobs.fifo", where: "at http://127.0.0.1:9324 in region us-east-1"},
		{queue: "https://vpce-1.sqs.eu-west-1.vpce.amazonaws.com/1/jobs", name: "jobs", url: "https://vpce-1.sqs.eu-west-1.vpce.amazonaws.com/1/jobs", where: "at AWS in region us-east-1"},
		{queue: "https://sqs.cn-north-1.amazonaws.com.cn/1/jobs", region: "cn-north-1", name: "jobs", url: "https://sqs.cn-north-1.amazonaws.com.cn/1/jobs", where: "at AWS in region cn-north-1"},
		{queue: "https://sqs.eu-west-1.amazonaws.com/1/jobs", want: "is in region eu-west-1, but the configuration's region is us-east-1"},
		{queue: "", want: "a queue's name is empty"},
		{queue: "jobs", region: "-", want: "set AWS_REGION"},
		{queue: "ftp://x/jobs", want: "is neither a queue's URL"},
		{queue: "a/b", want: "is neither a queue's URL"},
		{queue: "https://sqs.us-east-1.amazonaws.com/", want: "is neither a queue's URL"},
		{queue: "jobs", o: Options{MaxBytes: -1, Attempts: -1}, want: "Options.MaxBytes is negative; allowed are 0 (the default) and above\nsqs: Options.Attempts is negative"},
	} {
		cfg := config(nil)
		if c.region != "" {
			cfg.Region = strings.Trim(c.region, "-")
		}
		q, err := New(cfg, c.queue, c.o)
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%q: got %v, want %q", c.queue, err, c.want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", c.queue, err)
			continue
		}
		if q.name != c.name || q.url != c.url || q.where != c.where || q.fifo != c.fifo {
			t.Errorf("%q: name %q, url %q, where %q, fifo %v", c.queue, q.name, q.url, q.where, q.fifo)
		}
	}
}

func TestConfiguredEndpointWins(t *testing.T) {
	cfg := config(nil)
	cfg.BaseEndpoint = aws.String("http://127.0.0.1:1")
	q, err := New(cfg, "http://127.0.0.1:2/0/jobs", Options{})
	if err != nil || q.where != "at http://127.0.0.1:1 in region us-east-1" {
		t.Errorf("%v, %q", err, q.where)
	}
}

func TestNameIsLookedUpOnce(t *testing.T) {
	var s stub
	q := s.queue(t, "jobs", Options{Linger: 1})
	for range 2 {
		if err := q.Send(t.Context(), sluice.Message{Body: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"GetQueueUrl", "SendMessageBatch", "SendMessageBatch"}; !slices.Equal(s.calls, want) {
		t.Errorf("calls %q, want %q", s.calls, want)
	}
	if s.requests[0].QueueUrl != "https://sqs.us-east-1.amazonaws.com/1/found" {
		t.Errorf("sent to %s", s.requests[0].QueueUrl)
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		name string
		s    *stub
		log  string
	}{
		{"good", &stub{attributes: map[string]string{"DelaySeconds": "0", "MaximumMessageSize": "1048576"}}, ""},
		{"default delay", &stub{attributes: map[string]string{"DelaySeconds": "30"}}, "level=WARN msg=\"the queue delays every message that has no delay of its own; set its DelaySeconds to 0 unless that is meant\" queue=jobs delaySeconds=30\n"},
	} {
		var log bytes.Buffer
		q := c.s.queue(t, standard, Options{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}))})
		if err := q.Check(t.Context()); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if log.String() != c.log {
			t.Errorf("%s: logged %q, want %q", c.name, log.String(), c.log)
		}
	}
}

func TestCheckAdoptsALowerLimit(t *testing.T) {
	s := stub{attributes: map[string]string{"MaximumMessageSize": "10"}}
	q := s.queue(t, standard, Options{Linger: 1})
	if err := q.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := q.Send(t.Context(), sluice.Message{Body: "12345678901"}); !sluice.IsPermanent(err) || !strings.Contains(err.Error(), "11 bytes, more than the limit of 10") {
		t.Errorf("got %v", err)
	}
}

func TestCheckSaysWhatToDo(t *testing.T) {
	none := config(nil)
	none.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{}, errors.New("no provider")
	})
	for _, c := range []struct {
		name  string
		s     *stub
		cfg   *aws.Config
		queue string
		want  string
	}{
		{"missing, by name", &stub{missing: true}, nil, "jobs", `sqs: queue "jobs": GetQueueUrl at AWS in region us-east-1: there is no such queue for this account and region: create it, or correct its name or URL: `},
		{"missing, by URL", &stub{missing: true}, nil, standard, `sqs: queue "jobs": GetQueueAttributes at AWS in region us-east-1: there is no such queue`},
		{"wrong credentials", &stub{status: 403, code: "InvalidClientTokenId"}, nil, "jobs", "the credentials are not accepted: check AWS_PROFILE"},
		{"no permission", &stub{status: 403, code: "AccessDeniedException"}, nil, "jobs", "lack the permission sqs:GetQueueUrl"},
		{"no credentials", nil, &none, standard, "there are no credentials"},
		{"unreachable", nil, new(config(nil)), "http://127.0.0.1:1/0/jobs", `sqs: queue "jobs": GetQueueAttributes at http://127.0.0.1:1 in region us-east-1: the endpoint cannot be reached: is it right, and is the service running?: `},
	} {
		var q *Queue
		var err error
		if c.s != nil {
			q = c.s.queue(t, c.queue, Options{})
		} else {
			c.cfg.RetryMaxAttempts = 1
			if q, err = New(*c.cfg, c.queue, Options{}); err != nil {
				t.Fatal(err)
			}
		}
		if err := q.Check(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s:\ngot  %v\nwant %s", c.name, err, c.want)
		} else if sluice.IsPermanent(err) {
			t.Errorf("%s: %v is Permanent", c.name, err)
		}
	}
}
