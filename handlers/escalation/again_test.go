package escalation

import (
	"context"
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

// remove deletes the page, as the application does.
func (w *rota) remove(t *testing.T) {
	t.Helper()
	w.outside = true
	defer func() { w.outside = false }()
	if err := w.Write(t.Context(), dynamo.Delete("pages", item.Of(item.String("id", "P1")))); err != nil {
		t.Fatal(err)
	}
}

// putAgain deletes the page after some minutes, and puts it again five minutes
// later.
func putAgain(minutes int, page string) func(*rota) {
	return func(w *rota) {
		w.events = append(w.events,
			event{time.Duration(minutes) * time.Minute, w.remove},
			event{time.Duration(minutes+5) * time.Minute, func(t *testing.T) {
				w.outside = true
				w.put(t, "pages", page)
				w.outside = false
			}})
	}
}

// history is a rota that keeps the INSERTs and the REMOVEs of the page.
func history(t *testing.T, change func(*rota, *[]sluice.Record)) *rota {
	var kept []sluice.Record
	w := newRounds(t)
	change(w, &kept)
	h := w.handleWith(t, w.config())
	handle := func(ctx context.Context, rec *sluice.Record) error {
		if w.hold != nil && w.hold(rec) {
			w.held(rec)
			return nil
		}
		if rec.Table == "pages" && rec.EventName != sluice.Modify && rec.EventName != sluice.Snapshot {
			kept = append(kept, *rec.Clone())
		}
		return h(ctx, rec)
	}
	for _, e := range append(w.events, event{6 * time.Hour, func(*testing.T) {}}) {
		if err := w.Run(t.Context(), handle, start.Add(e.at)); err != nil || len(w.Parked) > 0 {
			t.Fatal(err, w.Parked)
		}
		e.do(t)
	}
	return w
}

// An escalation with a used id calls from the first step, whatever the deleted one left
// behind. A repeated record begins no round.
func TestIDUsedAgain(t *testing.T) {
	const (
		first = "10:00:00 P1#0 ann, 10:01:00 P1#1 bob"
		whole = first + ", 10:21:00 P1#2 cat"
	)
	at := func(minutes int, do func(w *rota, kept []sluice.Record)) func(*rota, *[]sluice.Record) {
		return func(w *rota, kept *[]sluice.Record) {
			w.events = append(w.events, event{time.Duration(minutes) * time.Minute, func(*testing.T) { do(w, *kept) }})
		}
	}
	again := func(minutes int, page string) func(*rota, *[]sluice.Record) {
		return func(w *rota, _ *[]sluice.Record) { putAgain(minutes, page)(w) }
	}
	replay := func(minutes, n int) func(*rota, *[]sluice.Record) {
		return at(minutes, func(w *rota, kept []sluice.Record) { w.Replay(kept[n]) })
	}
	edit := func(minutes int, page string) func(*rota, *[]sluice.Record) {
		return at(minutes, func(w *rota, _ []sluice.Record) { w.put(t, "pages", page) })
	}
	opened := func(at string) string { return strings.Replace(ringing, "10:00:00", at, 1) }
	with := func(page string, attributes string) string {
		return strings.TrimSuffix(page, "}") + "," + attributes + "}"
	}

	for _, tt := range []struct {
		name  string
		do    []func(*rota, *[]sluice.Record)
		calls string
	}{
		{"after the end", []func(*rota, *[]sluice.Record){again(60, opened("11:05:00"))},
			whole + ", 11:05:00 P1#0@1 ann, 11:06:00 P1#1@1 bob, 11:26:00 P1#2@1 cat"},
		{"with the same start", []func(*rota, *[]sluice.Record){again(60, ringing)},
			whole + ", 11:05:00 P1#0@1 ann, 11:06:00 P1#1@1 bob, 11:26:00 P1#2@1 cat"},
		{"while the ladder runs", []func(*rota, *[]sluice.Record){again(10, opened("10:15:00"))},
			first + ", 10:15:00 P1#0@1 ann, 10:16:00 P1#1@1 bob, 10:36:00 P1#2@1 cat"},
		{"while the ladder runs, with the same start", []func(*rota, *[]sluice.Record){again(10, ringing)},
			first + ", 10:15:00 P1#0@1 ann, 10:16:00 P1#1@1 bob, 10:36:00 P1#2@1 cat"},
		{"twice", []func(*rota, *[]sluice.Record){again(10, opened("10:15:00")), again(20, opened("10:25:00"))},
			first + ", 10:15:00 P1#0@1 ann, 10:16:00 P1#1@1 bob, 10:25:00 P1#0@2 ann, 10:26:00 P1#1@2 bob, 10:46:00 P1#2@2 cat"},
		{"as a copy", []func(*rota, *[]sluice.Record){func(w *rota, _ *[]sluice.Record) {
			copied := ""
			w.events = []event{{5 * time.Minute, func(*testing.T) { copied = string(w.Items("pages")[0].Raw()) }}}
			putAgain(10, "")(w)
			w.events[len(w.events)-1].do = func(t *testing.T) { w.put(t, "pages", copied) }
		}, replay(40, 2), replay(41, 0)},
			first + ", 10:15:00 P1#0@1 ann, 10:16:00 P1#1@1 bob, 10:36:00 P1#2@1 cat"},
		{"with a round of its own", []func(*rota, *[]sluice.Record){again(10, with(opened("10:15:00"), `"round":{"N":"7"}`))},
			first + ", 10:15:00 P1#0@7 ann, 10:16:00 P1#1@7 bob, 10:36:00 P1#2@7 cat"},

		{"the INSERT again, after each step", []func(*rota, *[]sluice.Record){replay(1, 0), replay(2, 0), replay(22, 0)}, whole},
		{"the INSERT again, after the end", []func(*rota, *[]sluice.Record){replay(90, 0)}, whole},
		{"both INSERTs and the REMOVE again", []func(*rota, *[]sluice.Record){again(10, opened("10:15:00")), replay(17, 0), replay(18, 1), replay(19, 2), replay(50, 2)},
			first + ", 10:15:00 P1#0@1 ann, 10:16:00 P1#1@1 bob, 10:36:00 P1#2@1 cat"},
		{"the INSERT of a deleted item again", []func(*rota, *[]sluice.Record){func(w *rota, _ *[]sluice.Record) {
			w.events = []event{{10 * time.Minute, w.remove}}
		}, replay(20, 0)}, first},
		{"put whole, then the INSERT again", []func(*rota, *[]sluice.Record){edit(5, with(ringing, `"note":{"S":"x"}`)), replay(10, 0)}, whole},
		{"taken back by a put of the whole item, then the INSERT again", []func(*rota, *[]sluice.Record){
			edit(5, strings.Replace(ringing, "ringing", "answered", 1)), edit(10, ringing), replay(12, 0)},
			first + ", 10:10:00 P1#0@1 ann, 10:11:00 P1#1@1 bob, 10:31:00 P1#2@1 cat"},
		{"a backfill", []func(*rota, *[]sluice.Record){at(5, func(w *rota, kept []sluice.Record) {
			rec := *kept[0].Clone()
			rec.EventName, rec.Origin, rec.New, rec.Created = sluice.Snapshot, sluice.Backfilled, w.Items("pages")[0], w.Now()
			w.Replay(rec)
		})}, whole},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := history(t, func(w *rota, kept *[]sluice.Record) {
					for _, do := range tt.do {
						do(w, kept)
					}
				})
				if got := strings.Join(w.calls, ", "); got != tt.calls || len(w.alarms) > 0 {
					t.Errorf("calls %s\nwant  %s\nalarms %+v", got, tt.calls, w.alarms)
				}
			})
		})
	}
}

