package queue

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
)

// At a stop handlers finish, settled messages are deleted, and messages that did not
// start return to the queue at once.
func TestStopDrains(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, "jobs", "jobs.fifo")
		w.stub.send("jobs", body(1))
		w.stub.send("jobs.fifo", "a/"+body("a1"), "a/"+body("a2"), "a/"+body("a3"))
		w.start(Options{}, func(context.Context, *sluice.Record) error { time.Sleep(20 * time.Second); return nil })
		pass(5 * time.Second)
		begin := time.Now()
		w.end()
		if took := time.Since(begin); took < 14*time.Second || took > 16*time.Second {
			t.Errorf("it took %v", took)
		}
		w.expectLeft("jobs")
		w.expectLeft("jobs.fifo", "jobs.fifo-002", "jobs.fifo-003")
		w.expectEnds(map[End]int{EndSettled: 2, EndUnused: 2})
		for _, id := range []string{"jobs.fifo-002", "jobs.fifo-003"} {
			if m := w.stub.find(id); m.visible.After(time.Now()) {
				t.Errorf("%s is hidden for another %v", id, time.Until(m.visible))
			}
		}
	})
}

// A handler that is cut off has failed by no fault of its message: it comes
// again at once.
func TestStopCutsOff(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.stub.send("jobs", body(1))
		w.start(Options{Grace: 10 * time.Second}, func(ctx context.Context, _ *sluice.Record) error {
			<-ctx.Done()
			return ctx.Err()
		})
		pass(time.Second)
		begin := time.Now()
		w.end()
		if took := time.Since(begin); took > 8*time.Second {
			t.Errorf("it took %v", took)
		}
		if m := w.stub.find("jobs-001"); m.gone || m.visible.After(time.Now()) {
			t.Errorf("deleted %v, hidden for another %v", m.gone, time.Until(m.visible))
		}
	})
}

// A handler that ignores the stop is given up, and its message comes again by itself.
func TestStopGivesUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.stub.send("jobs", body(1))
		free := make(chan struct{})
		w.start(Options{Grace: 10 * time.Second}, func(context.Context, *sluice.Record) error { <-free; return nil })
		pass(time.Second)
		begin := time.Now()
		w.end()
		if took := time.Since(begin); took > 10*time.Second {
			t.Errorf("it took %v", took)
		}
		w.expectLeft("jobs", "jobs-001")
		if m := w.stub.find("jobs-001"); !m.visible.After(time.Now()) {
			t.Error("it is visible while its handler runs")
		}
		w.expectEnds(map[End]int{EndLost: 1})
		close(free)
	})
}

// Run ends within Grace if SQS gives no answer, or refuses.
func TestStopWithoutSQS(t *testing.T) {
	for name, f := range map[string]fault{"no answer": {delay: 9 * time.Second}, "refused": {code: "AccessDenied", status: 403}} {
		bubble(t, func(t *testing.T) {
			w := newWorld(t)
			w.stub.send("jobs", body(1), body(2))
			w.start(Options{Grace: 10 * time.Second}, func(_ context.Context, rec *sluice.Record) error {
				w.stub.mu.Lock()
				w.stub.fault = func(string, string) *fault { return &f }
				w.stub.mu.Unlock()
				if nOf(rec) == "1" {
					return errDown
				}
				return nil
			})
			pass(time.Second)
			begin := time.Now()
			w.end()
			if took := time.Since(begin); took > 19*time.Second { // the stub does not notice that a call is cut off
				t.Errorf("%s: it took %v", name, took)
			}
		})
	}
}

func TestStart(t *testing.T) {
	for _, c := range []struct {
		name   string
		queues []string
		change func(w *world)
		want   []string // of the error; none: it starts
		log    string
	}{
		{"by name", []string{"jobs"}, nil, nil, ""},
		{"by URL", []string{"https://sqs.us-east-1.amazonaws.com/1/jobs"}, nil, nil, ""},
		{"elsewhere", []string{"http://127.0.0.1:9324/1/jobs"}, nil, nil, ""},
		{"no such name", []string{"jbos"}, nil, []string{`queue "jbos"`, "at AWS in region us-east-1", "sqs:GetQueueUrl", "no such queue"}, ""},
		{"no such URL", []string{"http://127.0.0.1:9324/1/jbos"}, nil, []string{`queue "jbos"`, "at http://127.0.0.1:9324", "sqs:GetQueueAttributes", "create it, or correct its name or URL"}, ""},
		{"one of two", []string{"jobs", "jbos"}, nil, []string{`queue "jbos"`}, ""},
		{"may not look", []string{"jobs"}, denied("GetQueueUrl"), []string{"lack the permission sqs:GetQueueUrl"}, ""},
		{"may not ask", []string{"jobs"}, denied("GetQueueAttributes"), nil, "four days"},
		{"down for a while", []string{"jobs"}, downFor(3), nil, ""},
		{"down", []string{"jobs"}, downFor(1000), []string{"connection lost"}, ""},
		{"short redrive", []string{"jobs"}, func(w *world) {
			w.stub.queues["jobs"].attributes["RedrivePolicy"] = `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:1:dead","maxReceiveCount":"5"}`
		}, nil, "maxReceiveCount=5 maxReceives=16"},
		{"long redrive", []string{"jobs"}, func(w *world) {
			w.stub.queues["jobs"].attributes["RedrivePolicy"] = `{"maxReceiveCount":100}`
		}, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t)
				if c.change != nil {
					c.change(w)
				}
				w.stub.send("jobs", body(1))
				w.start(Options{Queues: c.queues, DeadLetter: new(box)}, func(context.Context, *sluice.Record) error { return nil })
				pass(10 * time.Second)
				err := w.stop()
				if (err != nil) != (len(c.want) > 0) {
					t.Fatalf("Run: %v", err)
				}
				var q *queueError
				if err != nil && !errors.As(err, &q) {
					t.Errorf("%T is no *QueueError", err)
				}
				for _, want := range c.want {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("%v does not say %q", err, want)
					}
				}
				if err == nil {
					w.expectLeft("jobs")
				}
				if c.log == "" && strings.Contains(w.logged(), "level=WARN") || !strings.Contains(w.logged(), c.log) {
					t.Errorf("log, want %q:\n%s", c.log, w.logged())
				}
			})
		})
	}
}

