package config

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/handlers/escalation"
	"github.com/sluicehq/sluice/internal/keyhash"
	"github.com/sluicehq/sluice/internal/tabletest"
	"github.com/sluicehq/sluice/internal/tally"
)

// Sluice adds the route of the watchdog, and consumes its queue without a setting. It
// sends a lost step again. An alarm is a message.
func TestWatchdog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := newCalls(t, aStep, strings.Replace(aCall, "2024", "1999", 1)) // the clock shows 2000
		c := calls()
		c.Routes[1].Escalate.Alarm = "alarms"
		var counts tally.Tally
		s := w.setup()
		s.Metrics = &counts
		app, err := build(t, c, s)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Join(app.Queues, " ") != "watches" || app.Routes[2].Name != "call.watch" || app.Routes[2].Kind != "escalate" {
			t.Fatalf("queues %q, routes %+v", app.Queues, app.Routes)
		}
		call := w.tables.Records()[1]
		if err := app.Router.Dispatch(t.Context(), &call); err != nil || len(w.to("watches")) != 1 || len(w.to("tries")) != 1 {
			t.Fatalf("%v, %+v", err, w.sent)
		}
		lost := w.to("tries")[0].Body
		w.sent = nil
		m := sluice.Message{ID: "w", Body: `{"kind":"call.watch","escalation":"c-1","round":0,"number":0,"notBefore":"1999-01-01T00:15:00Z","dedupeKey":"c-1#watch"}`}
		rec := m.Record("arn:aws:sqs:us-east-1:123456789012:watches")
		if got := explained(t, app, "call.watch", rec); got != "look whether escalation c-1 stands still, and look again later [watches watches c-1]" {
			t.Error(got)
		}
		if err := app.Router.Dispatch(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
		want := `{"kind":"call.alarm","escalation":"c-1","round":0,"number":0,"due":"1999-01-01T00:00:00Z","why":"its message, or the record of the attempt before it, is lost or late","dedupeKey":"call/c-1#alarm-0"}`
		if tries, alarms := w.to("tries"), w.to("alarms"); len(tries) != 1 || tries[0].Body != lost || len(alarms) != 1 || alarms[0].Body != want || counts.By("sluice_escalation_alarms_total")["call"] != 1 {
			t.Errorf("%+v", w.sent)
		}
		if watches := w.to("watches"); len(watches) != 1 || watches[0].Delay != 15*time.Minute || !strings.Contains(watches[0].Body, `"notBefore":"2000-01-01T00:30:00Z"`) {
			t.Errorf("%+v", watches)
		}
	})
}

// An alarm says when the step was due, if known, and whether the escalation has ended.
func TestAlarmInTheLog(t *testing.T) {
	hash := keyhash.Text("c-1") // the process has its own secret
	for want, a := range map[string]escalation.Alarm{
		`level=ERROR msg="an escalation stands still" kind=call escalation="(key hash)" round=0 number=1 due=2024-01-01T00:00:00.000Z why="its message, or the record of the attempt before it, is lost or late"`: {
			Escalation: "c-1", Number: 1, Due: time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC),
		},
		`level=ERROR msg="an escalation stands still" kind=call escalation="(key hash)" round=0 number=0 why="no start"`:                    {Escalation: "c-1", Err: errors.New("no start")},
		`level=ERROR msg="an escalation has ended, and nobody was called" kind=call escalation="(key hash)" round=2 number=0 why="no step"`: {Escalation: "c-1", Round: 2, Ended: true, Err: errors.New("no step")},
	} {
		w := newWorld()
		w.tables = tabletest.NewWorld(time.Now())
		var log strings.Builder
		s := w.setup()
		s.Logger = slog.New(slog.NewTextHandler(&log, nil))
		b, err := newBuilder(calls(), s)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.raise("call", nil)(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		if _, line, _ := strings.Cut(strings.TrimSpace(log.String()), " "); line != strings.Replace(want, "(key hash)", hash, 1) {
			t.Errorf("%s\nwant %s", line, want)
		}
	}
}

// A file begins a new round, and continues one.
func TestEscalateResumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := newCalls(t, aStep, aCall, strings.Replace(aCall, `"open"`, `"done"`, 1), aCall)
		c := calls()
		c.Routes = append(c.Routes, Route{Name: "again", On: Strings{"call#MODIFY"}, Escalate: &Escalate{Do: "resume"}})
		app := w.build(t, c)
		recs := w.tables.Records()
		if got := explained(t, app, "again", &recs[3]); !strings.HasPrefix(got, "begin a new round of escalation c-1, if it has not begun yet [dynamodb calls ") {
			t.Error(got)
		}
		for i := range recs[2:] {
			if err := app.Router.Dispatch(t.Context(), &recs[2+i]); err != nil && !sluice.IsSkip(err) {
				t.Fatal(err)
			}
		}
		begun := w.tables.Records()
		if len(begun) != 1 || len(w.sent) != 0 || !strings.Contains(all(w.tables, "calls"), `"round":1`) {
			t.Fatalf("%s; sent %+v", all(w.tables, "calls"), w.sent)
		}
		if err := app.Router.Dispatch(t.Context(), &begun[0]); err != nil {
			t.Fatal(err)
		}
		if tries := w.to("tries"); len(tries) != 1 || !strings.Contains(tries[0].Body, `"number":0,"round":1,`) || !strings.Contains(tries[0].Body, `"dedupeKey":"c-1#0@1"`) {
			t.Errorf("%+v", tries)
		}
	})
}