// Changes between the read of an escalation and the write of its round. The record
// comes again, and reads the new state.
func TestIDUsedAgainRaces(t *testing.T) {
	for _, tt := range []struct {
		name   string
		before func(t *testing.T, w *rota) // the write
		sent   string                      // by the second try
		err    string
	}{
		{"another delivery begins it, and a step is made", func(t *testing.T, w *rota) {
			w.put(t, "pages", strings.TrimSuffix(ringing, "}")+`,"round":{"N":"1"}}`)
			w.put(t, "rings", `{"page":{"S":"P1"},"key":{"S":"P1#0@1"},"n":{"N":"0"},"round":{"N":"1"},"at":{"S":"2024-05-01T10:00:00Z"}}`)
		}, "P1#0@1", ""},
		{"it is answered", func(t *testing.T, w *rota) { w.put(t, "pages", strings.Replace(ringing, "ringing", "answered", 1)) }, "", "skipped: escalation not active"},
		{"it is deleted", func(t *testing.T, w *rota) { w.remove(t) }, "", "skipped: escalation not found"},
		{"the application begins another round", func(t *testing.T, w *rota) {
			w.put(t, "pages", strings.TrimSuffix(ringing, "}")+`,"round":{"N":"4"}}`)
			w.put(t, "rings", `{"page":{"S":"P1"},"key":{"S":"P1#0@4"},"n":{"N":"0"},"round":{"N":"4"},"at":{"S":"2024-05-01T10:00:00Z"}}`)
		}, "P1#0@4", ""},
		{"nothing", nil, "P1#0@1", ""}, // and without a route of resume
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newRounds(t)
				w.put(t, "rings", `{"page":{"S":"P1"},"key":{"S":"P1#0"},"n":{"N":"0"},"at":{"S":"2024-04-01T10:00:00Z"}}`)
				c := w.config().Config
				write, first := c.Write, true
				c.Write = func(ctx context.Context, op dynamo.Op) error {
					if first && tt.before != nil {
						first = false
						tt.before(t, w)
					}
					return write(ctx, op)
				}
				e, err := New(c)
				if err != nil {
					t.Fatal(err)
				}
				rec := opened()
				rec.Created = start
				if tt.before != nil {
					if err := e.Start(t.Context(), rec); outcome(err) != "retry: escalation KEY has changed just now" || len(w.Sent) > 0 {
						t.Fatalf("%v, sent %+v", err, w.Sent)
					}
				}
				if err := e.Start(t.Context(), rec); outcome(err) != tt.err {
					t.Errorf("%v, want %s", err, tt.err)
				}
				var sent []string
				for _, m := range w.sent() {
					sent = append(sent, m.Attributes["dedupeKey"].Value)
				}
				if got := strings.Join(sent, " "); got != tt.sent {
					t.Errorf("sent %s, want %s", got, tt.sent)
				}
			})
		})
	}
}

