package sqs

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/keyhash"
	"github.com/sluicehq/sluice/internal/tally"
)

// Everything of a message reaches the wire, over a real connection.
func TestSendOverHTTP(t *testing.T) {
	s := &stub{t: t}
	srv := httptest.NewServer(s)
	defer srv.Close()
	cfg := config(srv.Client())
	q, err := New(cfg, srv.URL+"/123456789012/jobs.fifo", Options{})
	if err != nil {
		t.Fatal(err)
	}
	m := sluice.Message{
		Body:            "hello",
		Attributes:      map[string]sluice.MessageAttribute{"kind": {Value: "greeting"}, "n": {Type: "Number", Value: "1.50"}, "raw": {Type: "Binary", Bytes: []byte{0, 255}}, "own": {Type: "String.json", Value: "{}"}},
		GroupID:         "g",
		DeduplicationID: "d",
	}
	if err := q.Send(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	got := s.requests[0]
	e := got.Entries[0]
	if got.QueueUrl != srv.URL+"/123456789012/jobs.fifo" || e.MessageBody != "hello" || e.MessageGroupId != "g" || e.MessageDeduplicationId != "d" || e.DelaySeconds != nil {
		t.Errorf("got %+v", got)
	}
	a := e.MessageAttributes
	if len(a) != 4 || a["kind"].DataType != "String" || a["kind"].StringValue != "greeting" || a["n"].DataType != "Number" || a["n"].StringValue != "1.50" ||
		!slices.Equal(a["raw"].BinaryValue, []byte{0, 255}) || a["raw"].StringValue != "" || a["own"].DataType != "String.json" {
		t.Errorf("attributes %+v", a)
	}
}

func TestDelayIsRoundedUp(t *testing.T) {
	for _, c := range []struct {
		delay time.Duration
		want  int // 0 is left out
	}{{0, 0}, {1, 1}, {time.Second, 1}, {1001 * time.Millisecond, 2}, {maxDelay - time.Nanosecond, 900}, {maxDelay, 900}} {
		synctest.Test(t, func(t *testing.T) {
			var s stub
			if err := s.queue(t, standard, Options{}).Send(t.Context(), sluice.Message{Body: "x", Delay: c.delay}); err != nil {
				t.Fatal(err)
			}
			got := 0
			if d := s.requests[0].Entries[0].DelaySeconds; d != nil {
				got = *d
			}
			if got != c.want {
				t.Errorf("%v sent as %d, want %d", c.delay, got, c.want)
			}
		})
	}
}

// Ten messages and the total size bound a request.
func TestRequestsKeepTheLimits(t *testing.T) {
	for _, c := range []struct {
		name  string
		n     int
		bytes int
		max   int
		want  []int // messages in each request
	}{
		{"by number", 25, 1, 0, []int{10, 10, 5}},
		{"by size", 6, 300 << 10, 0, []int{3, 3}},
		{"by size, exactly", 8, 256 << 10, 0, []int{4, 4}},
		{"by a lower limit", 5, 100 << 10, 256 << 10, []int{2, 2, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var s stub
				q := s.queue(t, standard, Options{MaxBytes: c.max})
				if errs := q.SendAll(t.Context(), slices.Repeat([]sluice.Message{{Body: strings.Repeat("x", c.bytes)}}, c.n)); errs != nil {
					t.Fatal(errs)
				}
				var got []int
				for _, r := range s.requests {
					got = append(got, len(r.Entries))
				}
				if !slices.Equal(got, c.want) {
					t.Errorf("requests of %v, want %v", got, c.want)
				}
			})
		})
	}
}

func TestConcurrentSendsShareRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stub{delay: 10 * time.Millisecond}
		q := s.queue(t, standard, Options{})
		start := time.Now()
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				if err := q.Send(t.Context(), sluice.Message{Body: "x"}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if len(s.requests) != 10 || time.Since(start) != s.delay {
			t.Errorf("%d requests in %v, want 10 in one round trip", len(s.requests), time.Since(start))
		}
	})
}

