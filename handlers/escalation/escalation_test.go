package escalation

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/effect/message"
	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/item"
)

var start = time.Date(2024, 5, 1, 10, 0, 0, 0, time.UTC)

// world is an on-call rota in memory: pages climb the people of a team.
type world struct {
	page   string   // item of the page; "" is absent
	people []string // items of the team's partition
	now    time.Time

	getErr, queryErr, failErr, sendErr, watchErr error

	written  []dynamo.Op
	sent     []sluice.Message
	failed   []string
	problems []string
	watched  []sluice.Message
	alarms   []Alarm
}

func parse(s string) sluice.Item {
	it, err := item.Parse([]byte(s))
	if err != nil {
		panic(err)
	}
	return it
}

func (w *world) config() Config {
	return Config{
		Escalation: EscalationAttributes{ID: "id", Ladder: "team", Started: "opened.at", Status: "state", Active: "ringing"},
		Step:       StepAttributes{TypeAttribute: "kind", Type: "person", Enabled: "onDuty", ID: "person", Order: "rank", WaitSeconds: "patience"},
		Attempt:    AttemptAttributes{Escalation: "page", Number: "n", Order: "tried.rank", StepID: "tried.person", At: "at"},
		Table:      "pages",
		Key:        func(id string) sluice.Item { return item.Of(item.String("id", id)) },
		GetAttempt: func(context.Context, string, int64, int64) (sluice.Item, error) { return sluice.Item{}, nil },
		Write:      func(_ context.Context, op dynamo.Op) error { w.written = append(w.written, op); return nil },
		Get: func(_ context.Context, id string) (sluice.Item, error) {
			if id != "P1" {
				return sluice.Item{}, fmt.Errorf("asked for %q", id)
			}
			if w.page == "" {
				return sluice.Item{}, w.getErr
			}
			return parse(w.page), w.getErr
		},
		Query: func(_ context.Context, partition string) ([]sluice.Item, error) {
			if partition != "T1" {
				return nil, fmt.Errorf("asked for %q", partition)
			}
			var items []sluice.Item
			for _, p := range w.people {
				items = append(items, parse(p))
			}
			return items, w.queryErr
		},
		Admit: func(e Escalation, partition []sluice.Item) string {
			if len(partition) == 0 {
				return "no_team"
			}
			return ""
		},
		Fail: func(_ context.Context, e Escalation, reason string) error {
			w.failed = append(w.failed, e.ID+": "+reason)
			return w.failErr
		},
		Problem: func(_ context.Context, e Escalation, err error) {
			w.problems = append(w.problems, e.ID+": "+err.Error())
		},
		StepBody: func(t Try) []byte {
			var b message.Body
			return b.Str("page", t.Escalation.ID).Str("call", t.Step.ID).Int("n", t.Number).Time("from", t.NotBefore).Bytes()
		},
		ExpiryBody: func(x Expiry) []byte {
			var b message.Body
			return b.Str("giveUp", x.Escalation.ID).Time("from", x.NotBefore).Bytes()
		},
		ExpireAfter: 2 * time.Minute,
		Watch: Watchdog{
			Kind:  "watch",
			Send:  func(_ context.Context, m sluice.Message) error { w.watched = append(w.watched, m); return w.watchErr },
			Alarm: func(_ context.Context, a Alarm) error { w.alarms = append(w.alarms, a); return nil },
		},
		Send: func(_ context.Context, m sluice.Message) error { w.sent = append(w.sent, m); return w.sendErr },
		Now:  func() time.Time { return w.now },
	}
}

const ringing = `{"id":{"S":"P1"},"team":{"S":"T1"},"state":{"S":"ringing"},"opened":{"M":{"at":{"S":"2024-05-01T10:00:00Z"}}}}`

func person(id string, rank, patience int, onDuty bool) string {
	return fmt.Sprintf(`{"kind":{"S":"person"},"person":{"S":%q},"rank":{"N":"%d"},"patience":{"N":"%d"},"onDuty":{"BOOL":%v}}`, id, rank, patience, onDuty)
}

func opened() *sluice.Record {
	rec := recordtest.New(recordtest.Spec{Keys: `{"id":{"S":"P1"}}`, New: ringing})
	return &rec
}

func tried(person string, rank, n int, at string) *sluice.Record {
	return attempted(fmt.Sprintf(`{"page":{"S":"P1"},"n":{"N":"%d"},"tried":{"M":{"rank":{"N":"%d"},"person":{"S":%q}}},"at":{"S":%q}}`, n, rank, person, at))
}

func attempted(image string) *sluice.Record {
	rec := recordtest.New(recordtest.Spec{Old: `{}`, New: image})
	return &rec
}

