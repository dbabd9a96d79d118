package escalation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/item"
)

// named adds the optional attributes.
func named(c *ConsumerConfig) {
	c.Config.Escalation.SnoozedUntil, c.Config.Escalation.ResumeAt, c.Config.Escalation.Repeat = "snoozedUntil", "resumeAt", "repeat"
}

// sets is an attribute of the page that the application sets after some minutes.
func sets(minutes int, name string, value any) func(*rota) event {
	return func(w *rota) event {
		return event{time.Duration(minutes) * time.Minute, func(t *testing.T) { w.set(t, name, value) }}
	}
}

// Changes of an escalation by the application, and the resulting calls. Ann is called
// at once, bob after a minute, cat after 20 more, and the end is two minutes later.
func TestRounds(t *testing.T) {
	for _, tt := range []struct {
		name   string
		edit   func(*ConsumerConfig)
		events []func(*rota) event
		calls  string
	}{
		{"nothing", nil, nil, "10:00:00 P1#0 ann, 10:01:00 P1#1 bob, 10:21:00 P1#2 cat"},
		{"acknowledged", nil, []func(*rota) event{sets(10, "state", "answered")}, "10:00:00 P1#0 ann, 10:01:00 P1#1 bob"},
		{"acknowledged and taken back", nil, []func(*rota) event{sets(10, "state", "answered"), sets(12, "state", "ringing")},
			"10:00:00 P1#0 ann, 10:01:00 P1#1 bob, 10:12:00 P1#0@1 ann, 10:13:00 P1#1@1 bob, 10:33:00 P1#2@1 cat"},
		{"re-opened after its end", nil, []func(*rota) event{sets(60, "state", "ringing"), sets(62, "state", "answered"), sets(90, "state", "ringing")},
			"10:00:00 P1#0 ann, 10:01:00 P1#1 bob, 10:21:00 P1#2 cat, 11:00:00 P1#0@1 ann, 11:01:00 P1#1@1 bob, " +
				"11:30:00 P1#0@2 ann, 11:31:00 P1#1@2 bob, 11:51:00 P1#2@2 cat"},
		{"begun again while it is active", nil, []func(*rota) event{sets(10, "round", 1)},
			"10:00:00 P1#0 ann, 10:01:00 P1#1 bob, 10:10:00 P1#0@1 ann, 10:11:00 P1#1@1 bob, 10:31:00 P1#2@1 cat"},
		{"taken back, to go on at the second step", nil, []func(*rota) event{sets(10, "state", "answered"), sets(11, "resumeAt", 2), sets(12, "state", "ringing")},
			"10:00:00 P1#0 ann, 10:01:00 P1#1 bob, 10:13:00 P1#0@1 bob, 10:33:00 P1#1@1 cat"},
		{"to go on behind the last step", nil, []func(*rota) event{sets(10, "state", "answered"), sets(11, "resumeAt", 9), sets(12, "state", "ringing")},
			"10:00:00 P1#0 ann, 10:01:00 P1#1 bob, 10:12:00 P1#0@1 ann, 10:13:00 P1#1@1 bob, 10:33:00 P1#2@1 cat"},
		{"snoozed", nil, []func(*rota) event{sets(10, "snoozedUntil", "2024-05-01T11:00:00Z")},
			"10:00:00 P1#0 ann, 10:01:00 P1#1 bob, 11:00:00 P1#2 cat"},
		{"snoozed for longer, twice", nil, []func(*rota) event{sets(10, "snoozedUntil", "2024-05-01T10:30:00Z"), sets(20, "snoozedUntil", "2024-05-01T11:00:00Z")},
			"10:00:00 P1#0 ann, 10:01:00 P1#1 bob, 11:00:00 P1#2 cat"},
		{"a snooze taken back", nil, []func(*rota) event{sets(10, "snoozedUntil", "2024-05-01T11:30:00Z"), sets(41, "snoozedUntil", "")},
			"10:00:00 P1#0 ann, 10:01:00 P1#1 bob, 10:41:00 P1#2 cat"},
		{"snoozed when the end is due", nil, []func(*rota) event{sets(22, "snoozedUntil", "2024-05-01T11:00:00Z"), sets(50, "state", "answered")},
			"10:00:00 P1#0 ann, 10:01:00 P1#1 bob, 10:21:00 P1#2 cat"},
		{"the ladder twice", func(c *ConsumerConfig) { c.Config.Repeat = 1 }, nil,
			"10:00:00 P1#0 ann, 10:01:00 P1#1 bob, 10:21:00 P1#2 cat, 10:23:00 P1#3 ann, 10:24:00 P1#4 bob, 10:44:00 P1#5 cat"},
		{"its own repeat goes before", func(c *ConsumerConfig) { c.Config.Repeat = 7 }, []func(*rota) event{sets(5, "repeat", 0)},
			"10:00:00 P1#0 ann, 10:01:00 P1#1 bob, 10:21:00 P1#2 cat"},
		{"resumed, and repeated from the first step", func(c *ConsumerConfig) { c.Config.Repeat = 1 },
			[]func(*rota) event{sets(10, "state", "answered"), sets(11, "resumeAt", 3), sets(12, "state", "ringing")},
			"10:00:00 P1#0 ann, 10:01:00 P1#1 bob, 10:32:00 P1#0@1 cat, 10:34:00 P1#1@1 ann, 10:35:00 P1#2@1 bob, 10:55:00 P1#3@1 cat"},
		{"bad optional attributes", nil, []func(*rota) event{sets(2, "snoozedUntil", "tomorrow"), sets(3, "repeat", -1), sets(4, "resumeAt", "x")},
			"10:00:00 P1#0 ann, 10:01:00 P1#1 bob, 10:21:00 P1#2 cat"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, _ := climb(t, -1, func(w *rota) {
					for _, e := range tt.events {
						w.events = append(w.events, e(w))
					}
					w.edit = func(c *ConsumerConfig) {
						named(c)
						if tt.edit != nil {
							tt.edit(c)
						}
					}
				})
				if got := strings.Join(w.calls, ", "); got != tt.calls {
					t.Errorf("calls %s\nwant  %s", got, tt.calls)
				}
				if state := w.state(); state != "no_response" && state != "answered" {
					t.Errorf("in the end %s", state)
				}
			})
		})
	}
}