// Attempts is four, and each round that was refused is followed by a pause.
func TestRefusedMessages(t *testing.T) {
	const permanent, plain = "permanent", "plain"
	for _, c := range []struct {
		name   string
		reply  func(n int) answer
		want   []string // bodies of each request
		result map[string]string
		says   string
	}{
		{"only those refused are sent again", func(n int) answer {
			return []answer{{refused: map[string]string{"b": "InternalError", "d": "ServiceUnavailable"}}, {refused: map[string]string{"d": "InternalError"}}, {}}[n]
		}, []string{"a b c d", "b d", "d"}, nil, ""},
		{"a sender's fault is not repeated", func(int) answer { return answer{refused: map[string]string{"c": "sender:InvalidMessageContents"}} },
			[]string{"a b c d"}, map[string]string{"c": permanent}, "SQS refused the message: InvalidMessageContents: no c"},
		{"in neither list", func(n int) answer { return []answer{{silent: []string{"a", "d"}}, {}}[n] },
			[]string{"a b c d", "a d"}, nil, ""},
		{"an id that was not sent", func(n int) answer {
			return []answer{{silent: []string{"a"}, extra: []string{"9", "-1", "x"}}, {}}[n]
		}, []string{"a b c d", "a"}, nil, ""},
		{"until attempts are used up", func(int) answer { return answer{refused: map[string]string{"b": "InternalError"}} },
			[]string{"a b c d", "b", "b", "b"}, map[string]string{"b": plain}, "InternalError: no b"},
		{"throttled, which is called the sender's fault", func(n int) answer {
			return []answer{{refused: map[string]string{"b": "sender:KMS.ThrottlingException"}}, {}}[n]
		}, []string{"a b c d", "b"}, nil, ""},
		{"refused as a whole for its size", func(int) answer { return answer{code: "BatchRequestTooLong"} },
			[]string{"a b c d", "a b", "a", "b", "c d", "c", "d"}, map[string]string{"a": permanent, "b": permanent, "c": permanent, "d": permanent}, "BatchRequestTooLong"},
		{"no such queue: nobody's message is at fault", func(int) answer { return answer{code: "QueueDoesNotExist", message: "gone"} },
			[]string{"a b c d"}, map[string]string{"a": plain, "b": plain, "c": plain, "d": plain}, "there is no such queue"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := stub{reply: func(n int, _ sent) answer { return c.reply(n) }}
				q := s.queue(t, standard, Options{})
				ms := messages("a", "b", "c", "d")
				for i := range ms {
					ms[i].Delay = 7 * time.Second
					ms[i].Attributes = map[string]sluice.MessageAttribute{"of": {Value: ms[i].Body}}
				}
				errs := q.SendAll(t.Context(), ms)
				s.expect(t, c.want...)
				for _, r := range s.requests {
					for _, e := range r.Entries {
						if e.DelaySeconds == nil || *e.DelaySeconds != 7 || e.MessageAttributes["of"].StringValue != e.MessageBody {
							t.Errorf("delay or attributes lost: %+v", e)
						}
					}
				}
				if len(c.result) == 0 {
					if errs != nil {
						t.Errorf("got %v", errs)
					}
					return
				}
				for i, m := range ms {
					kind := ""
					if sluice.IsPermanent(errs[i]) {
						kind = permanent
					} else if errs[i] != nil {
						kind = plain
					}
					if kind != c.result[m.Body] {
						t.Errorf("%s ended %q (%v), want %q", m.Body, kind, errs[i], c.result[m.Body])
					}
				}
				if !strings.Contains(text(errs), c.says) || !strings.Contains(text(errs), `sqs: queue "jobs": `) {
					t.Errorf("%v does not say %q", errs, c.says)
				}
			})
		})
	}
}

// If one message makes SQS refuse the whole request, the queue finds it, and the others
// arrive. The cause may also be the queue itself: the flow decides.
func TestOneSpoilsTheRequest(t *testing.T) {
	for _, c := range []struct {
		code, message string
		permanent     bool
	}{
		{"InvalidMessageContents", "characters", true},
		{"InvalidAttributeValue", "MessageTooLong", true}, // ElasticMQ
		{"InvalidParameterValue", "Value for parameter is invalid", false},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := stub{reply: func(_ int, req sent) answer {
				if slices.Contains(req.bodies(), "bad") {
					return answer{code: c.code, message: c.message}
				}
				return answer{}
			}}
			q := s.queue(t, standard, Options{})
			errs := q.SendAll(t.Context(), messages("a", "b", "bad", "d", "e"))
			s.expect(t, "a b bad d e", "a b", "bad d e", "bad", "d e")
			for i, err := range errs {
				if (i == 2) != (err != nil) || sluice.IsPermanent(err) != (i == 2 && c.permanent) {
					t.Errorf("%s: message %d: %v", c.code, i, err)
				}
			}
		})
	}
}