func TestEscalation(t *testing.T) {
	team := []string{
		`{"kind":{"S":"team"},"name":{"S":"not a step"}}`,
		person("zoe", 2, 60, true), person("bob", 10, 90, true), person("ann", 1, 0, true), person("off", 0, 0, false), person("abe", 2, 30, true),
	}
	for _, tt := range []struct {
		name   string
		change func(*world)
		rec    *sluice.Record // nil is the page's own
		body   string
		key    string
		delay  time.Duration
		failed string
		err    string

		problems string
	}{
		{name: "first step", body: `{"page":"P1","call":"ann","n":0,"from":"2024-05-01T10:00:00Z"}`, key: "P1#0"},
		{name: "first step with a wait", change: func(w *world) { w.people = []string{person("ann", 1, 45, true)} },
			body: `{"page":"P1","call":"ann","n":0,"from":"2024-05-01T10:00:45Z"}`, key: "P1#0", delay: 44 * time.Second},
		{name: "by order, then id", rec: tried("ann", 1, 0, "2024-05-01T10:00:10Z"),
			body: `{"page":"P1","call":"abe","n":1,"from":"2024-05-01T10:00:40Z"}`, key: "P1#1", delay: 39 * time.Second},
		{name: "same order", rec: tried("abe", 2, 1, "2024-05-01T10:00:00Z"),
			body: `{"page":"P1","call":"zoe","n":2,"from":"2024-05-01T10:01:00Z"}`, key: "P1#2", delay: 59 * time.Second},
		{name: "orders are numbers", rec: tried("zoe", 2, 2, "2024-05-01T10:00:00Z"),
			body: `{"page":"P1","call":"bob","n":3,"from":"2024-05-01T10:01:30Z"}`, key: "P1#3", delay: 89 * time.Second},
		{name: "the tried step is gone", rec: tried("cat", 2, 1, "2024-05-01T10:00:00Z"),
			body: `{"page":"P1","call":"zoe","n":2,"from":"2024-05-01T10:01:00Z"}`, key: "P1#2", delay: 59 * time.Second},
		{name: "the tried step went off duty", rec: tried("off", 0, 4, "2024-05-01T10:00:00Z"),
			body: `{"page":"P1","call":"ann","n":5,"from":"2024-05-01T10:00:00Z"}`, key: "P1#5"},
		{name: "after the last", rec: tried("bob", 10, 3, "2024-05-01T10:00:05Z"),
			body: `{"giveUp":"P1","from":"2024-05-01T10:02:05Z"}`, key: "P1#expire", delay: 124 * time.Second},
		{name: "all went while it ran", change: func(w *world) { w.people = team[:1] }, rec: tried("ann", 1, 0, "2024-05-01T10:00:00Z"),
			body: `{"giveUp":"P1","from":"2024-05-01T10:02:00Z"}`, key: "P1#expire", delay: 119 * time.Second},
		{name: "fraction and zone", rec: tried("zoe", 2, 2, "2024-05-01T12:00:00.25+02:00"),
			body: `{"page":"P1","call":"bob","n":3,"from":"2024-05-01T10:01:30.25Z"}`, key: "P1#3", delay: 90 * time.Second},

		{name: "no page", change: func(w *world) { w.page = "" }, err: "skipped: escalation not found"},
		{name: "answered", change: func(w *world) { w.page = strings.Replace(ringing, "ringing", "answered", 1) }, err: "skipped: escalation not active"},
		{name: "answered, after an attempt", change: func(w *world) { w.page = strings.Replace(ringing, "ringing", "answered", 1) },
			rec: tried("ann", 1, 0, "2024-05-01T10:00:00Z"), err: "skipped: escalation not active"},
		{name: "attempt not made", rec: attempted(`{"page":{"S":"P1"}}`), err: "skipped: attempt not made"},
		{name: "not admitted", change: func(w *world) { w.people = nil }, failed: "P1: no_team"},
		{name: "not admitted later", change: func(w *world) { w.people = nil }, rec: tried("ann", 1, 0, "2024-05-01T10:00:00Z"), failed: "P1: no_team"},
		{name: "no steps", change: func(w *world) { w.people = []string{team[0], person("off", 0, 0, false)} }, failed: "P1: no_steps"},

		{name: "get fails", change: func(w *world) { w.getErr = errors.New("throttled") }, err: "retry: reading escalation KEY: throttled"},
		{name: "query fails", change: func(w *world) { w.queryErr = errors.New("throttled") }, err: "retry: reading ladder KEY of escalation KEY: throttled"},
		{name: "fail fails", change: func(w *world) { w.people, w.failErr = nil, errors.New("throttled") }, failed: "P1: no_team", err: "retry: failing escalation KEY (no_team): throttled"},
		{name: "send fails", change: func(w *world) { w.sendErr = errors.New("throttled") },
			body: `{"page":"P1","call":"ann","n":0,"from":"2024-05-01T10:00:00Z"}`, key: "P1#0", err: "retry: sending KEY: throttled"},
		{name: "send refuses for good", change: func(w *world) { w.sendErr = sluice.Permanent(errors.New("too long")) },
			body: `{"page":"P1","call":"ann","n":0,"from":"2024-05-01T10:00:00Z"}`, key: "P1#0", err: "permanent: sending KEY: too long"},

		{name: "no status", change: func(w *world) { w.page = `{"id":{"S":"P1"}}` }, err: `permanent: escalation KEY: attribute "state" is missing`},
		{name: "bad start", change: func(w *world) { w.page = strings.Replace(ringing, "2024-05-01T10:00:00Z", "yesterday", 1) },
			err: `permanent: escalation KEY: attribute "opened.at" is no time in RFC 3339, such as 2019-12-30T19:32:14Z`},
		{name: "bad step", change: func(w *world) {
			w.people = append(w.people, `{"kind":{"S":"person"},"person":{"S":"x"},"rank":{"S":"1"},"onDuty":{"BOOL":true}}`)
		}, body: `{"page":"P1","call":"ann","n":0,"from":"2024-05-01T10:00:00Z"}`, key: "P1#0",
			problems: `P1: ladder KEY: item 7 of 7: step KEY: attribute "rank" is of type S, want N`},
		{name: "bad patience", change: func(w *world) { w.people[1] = strings.Replace(w.people[1], `"60"`, `"30.5"`, 1) }, rec: tried("abe", 2, 1, "2024-05-01T10:00:00Z"),
			body: `{"page":"P1","call":"bob","n":2,"from":"2024-05-01T10:01:30Z"}`, key: "P1#2", delay: 89 * time.Second,
			problems: `P1: ladder KEY: item 2 of 6: step KEY: attribute "patience" is a number, but no whole one of 64 bits`},
		{name: "bad order and negative wait", change: func(w *world) {
			w.people[1] = strings.Replace(w.people[1], `"2"`, `"1.5"`, 1)
			w.people[3] = person("ann", 2, -1, true)
		}, body: `{"page":"P1","call":"abe","n":0,"from":"2024-05-01T10:00:30Z"}`, key: "P1#0", delay: 29 * time.Second,
			problems: `P1: ladder KEY: item 2 of 6: step KEY: attribute "rank" is a number, but no whole one of 64 bits, P1: ladder KEY: item 4 of 6: step KEY: attribute "patience" is -1, no number of seconds to wait`},
		{name: "bad last step", change: func(w *world) { w.people[2] = person("bob", 10, 1e10, true) }, rec: tried("zoe", 2, 2, "2024-05-01T10:00:00Z"),
			body: `{"giveUp":"P1","from":"2024-05-01T10:02:00Z"}`, key: "P1#expire", delay: 119 * time.Second,
			problems: `P1: ladder KEY: item 3 of 6: step KEY: attribute "patience" is 10000000000, no number of seconds to wait`},
		{name: "no good step", change: func(w *world) {
			w.people = []string{`{"kind":{"S":"person"},"onDuty":{"BOOL":true}}`, strings.Replace(person("ann", 1, 7, true), `"7"`, `"30.5"`, 1)}
		}, failed: "P1: bad_steps",
			err: "permanent: ladder KEY of escalation KEY has no good step, and the escalation was failed: item 1 of 2: a step: attribute \"person\" is missing\nitem 2 of 2: step KEY: attribute \"patience\" is a number, but no whole one of 64 bits"},
		{name: "no good step, and it cannot be failed", change: func(w *world) {
			w.people, w.failErr = []string{`{"kind":{"S":"person"},"onDuty":{"BOOL":true}}`}, errors.New("throttled")
		}, failed: "P1: bad_steps", err: "retry: failing escalation KEY (bad_steps): throttled"},
		{name: "attempt of another round", rec: attempted(`{"page":{"S":"P1"},"n":{"N":"0"},"round":{"N":"1"},"tried":{"M":{"rank":{"N":"1"},"person":{"S":"ann"}}},"at":{"S":"2024-05-01T10:00:00Z"}}`), err: "skipped: attempt of another round"},
		{name: "attempt of a bad round", rec: attempted(`{"page":{"S":"P1"},"n":{"N":"0"},"round":{"N":"-1"},"tried":{"M":{}},"at":{"S":"x"}}`), err: `permanent: attempt: attribute "round" is -1, want 0 or more`},
		{name: "bad attempt", rec: attempted(`{"page":{"S":"P1"},"n":{"N":"0"},"tried":{"M":{}},"at":{"S":"x"}}`), err: `permanent: attempt: attribute "tried.rank" is missing`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := &world{page: ringing, people: slices.Clone(team), now: start.Add(time.Second)}
			if tt.change != nil {
				tt.change(w)
			}
			s, err := New(w.config())
			if err != nil {
				t.Fatal(err)
			}
			handle := s.Next
			if tt.rec == nil {
				tt.rec, handle = opened(), s.Start
			}
			for range 2 { // delivered twice, the same happens twice
				w.sent, w.failed, w.problems = nil, nil, nil
				if err := handle(context.Background(), tt.rec); outcome(err) != tt.err {
					t.Errorf("outcome %q, want %q", outcome(err), tt.err)
				}
				if got := strings.Join(w.failed, ", "); got != tt.failed {
					t.Errorf("failed %q, want %q", got, tt.failed)
				}
				if got := withoutHashes(strings.Join(w.problems, ", ")); got != tt.problems {
					t.Errorf("problems %q, want %q", got, tt.problems)
				}
				if tt.body == "" {
					if len(w.sent) != 0 {
						t.Errorf("sent %s", w.sent[0].Body)
					}
					continue
				}
				if len(w.sent) != 1 {
					t.Fatalf("sent %d messages", len(w.sent))
				}
				m := w.sent[0]
				if m.Body != tt.body || m.Attributes["dedupeKey"].Value != tt.key || m.Delay != tt.delay {
					t.Errorf("sent %s, %s, %v\nwant %s, %s, %v", m.Body, m.Attributes["dedupeKey"].Value, m.Delay, tt.body, tt.key, tt.delay)
				}
				if !strings.Contains(tt.body, `"from":"`+m.Attributes["notBefore"].Value+`"`) || len(m.Attributes) != 2 {
					t.Errorf("attributes %v", m.Attributes)
				}
			}
		})
	}
}

