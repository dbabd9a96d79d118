package config

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/internal/tabletest"
)

// calls is a file of escalations in one table.
func calls() *Config {
	return &Config{
		Source: Source{Tables: []string{"calls"}},
		Sinks:  map[string]Sink{"tries": {SQS: &SQS{Queue: "tries"}}, "watches": {SQS: &SQS{Queue: "watches"}}, "alarms": {SQS: &SQS{Queue: "alarms"}}},
		Routes: []Route{
			{Name: "next", On: Strings{"attempt#MODIFY"}, Changed: Strings{"at"}, Escalate: &Escalate{Do: "next"}},
			{Name: "start", On: Strings{"call#INSERT"}, Escalate: &Escalate{
				Do: "start", Kind: "call", Queue: "tries", Watch: "watches", ExpireAfter: Duration(time.Minute),
				Ladder: &Ladder{
					Key: map[string]string{"PK": "{id}", "SK": "call"}, Steps: map[string]string{"PK": "contact-{ladder}"},
					Escalation: EscalationNames{ID: "PK", Ladder: "contact", Started: "started", Status: "status", Active: "open", Reason: "why"},
					Step:       StepNames{TypeAttribute: "entityType", Type: "step", ID: "SK", Order: "order", WaitSeconds: "wait"},
					Attempt:    AttemptNames{Key: map[string]string{"PK": "{id}", "SK": "a{number}@{round}"}, Escalation: "PK", Number: "number", Order: "order", StepID: "step", At: "at"},
				},
			}},
		},
	}
}

const (
	aCall   = `{"PK":"c-1","SK":"call","entityType":"call","contact":"ada","started":"2024-01-01T00:00:00Z","status":"open"}`
	aStep   = `{"PK":"contact-ada","SK":"phone","entityType":"step","order":1,"wait":0}`
	attempt = `{"PK":"c-1","SK":"a0@0","entityType":"attempt","number":0,"order":1,"step":"phone"}`
	made    = `{"PK":"c-1","SK":"a0@0","entityType":"attempt","number":0,"order":1,"step":"phone","at":"2024-01-01T00:00:05Z"}`
)

func newCalls(t *testing.T, items ...string) (*world, *App) {
	w := newWorld()
	w.tables = tabletest.NewWorld(time.Now())
	w.tables.Create("calls", "PK", "SK")
	put(t, w.tables, "calls", items...)
	return w, w.build(t, calls())
}

func TestEscalate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, app := newCalls(t, aStep, aCall, attempt, made)
		recs := w.tables.Records()
		for i, want := range map[int]string{
			1: `{"kind":"call.attempt","escalation":"c-1","ladder":"ada","step":"phone","order":1,"number":0,"notBefore":"2024-01-01T00:00:00Z","dedupeKey":"c-1#0"}`,
			3: `{"kind":"call.expire","escalation":"c-1","ladder":"ada","notBefore":"2024-01-01T00:01:05Z","dedupeKey":"c-1#expire"}`,
		} {
			w.sent = nil
			route := map[int]int{1: 1, 3: 0}[i]
			effects, err := app.Routes[route].Explain(t.Context(), &recs[i])
			if err != nil || len(effects) == 0 || effects[len(effects)-1].Detail != want || len(w.sent) != 0 {
				t.Errorf("%+v, %v", effects, err)
			}
			for range 2 { // a repeated record makes the same message
				if err := app.Router.Dispatch(t.Context(), &recs[i]); err != nil {
					t.Fatal(err)
				}
			}
			if tries := w.to("tries"); len(tries) != 2 || tries[0].Body != want || tries[1].Body != want {
				t.Errorf("%+v\nwant %s", tries, want)
			}
			if watches := w.to("watches"); len(watches) != map[int]int{1: 2, 3: 0}[i] {
				t.Errorf("%+v", watches)
			}
		}
	})
}

// A call that is deleted and put again begins a new round.
func TestEscalateAnIDAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the clock shows 2000
		w, app := newCalls(t, aStep, aCall, attempt, strings.Replace(made, "2024", "1999", 1))
		rec := w.tables.Records()[1]
		got := explained(t, app, "start", &rec)
		if !strings.HasPrefix(got, "begin a new round of escalation c-1, if it has not begun yet [") || !strings.Contains(got, "c-1#0@1") || len(w.sent) > 0 {
			t.Error(got)
		}
		for range 2 {
			w.sent = nil
			if err := app.Router.Dispatch(t.Context(), &rec); err != nil {
				t.Fatal(err)
			}
			if tries := w.to("tries"); len(tries) != 1 || !strings.Contains(tries[0].Body, `"number":0,"round":1,`) {
				t.Errorf("%+v", tries)
			}
		}
	})
}