// changed is the record of a page that was changed.
func changed(old, new string) *sluice.Record {
	rec := recordtest.New(recordtest.Spec{Event: sluice.Modify, Keys: `{"id":{"S":"P1"}}`, Old: old, New: new})
	rec.Created = start
	return &rec
}

func TestResume(t *testing.T) {
	answered := strings.Replace(ringing, "ringing", "answered", 1)
	withRound := func(it, n string) string { return strings.TrimSuffix(it, "}") + `,"round":{"N":"` + n + `"}}` }
	down := errors.New("throttled")
	for _, tt := range []struct {
		name  string
		rec   *sluice.Record
		page  string // as it is now
		rings []int  // rounds of attempts that are there
		fault error  // of the write
		after string // what the page has then
		sent  int
		err   string
	}{
		{name: "taken back", rec: changed(answered, ringing), page: ringing, after: `"round":{"N":"1"},"roundStarted":{"S":"2024-05-01T10:00:00Z"}`},
		{name: "taken back once more", rec: changed(withRound(answered, "3"), withRound(ringing, "3")), page: withRound(ringing, "3"), after: `"round":{"N":"4"}`},
		{name: "handled before", rec: changed(answered, ringing), page: withRound(ringing, "1"), after: `"round":{"N":"1"}`, err: "skipped: escalation has changed since"},
		{name: "acknowledged again", rec: changed(answered, ringing), page: answered, err: "skipped: escalation has changed since"},
		{name: "a round begins", rec: changed(ringing, withRound(ringing, "1")), page: withRound(ringing, "1"), sent: 1},
		{name: "an older round", rec: changed(ringing, withRound(ringing, "1")), page: withRound(ringing, "2"), err: "skipped: another round has begun"},
		{name: "not active", rec: changed(ringing, answered), page: answered, err: "skipped: escalation not active"},
		{name: "another change", rec: changed(ringing, strings.Replace(ringing, "T1", "T2", 1)), page: ringing, err: "skipped: nothing to resume"},
		{name: "gone", rec: changed(ringing, withRound(ringing, "1")), err: "skipped: escalation not found"},
		{name: "one image", rec: changed("", ringing), page: ringing, err: "permanent: record of a change: want the old and the new image: set StreamViewType to NEW_AND_OLD_IMAGES"},
		{name: "bad round", rec: changed(ringing, withRound(ringing, "1.5")), page: ringing, err: `permanent: record of a change: attribute "round" is a number, but no whole one of 64 bits`},
		{name: "negative round", rec: changed(ringing, withRound(ringing, "-1")), page: ringing, err: `permanent: record of a change: attribute "round" is -1, want 0 or more`},
		{name: "put whole, without its round", rec: changed(withRound(ringing, "2"), ringing), page: ringing, after: `"round":{"N":"3"}`},
		{name: "acknowledged so", rec: changed(answered, ringing), page: ringing, rings: []int{1, 2}, after: `"round":{"N":"3"}`},
		{name: "keys without rounds", rec: changed(answered, ringing), page: ringing, rings: []int{0},
			err: "permanent: attempt KEY is not of its round: want the round in the key of an attempt"},
		{name: "write fails", rec: changed(answered, ringing), page: ringing, fault: down, err: "retry: beginning a new round of escalation KEY: throttled"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newRounds(t)
				if err := w.Write(t.Context(), dynamo.Delete("pages", item.Of(item.String("id", "P1")))); err != nil {
					t.Fatal(err)
				}
				if tt.page != "" {
					w.put(t, "pages", tt.page)
				}
				for _, n := range tt.rings {
					key := tryKey("P1", int64(max(n, 1)), 0)
					w.put(t, "rings", fmt.Sprintf(`{"page":{"S":"P1"},"key":{"S":%q},"n":{"N":"0"},"round":{"N":"%d"}}`, key, n))
				}
				w.Fault = func(bool, []dynamo.Op) error { return tt.fault }
				e, err := New(w.config().Config)
				if err != nil {
					t.Fatal(err)
				}
				if err := e.Resume(t.Context(), tt.rec); outcome(err) != tt.err {
					t.Errorf("%s, want %s", outcome(err), tt.err)
				}
				var page string
				for _, it := range w.Items("pages") {
					page += string(it.Raw())
				}
				if !strings.Contains(page, tt.after) || len(w.sent()) != tt.sent {
					t.Errorf("page %s, want %s; %d sent", page, tt.after, len(w.sent()))
				}
			})
		})
	}
}