// outcome returns the meaning of err for a flow.
var hashes = regexp.MustCompile(`\(key hash [0-9a-f]{16}\)`)

// withoutHashes has KEY for each hash of a key, which differs from run to run.
func withoutHashes(text string) string { return hashes.ReplaceAllString(text, "KEY") }

func outcome(err error) string {
	var skip *sluice.SkipError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &skip):
		return withoutHashes(err.Error())
	case sluice.IsPermanent(err):
		return "permanent: " + withoutHashes(err.Error())
	}
	return "retry: " + withoutHashes(err.Error())
}

func TestBodiesDoNotDependOnTheClock(t *testing.T) {
	w := &world{page: ringing, people: []string{person("ann", 1, 3600, true)}, now: start}
	s, err := New(w.config())
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := s.Start(context.Background(), opened()); err != nil {
			t.Fatal(err)
		}
		w.now = w.now.Add(50 * time.Minute)
	}
	for i, delay := range []time.Duration{15 * time.Minute, 10 * time.Minute, 0} {
		if m := w.sent[i]; m.Body != w.sent[0].Body || m.Delay != delay {
			t.Errorf("message %d: %s, delay %v, want %v", i, m.Body, m.Delay, delay)
		}
	}
}

// A ladder works without types and without an "enabled" attribute.
func TestPlainLadder(t *testing.T) {
	w := &world{page: ringing, people: []string{person("ann", 1, 0, false)}, now: start}
	c := w.config()
	c.Step.TypeAttribute, c.Step.Type, c.Step.Enabled = "", "", ""
	c.Admit = nil
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(context.Background(), opened()); err != nil || len(w.sent) != 1 {
		t.Errorf("%v; %d messages", err, len(w.sent))
	}
}

func TestNewNamesWhatIsWrong(t *testing.T) {
	_, err := New(Config{Step: StepAttributes{Type: "x"}, MaxDelay: -1, ExpireAfter: -time.Second})
	for _, want := range []string{
		"escalation: Escalation.ID is missing", "Escalation.Active is missing", "Step.WaitSeconds is missing", "Attempt.At is missing",
		"Get is missing", "Query is missing", "Fail is missing", "StepBody is missing", "ExpiryBody is missing", "Send is missing",
		"Step.TypeAttribute and Step.Type: want both or neither", "ExpireAfter is -1s", "MaxDelay is -1ns, want at least 1s",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want it to contain %q", err, want)
		}
	}
	c := (&world{}).config()
	c.MaxDelay = time.Second - 1
	if _, err := New(c); err == nil || !strings.Contains(err.Error(), "MaxDelay is 999.999999ms") {
		t.Errorf("messages without any delay: %v", err)
	}
	if _, err := New((&world{}).config()); err != nil {
		t.Error(err)
	}
}