func denied(call string) func(*world) {
	return func(w *world) {
		w.stub.fault = func(c, _ string) *fault {
			if c == call {
				return &fault{code: "AccessDeniedException", status: 400}
			}
			return nil
		}
	}
}

func downFor(calls int) func(*world) {
	return func(w *world) {
		w.stub.fault = func(string, string) *fault {
			if calls--; calls >= 0 {
				return &fault{lost: true}
			}
			return nil
		}
	}
}

func TestBadOptions(t *testing.T) {
	w := newWorld(t)
	m := routesOf(nil, "job")
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{}, "Options.Queues is empty"},
		{Options{Queues: []string{"a", "a"}}, `"a" is named twice`},
		{Options{Queues: []string{"a", "http://h/1/a"}}, `two queues are named "a"`},
		{Options{Queues: []string{""}}, "a queue's name is empty"},
		{Options{Queues: []string{"ftp://h/1/a"}}, "neither a queue's URL"},
		{Options{Queues: []string{"https://sqs.eu-west-1.amazonaws.com/1/a"}}, "is in region eu-west-1, but the configuration's region is us-east-1"},
		{Options{Queues: []string{"a"}, Concurrency: -1}, "Options.Concurrency is -1"},
		{Options{Queues: []string{"a"}, MaxReceives: -1}, "Options.MaxReceives is -1"},
		{Options{Queues: []string{"a"}, Visibility: time.Second}, "Options.Visibility is 1s"},
		{Options{Queues: []string{"a"}, Wait: time.Minute}, "Options.Wait is 1m0s"},
		{Options{Queues: []string{"a"}, Grace: -1}, "Options.Grace is -1ns"},
		{Options{Queues: []string{"a"}, MaxBackoff: time.Second, Backoff: time.Minute}, "Options.MaxBackoff is 1s"},
	} {
		if _, err := New(w.line.config(), m, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.o, err, c.want)
		}
	}
	if _, err := New(w.line.config(), nil, Options{Queues: []string{"a"}}); err == nil {
		t.Error("no matcher")
	}
	cfg := w.line.config()
	cfg.Region = ""
	if _, err := New(cfg, m, Options{Queues: []string{"a"}}); err == nil || !strings.Contains(err.Error(), "AWS_REGION") {
		t.Error(err)
	}
	for queueURL, want := range map[string]string{
		"https://sqs.us-east-1.amazonaws.com/123/a": "arn:aws:sqs:us-east-1:123:a", "http://h/a": "arn:aws:sqs:us-east-1::a",
	} {
		if got := arnOf(queueURL, "us-east-1", "a"); got != want {
			t.Errorf("%s: %s, want %s", queueURL, got, want)
		}
	}
	if !slices.Equal([]string{arnOf("https://h/1/a", "cn-north-1", "a"), arnOf("https://h/1/a", "us-gov-west-1", "a")}, []string{"arn:aws-cn:sqs:cn-north-1:1:a", "arn:aws-us-gov:sqs:us-gov-west-1:1:a"}) {
		t.Error("partitions")
	}
}

// parkFunc is dead letters.
type parkFunc func(ctx context.Context) error

func (p parkFunc) Park(ctx context.Context, _ *sluice.Record, _ sluice.Failure) error { return p(ctx) }

// A dead-letter store that hangs does not delay the end, for any caller.
func TestStopWithDeadLettersThatHang(t *testing.T) {
	for _, err := range []error{errDown, errNever} {
		bubble(t, func(t *testing.T) {
			w := newWorld(t)
			q := w.stub.queues["jobs"]
			q.retention, q.attributes["MessageRetentionPeriod"] = time.Hour, "3600"
			w.stub.send("jobs", body(1))
			q.ms[0].sent = q.ms[0].sent.Add(-50 * time.Minute) // too old: to be parked
			release := make(chan struct{})
			w.start(Options{DeadLetter: parkFunc(func(context.Context) error { <-release; return nil })}, func(context.Context, *sluice.Record) error { return err })
			pass(time.Minute)
			begin := time.Now()
			ended := make(chan struct{})
			go func() { w.end(); close(ended) }()
			pass(26 * time.Second)
			select {
			case <-ended:
			default:
				t.Errorf("%v: Run still waits after %v", err, time.Since(begin))
			}
			close(release)
			<-ended
			w.expectLeft("jobs", "jobs-001")
		})
	}
}

// Dead letters that end their goroutine have not taken the message.
func TestDeadLettersThatExit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		q := w.stub.queues["jobs"]
		q.retention, q.attributes["MessageRetentionPeriod"] = time.Hour, "3600"
		w.stub.send("jobs", body(1))
		q.ms[0].sent = q.ms[0].sent.Add(-50 * time.Minute)
		exits := 2
		w.start(Options{DeadLetter: parkFunc(func(context.Context) error {
			if exits--; exits >= 0 {
				runtime.Goexit()
			}
			return nil
		})}, func(context.Context, *sluice.Record) error { return errDown })
		pass(time.Minute)
		w.end()
		w.expectLeft("jobs")
	})
}