// Two rounds with one key would have the second find the attempts of the first,
// and call nobody.
func TestKeyWithoutRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newRota(t)
		w.put(t, "rings", fmt.Sprintf(made, "contacted"))
		w.set(t, "round", 1)
		err := w.consumer(t).Try(t.Context(), ring(`"n":0`, `"n":0,"round":1`))
		if !sluice.IsPermanent(err) || !strings.Contains(withoutHashes(err.Error()), "step KEY: NewAttempt gives it the key of an attempt of another round") || len(w.calls) > 0 {
			t.Error(err)
		}
		c := w.config()
		c.Config.Attempt.Round = "tried.round"
		s, err := NewConsumer(c)
		if err != nil {
			t.Fatal(err)
		}
		err = s.Try(t.Context(), ring(`"n":0`, `"n":0,"round":1`))
		if !sluice.IsPermanent(err) || !strings.Contains(err.Error(), `whose attribute "tried.round" is not 1`) {
			t.Error(err)
		}
	})
}

// Messages of a round that is over, or has not begun, call nobody.
func TestMessagesOfAnotherRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newRounds(t)
		w.set(t, "round", 1)
		c := w.consumer(t)
		for _, round := range []string{`"n":0`, `"n":0,"round":2`} {
			for _, handle := range []sluice.Handler{c.Try, c.Expire} {
				if err := handle(t.Context(), ring(`"n":0`, round)); outcome(err) != "skipped: message of another round" || len(w.calls) > 0 {
					t.Errorf("%s: %v", round, err)
				}
			}
		}
		if w.rings() != "" || w.state() != "ringing" {
			t.Errorf("%s, %s", w.rings(), w.state())
		}
	})
}

// A snooze that is set between the claim and the call stops the call.
func TestSnoozedAfterTheClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newRounds(t)
		w.edit = func(c *ConsumerConfig) {
			named(c)
			write := c.Config.Write
			c.Config.Write = func(ctx context.Context, op dynamo.Op) error {
				if op.Kind == dynamo.PutOp {
					w.set(t, "snoozedUntil", "2024-05-01T10:30:00Z")
				}
				return write(ctx, op)
			}
		}
		if err := w.consumer(t).Try(t.Context(), ring()); outcome(err) != "skipped: escalation snoozed" || len(w.calls) > 0 || w.rings() != "" {
			t.Errorf("%v, calls %q, attempt %s", err, w.calls, w.rings())
		}
		if len(w.sent()) != 1 || w.sent()[0].Delay != 15*time.Minute || w.sent()[0].Body != func() string { m, _ := ring().Message(); return m.Body }() {
			t.Errorf("sent %+v", w.sent())
		}
	})
}