// Whose an attempt is, by the time between it and the INSERT.
func TestAttemptBeforeTheInsert(t *testing.T) {
	for _, tt := range []struct {
		name  string
		round string // of the page now
		view  string // new image of the INSERT
		after time.Duration
		want  string // key of what is sent
	}{
		{"the attempt is later", "0", ringing, -time.Second, "P1#0"},
		{"clocks differ", "0", ringing, 1900 * time.Millisecond, "P1#0"},
		{"the attempt was there before", "0", ringing, 3 * time.Second, "P1#0@1"},
		{"a stream without images", "0", "", 3 * time.Second, "P1#0@1"},
		{"the INSERT has begun its round, and clocks differ by much", "1", ringing, time.Minute, "P1#0@1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newRounds(t)
				key := "P1#0"
				if tt.round != "0" {
					key += "@" + tt.round
					w.put(t, "pages", strings.TrimSuffix(ringing, "}")+`,"round":{"N":"`+tt.round+`"}}`)
				}
				w.put(t, "rings", fmt.Sprintf(`{"page":{"S":"P1"},"key":{"S":%q},"n":{"N":"0"},"round":{"N":%q},"at":{"S":"2024-05-01T10:00:00Z"}}`, key, tt.round))
				e, err := New(w.config().Config)
				if err != nil {
					t.Fatal(err)
				}
				rec := recordtest.New(recordtest.Spec{Event: sluice.Insert, Keys: `{"id":{"S":"P1"}}`, New: tt.view})
				rec.Created = start.Add(tt.after)
				for range 2 {
					w.Sent = nil
					if err := e.Start(t.Context(), &rec); err != nil || len(w.sent()) != 1 || w.sent()[0].Attributes["dedupeKey"].Value != tt.want {
						t.Errorf("%v, sent %+v", err, w.sent())
					}
				}
			})
		})
	}
}