// A ladder without steps ends its escalation, unless the escalation has ended already.
func TestEscalationFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, app := newCalls(t, aCall)
		rec := w.tables.Records()[0]
		want := "set status of escalation c-1 to failed (no_steps), if it is still open [dynamodb calls {\"PK\":\"c-1\",\"SK\":\"call\"}]"
		if got := explained(t, app, "start", &rec); !strings.HasSuffix(got, "; "+want) || !strings.HasPrefix(got, "send to queue watches in ") || strings.Contains(all(w.tables, "calls"), "failed") {
			t.Errorf("%s", got)
		}
		s := w.setup()
		race := &racing{w.tables, nil}
		s.Fakes.Tables = race
		app, err := build(t, calls(), s)
		if err != nil {
			t.Fatal(err)
		}
		// Somebody answers now, or takes an answer back.
		for _, now := range []string{strings.Replace(aCall, `"open"`, `"done"`, 1), strings.Replace(aCall, `"open"`, `"open","round":1`, 1)} {
			put(t, w.tables, "calls", aCall)
			race.before = func() { put(t, w.tables, "calls", now) }
			if err := app.Router.Dispatch(t.Context(), &rec); err != nil {
				t.Fatal(err)
			}
			if got := all(w.tables, "calls"); strings.Contains(got, "failed") {
				t.Error(got)
			}
		}
		put(t, w.tables, "calls", aCall)
		race.before = func() {}
		if err := app.Router.Dispatch(t.Context(), &rec); err != nil {
			t.Fatal(err)
		}
		if got := all(w.tables, "calls"); !strings.Contains(got, `"status":"failed","why":"no_steps"`) {
			t.Error(got)
		}
	})
}

// A record fails for good if the ladder's key for its id is another item: otherwise
// nobody would be called, without an error.
func TestEscalationElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, app := newCalls(t, aStep, strings.Replace(aCall, `"SK":"call"`, `"SK":"call#2"`, 1))
		other := w.tables.Records()[1]
		err := app.Router.Dispatch(t.Context(), &other)
		if !sluice.IsPermanent(err) || !strings.Contains(err.Error(), "differs from ladder.key") {
			t.Errorf("another key: %v", err)
		}
		if _, err := app.Routes[1].Explain(t.Context(), &other); err == nil {
			t.Error("explained as if there were nothing to do")
		}
		w, app = newCalls(t, aStep, aCall)
		elsewhere := w.tables.Records()[1]
		elsewhere.Table = "calls-2"
		if err := app.Router.Dispatch(t.Context(), &elsewhere); !sluice.IsPermanent(err) || !strings.Contains(err.Error(), "it is of table calls-2") {
			t.Errorf("another table: %v", err)
		}
		if len(w.sent) != 0 {
			t.Errorf("%+v", w.sent)
		}
	})
}

// A route with do: next takes the ladder of the start route. That ladder's table is the
// start route's, also if attempts are in another.
func TestNextTakesTheTableOfStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := newCalls(t, aStep, aCall)
		w.tables.Create("attempts", "PK", "SK")
		put(t, w.tables, "attempts", attempt, made)
		c := calls()
		c.Source.Tables = []string{"calls", "attempts"}
		c.EntityType.Tables = map[string]string{"calls": "call", "attempts": "attempt"}
		c.Routes[1].Escalate.Ladder.Step.TypeAttribute, c.Routes[1].Escalate.Ladder.Step.Type = "entityType", "step"
		app := w.build(t, c)
		recs := w.tables.Records()
		if err := app.Router.Dispatch(t.Context(), &recs[3]); err != nil || len(w.sent) != 1 {
			t.Errorf("%v, sent %+v", err, w.sent)
		}
	})
}