// The client repeats a request that fails as a whole and may pass. Then every
// message has an ordinary error.
func TestRequestFailsAsAWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stub{reply: func(n int, _ sent) answer {
			if n < 2 {
				return answer{code: "InternalFailure", status: 500}
			}
			return answer{}
		}}
		q := s.queue(t, standard, Options{})
		if errs := q.SendAll(t.Context(), messages("a", "b")); errs != nil {
			t.Error(errs)
		}
		s.reply = func(int, sent) answer { return answer{code: "InternalFailure", status: 500} }
		errs := q.SendAll(t.Context(), messages("a", "b"))
		if len(errs) != 2 || errs[0] == nil || errs[1] == nil || sluice.IsPermanent(errs[0]) {
			t.Errorf("got %v", errs)
		}
	})
}

func TestRetriesEndWithTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stub{reply: func(int, sent) answer { return answer{refused: map[string]string{"a": "InternalError"}} }}
		q := s.queue(t, standard, Options{Timeout: time.Minute, Backoff: 10 * time.Second, Attempts: 1000})
		start := time.Now()
		err := q.Send(t.Context(), sluice.Message{Body: "a"})
		if err == nil || sluice.IsPermanent(err) || !strings.Contains(err.Error(), "InternalError") {
			t.Errorf("got %v, want the last refusal", err)
		}
		if took := time.Since(start); took >= time.Minute+2*time.Millisecond || len(s.requests) < 2 {
			t.Errorf("%d requests in %v, want several within a minute", len(s.requests), took)
		}
	})
}

func TestFIFO(t *testing.T) {
	refuse := func(body, code string) func(int, sent) answer {
		return func(int, sent) answer { return answer{refused: map[string]string{body: code}} }
	}
	for _, c := range []struct {
		name   string
		reply  func(n int, _ sent) answer
		send   []string
		want   []string // bodies of each request
		failed []string
	}{
		{"one of a group at a time", nil, []string{"a/1", "a/2", "b/1", "a/3", "c/1"}, []string{"a/1 b/1 c/1", "a/2", "a/3"}, nil},
		{"a retry is not overtaken", func(n int, _ sent) answer {
			return []answer{{refused: map[string]string{"a/1": "InternalError"}}, {}, {}, {}}[n]
		}, []string{"a/1", "b/1", "a/2", "b/2"}, []string{"a/1 b/1", "a/1 b/2", "a/2"}, nil},
		{"a failure holds back its group", refuse("a/2", "InternalError"), []string{"a/1", "a/2", "a/3", "b/1", "b/2", "a/4"},
			[]string{"a/1 b/1", "a/2 b/2", "a/2", "a/2", "a/2"}, []string{"a/2", "a/3", "a/4"}},
		{"also beyond the request that it was in", refuse("a/1", "InternalError"), []string{"a/1", "b/1", "c/1", "d/1", "e/1", "f/1", "g/1", "h/1", "i/1", "a/2", "a/3", "j/1"},
			[]string{"a/1 b/1 c/1 d/1 e/1 f/1 g/1 h/1 i/1", "a/1", "a/1", "a/1", "j/1"}, []string{"a/1", "a/2", "a/3"}},
		{"what will never be taken holds back nobody", refuse("a/1", "sender:InvalidMessageContents"), []string{"a/1", "a/2"}, []string{"a/1", "a/2"}, []string{"a/1"}},
		{"a request that fails as a whole", func(int, sent) answer { return answer{code: "QueueDoesNotExist"} }, []string{"a/1", "b/1", "a/2"}, []string{"a/1 b/1"}, []string{"a/1", "b/1", "a/2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := stub{reply: c.reply}
				q := s.queue(t, fifo, Options{})
				errs := q.SendAll(t.Context(), messages(c.send...))
				s.expect(t, c.want...)
				var failed []string
				for i, err := range errs {
					if err != nil {
						failed = append(failed, c.send[i])
					}
				}
				slices.Sort(failed)
				slices.Sort(c.failed)
				if !slices.Equal(failed, c.failed) {
					t.Errorf("failed %q, want %q: %v", failed, c.failed, errs)
				}
			})
		})
	}
}