func TestEscalateSaysWhatIsWrong(t *testing.T) {
	for want, edit := range map[string]func(start, next *Escalate, c *Config){
		"routes[1].escalate.do: \"begin\" is not allowed; want start, next, resume or contact": func(s, n *Escalate, _ *Config) { s.Do = "begin"; n.Ladder = s.Ladder; n.Queue = "tries" },
		"routes[0].escalate.ladder: it is missing, and 2 routes of start": func(s, _ *Escalate, c *Config) {
			c.Routes = append(c.Routes, Route{Name: "more", On: Strings{"alert#INSERT"}, Escalate: s})
		},
		"routes[1].escalate.ladder.key: it is missing":                 func(s, _ *Escalate, _ *Config) { s.Ladder.Key = nil },
		"key has {id} nowhere":                                         func(s, _ *Escalate, _ *Config) { s.Ladder.Key = map[string]string{"PK": "x"} },
		"key has \"call-{id}\" for PK, the attribute of escalation.id": func(s, _ *Escalate, _ *Config) { s.Ladder.Key["PK"] = "call-{id}" },
		"key has \"\" for number, the attribute of escalation.id":      func(s, _ *Escalate, _ *Config) { s.Ladder.Escalation.ID = "number" },
		"escalation.failed and escalation.active are both \"open\"":    func(s, _ *Escalate, _ *Config) { s.Ladder.Escalation.Failed = "open" },
		"escalation.reason and escalation.status are both \"status\"":  func(s, _ *Escalate, _ *Config) { s.Ladder.Escalation.Reason = "status" },
		"steps has {ladder} nowhere":                                   func(s, _ *Escalate, _ *Config) { s.Ladder.Steps = map[string]string{"PK": "x"} },
		"attempt.key has {round} nowhere":                              func(s, _ *Escalate, _ *Config) { s.Ladder.Attempt.Key["SK"] = "a{number}" },
		"routes[1].escalate.ladder.attempt.key: it is missing":         func(s, _ *Escalate, _ *Config) { s.Ladder.Attempt.Key = nil },
		"routes[2].escalate.kind: \"call\" is the kind of another route of start": func(s, n *Escalate, c *Config) {
			n.Ladder, n.Queue, n.Watch = s.Ladder, s.Queue, s.Watch
			c.Routes = append(c.Routes, Route{Name: "more", On: Strings{"alert#INSERT"}, Escalate: s})
		},
		"escalation.round is \"a.b\", within a map":                                                       func(s, _ *Escalate, _ *Config) { s.Ladder.Escalation.Round = "a.b" },
		"steps has 2 attributes":                                                                          func(s, _ *Escalate, _ *Config) { s.Ladder.Steps["SK"] = "x" },
		"escalation.status is \"a.b\", within a map":                                                      func(s, _ *Escalate, _ *Config) { s.Ladder.Escalation.Status = "a.b" },
		"routes[1].escalate.ladder.step.id: it is missing":                                                func(s, _ *Escalate, _ *Config) { s.Ladder.Step.ID = "" },
		"routes[1].escalate.queue: the sink \"tries\" is a FIFO queue":                                    func(_, _ *Escalate, c *Config) { c.Sinks["tries"].SQS.Queue = "tries.fifo" },
		"routes[1].escalate.watch: tries is the queue of the steps, too":                                  func(s, _ *Escalate, _ *Config) { s.Watch = "tries" },
		"routes[0].escalate.watch: watches is the queue of the steps, too":                                func(_, n *Escalate, _ *Config) { n.Queue = "watches" },
		"routes[1].escalate.alarm: there is no sink \"no\"; want alarms":                                  func(s, _ *Escalate, _ *Config) { s.Alarm = "no" },
		"routes[1].escalate.watch: the sink \"watches\" is a FIFO queue":                                  func(_, _ *Escalate, c *Config) { c.Sinks["watches"].SQS.Queue = "watches.fifo" },
		"routes[1].escalate.watch: it is missing; only other routes than those of start may leave it out": func(s, _ *Escalate, _ *Config) { s.Watch = "" },
		"routes[0].escalate.queue: there is no sink \"no\"; want alarms":                                  func(_, n *Escalate, _ *Config) { n.Queue = "no" },
	} {
		c := calls()
		edit(c.Routes[1].Escalate, c.Routes[0].Escalate, c)
		fails(t, c, want)
	}
}

// racing does something before each write.
type racing struct {
	*tabletest.World
	before func()
}

func (r *racing) Write(ctx context.Context, op dynamo.Op) error {
	r.before()
	return r.World.Write(ctx, op)
}