func TestOvertakingIsExplained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stub{reply: func(int, sent) answer { return answer{refused: map[string]string{"a/1": "InternalError"}} }}
		errs := s.queue(t, fifo, Options{}).SendAll(t.Context(), messages("a/1", "a/2"))
		want := `sqs: queue "jobs.fifo": not sent, as it would overtake an earlier message of group ` + keyhash.Text("a") + `, which failed: SQS refused the message: InternalError: no a/1`
		if errs[1] == nil || errs[1].Error() != want || sluice.IsPermanent(errs[1]) {
			t.Errorf("got  %v\nwant %s", errs[1], want)
		}
	})
}

func TestSendAllMixesGoodAndBad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s stub
		q := s.queue(t, standard, Options{})
		if errs := q.SendAll(t.Context(), nil); errs != nil {
			t.Errorf("nothing to send: %v", errs)
		}
		errs := q.SendAll(t.Context(), messages("a", "", "b", "\x00", "c"))
		s.expect(t, "a b c")
		for i, err := range errs {
			if bad := i == 1 || i == 3; bad != sluice.IsPermanent(err) || !bad && err != nil {
				t.Errorf("message %d: %v", i, err)
			}
		}
	})
}

func TestWithdrawn(t *testing.T) {
	var s stub
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.queue(t, standard, Options{}).Send(ctx, sluice.Message{Body: "a"}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	s.expect(t)
}

func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var counts tally.Tally
		s := stub{delay: time.Second, reply: func(n int, _ sent) answer {
			return []answer{{refused: map[string]string{"bb": "sender:X"}}, {code: "QueueDoesNotExist"}}[n]
		}}
		q := s.queue(t, standard, Options{Metrics: &counts})
		q.SendAll(t.Context(), messages("a", "bb"))
		q.SendAll(t.Context(), messages("ccc"))
		if sizes := counts.Values("sluice_commit_batch_items", "sqs"); !slices.Equal(sizes, []float64{2, 1}) {
			t.Errorf("commits of %v", sizes)
		}
		if n := counts.By("sluice_commit_items_total"); n["sqs,committed"] != 1 || n["sqs,failed"] != 2 {
			t.Errorf("items: %v", n)
		}
	})
}

// The first message of a group that is refused and taken at random must still
// arrive first: seeds against the order in which SQS took them.
func TestFIFOSeeds(t *testing.T) {
	for seed := range 50 {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			landed := map[string]int{}
			s := stub{reply: func(n int, req sent) answer {
				a := answer{refused: map[string]string{}}
				if (seed+n)%11 == 0 {
					return answer{code: "InternalFailure", status: 500}
				}
				mu.Lock()
				defer mu.Unlock()
				for k, e := range req.Entries {
					var i int
					fmt.Sscanf(e.MessageBody[2:], "%d", &i)
					if (seed*7+n*13+k*5)%4 == 0 {
						a.refused[e.MessageBody] = "InternalError"
					} else if g := e.MessageGroupId; i < landed[g] {
						t.Errorf("seed %d: %s landed after %d", seed, e.MessageBody, landed[g])
					} else {
						landed[g] = i
					}
				}
				return a
			}}
			q := s.queue(t, fifo, Options{Attempts: 2})
			var bodies []string
			for i := range 40 {
				bodies = append(bodies, fmt.Sprintf("%c/%d", 'a'+(i*(seed+3))%5, i+1))
			}
			for left := bodies; len(left) > 0; { // as a flow does: what failed, again, in order
				errs := q.SendAll(t.Context(), messages(left...))
				var again []string
				for i, err := range errs {
					if err != nil {
						again = append(again, left[i])
					}
				}
				left = again
			}
		})
	}
}
