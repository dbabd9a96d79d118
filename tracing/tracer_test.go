package tracing

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/flow"
)

// The spans of a page: each below the right one, the commit with a link to each record.
func TestSpansOfAPage(t *testing.T) {
	w := newTracedRoutes(t, "always_on")
	b := sink(func(string) error { return nil })
	w.route("send", func(ctx context.Context, rec *sluice.Record) error {
		trace.SpanFromContext(ctx).AddEvent("from the handler")
		return b.Do(ctx, rec.EventID)
	})
	w.route("skip", func(context.Context, *sluice.Record) error { return sluice.Skip("not today") })
	by := w.run(change("a", ""), change("b", ""), change("c", ""))
	w.want(by, "commit bin 1, process orders 3, receive orders 1, route send 3, route skip 3")
	w.child(by["process orders"], by["receive orders"])
	w.child(by["route send"], by["process orders"])
	w.child(by["route skip"], by["process orders"])
	w.child(by["commit bin"], by["route send"])
	links := map[trace.SpanID]bool{}
	for _, l := range by["commit bin"][0].Links {
		links[l.SpanContext.SpanID()] = true
	}
	for _, s := range by["process orders"] {
		if !links[s.SpanContext.SpanID()] {
			t.Errorf("the commit has no link to the record %s", attr(s, "messaging.message.id"))
		}
		if s.Status.Code != codes.Unset || attr(s, "sluice.settled") != "true" || attr(s, "sluice.shard") != "shard-1" || attr(s, "aws.dynamodb.table_names") != `["orders"]` {
			t.Errorf("status %v, attributes %v", s.Status, s.Attributes)
		}
	}
	for _, s := range by["route send"] {
		if len(s.Events) != 1 || attr(s, "sluice.attempt") != "1" || attr(s, "sluice.outcome") != "done" {
			t.Errorf("events %v, attributes %v", s.Events, s.Attributes)
		}
	}
	if s := by["receive orders"][0]; s.Parent.IsValid() || attr(s, "messaging.batch.message_count") != "3" {
		t.Errorf("parent %v, attributes %v", s.Parent, s.Attributes)
	}
	for name, spans := range by {
		for _, s := range spans {
			for _, kv := range s.Attributes {
				if strings.Contains(kv.Value.String(), `"S"`) {
					t.Errorf("span %q has data of an item: %v", name, kv)
				}
			}
		}
	}
}

// Without sampling only what fails is kept, with what happened before the failure, and
// with each retry.
func TestFailuresAreKept(t *testing.T) {
	w := newTracedRoutes(t, "always_off")
	dead := &letters{refuse: 1}
	w.o.DeadLetter = dead
	var mu sync.Mutex
	calls := map[string]int{}
	nth := func(rec *sluice.Record) int {
		mu.Lock()
		defer mu.Unlock()
		calls[rec.EventID]++
		return calls[rec.EventID]
	}
	w.route("first", func(context.Context, *sluice.Record) error { return nil })
	w.route("second", func(_ context.Context, rec *sluice.Record) error {
		switch n := nth(rec); {
		case rec.EventID == "event-retried" && n <= 2:
			return errors.New("not yet")
		case rec.EventID == "event-parked":
			return sluice.Permanent(errors.New("never"))
		}
		return nil
	})
	by := w.run(change("good", ""), change("retried", ""), change("fine", ""), change("parked", ""))
	// The dead letters refuse once: two spans.
	w.want(by, "park second 2, process orders 2, receive orders 1, route first 2, route second 4")
	w.child(by["process orders"], by["receive orders"])
	w.child(by["route first"], by["process orders"])
	w.child(by["route second"], by["process orders"])
	w.child(by["park second"], by["process orders"])
	outcomes := map[string]int{}
	for _, s := range by["route second"] {
		outcomes[attr(s, "sluice.outcome")+attr(s, "sluice.attempt")]++
		if failed := attr(s, "sluice.outcome") != "done"; failed != (s.Status.Code == codes.Error) || failed != (attr(s, "error.type") != "") {
			t.Errorf("status %v, attributes %v", s.Status, s.Attributes)
		}
	}
	for _, want := range []string{"retried1", "retried2", "done3", "parked1"} {
		if outcomes[want] != 1 {
			t.Errorf("outcomes and attempts %v, want one %s", outcomes, want)
		}
	}
	refused, parked := by["park second"][0], by["park second"][1]
	if refused.Status.Code != codes.Error || parked.Status.Code != codes.Unset {
		t.Errorf("refused %v, parked %v", refused.Status, parked.Status)
	}
	if id := attr(parked, "sluice.dead_letter"); len(dead.parked) != 1 || id != dead.parked[0] {
		t.Errorf("letter %q, want %q", id, dead.parked)
	}
	for _, s := range by["process orders"] {
		if s.Status.Code != codes.Error {
			t.Errorf("record %s: status %v", attr(s, "messaging.message.id"), s.Status)
		}
	}
}

// A record that cannot be matched fails without a call.
func TestARecordWithoutACall(t *testing.T) {
	w := newTracedRoutes(t, "always_off")
	w.o.DeadLetter = &letters{}
	w.route("r", func(context.Context, *sluice.Record) error { return nil })
	by := w.run(change("good", ""), change("bad", `{"lost":{"S":"yes"}}`))
	w.want(by, "park 1, process orders 1, receive orders 1")
	if s := by["process orders"][0]; s.Status.Description != "no match" {
		t.Errorf("status %v", s.Status)
	}
}

// A commit that fails is kept below a call that fails, and so are the records whose
// items it refused.
func TestAFailingCommitIsKept(t *testing.T) {
	w := newTracedRoutes(t, "always_off")
	w.o.Policy, w.o.DeadLetter = flow.Park, &letters{}
	b := sink(func(id string) error {
		if id == "event-bad" {
			return sluice.Permanent(errors.New("refused"))
		}
		return nil
	})
	w.route("send", func(ctx context.Context, rec *sluice.Record) error { return b.Do(ctx, rec.EventID) })
	by := w.run(change("good", ""), change("bad", ""))
	w.want(by, "commit bin 1, park send 1, process orders 1, receive orders 1, route send 1")
	w.child(by["commit bin"], by["route send"])
	s := by["commit bin"][0]
	if len(s.Links) != 2 || s.Status.Description != "refused" || attr(s, "sluice.failed") != "1" || attr(s, "sluice.items") != "2" {
		t.Errorf("%d links, status %v, attributes %v", len(s.Links), s.Status, s.Attributes)
	}
}

// Under Stop, as in Lambda, a failed record is not settled, and its span says so.
func TestARecordThatComesAgain(t *testing.T) {
	w := newTracedRoutes(t, "always_off")
	w.o.Policy = flow.Stop
	w.route("r", func(context.Context, *sluice.Record) error { return errors.New("down") })
	by := w.run(change("a", ""))
	w.want(by, "process orders 1, receive orders 1, route r 1")
	if s := by["process orders"][0]; attr(s, "sluice.settled") != "false" || s.Status.Description != "down" {
		t.Errorf("status %v, attributes %v", s.Status, s.Attributes)
	}
}

// A record links to the traceparent that its change has written.
func TestLinkFromAnAttribute(t *testing.T) {
	const (
		parent  = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
		written = `{"traceparent":{"S":"` + parent + `"}}`
	)
	stale := change("stale", written)
	stale.Old = stale.New
	for name, tt := range map[string]struct {
		rec  sluice.Record
		want int
	}{
		"written":   {change("a", written), 1},
		"none":      {change("a", ""), 0},
		"unchanged": {stale, 0},
		"malformed": {change("a", `{"traceparent":{"S":"00-secret"}}`), 0},
		"a number":  {change("a", `{"traceparent":{"N":"1"}}`), 0},
	} {
		w := newTracedRoutes(t, "always_on")
		w.route("r", func(context.Context, *sluice.Record) error { return nil })
		s := w.run(tt.rec)["process orders"][0]
		if len(s.Links) != tt.want || tt.want == 1 && s.Links[0].SpanContext.TraceID().String() != "4bf92f3577b34da6a3ce929d0e0e4736" {
			t.Errorf("%s: links %v, want %d", name, s.Links, tt.want)
		}
	}
}

// A handler's own spans have the call for a parent, and are not sampled if the call is
// not.
func TestSpansOfAHandler(t *testing.T) {
	for sampler, sampled := range map[string]bool{"parentbased_always_on": true, "parentbased_always_off": false} {
		w := newTracedRoutes(t, sampler)
		w.route("r", func(ctx context.Context, _ *sluice.Record) error {
			_, span := w.tracer.heads.Tracer("mine").Start(ctx, "mine")
			defer span.End()
			if span.SpanContext().IsSampled() != sampled {
				t.Errorf("%s: sampled %v", sampler, !sampled)
			}
			if !trace.SpanContextFromContext(ctx).IsValid() {
				t.Errorf("%s: no ids for the log", sampler)
			}
			return nil
		})
		by := w.run(change("a", ""))
		if sampled {
			w.child(by["mine"], by["route r"])
		} else {
			w.want(by, "")
		}
	}
}

// The hook of a call that is exported has labels for an exemplar, and a line of the log
// the ids of its trace.
func TestExemplarsAndLogs(t *testing.T) {
	w := newTracedRoutes(t, "always_off")
	w.o.DeadLetter = &letters{}
	w.route("r", func(_ context.Context, rec *sluice.Record) error {
		if rec.EventID == "event-bad" {
			return sluice.Permanent(errors.New("never"))
		}
		return nil
	})
	var log strings.Builder
	w.o.Logger = slog.New(Logs(slog.NewTextHandler(&log, nil)))
	var mu sync.Mutex
	of := map[string]map[string]string{}
	w.o.Hooks.Handled = func(ctx context.Context, rec *sluice.Record, _ *sluice.Route, _ flow.Result, _ time.Duration, _ error) {
		mu.Lock()
		defer mu.Unlock()
		of[rec.EventID] = Exemplar(ctx)
	}
	by := w.run(change("good", ""), change("bad", ""))
	id := by["park r"][0].SpanContext.TraceID().String()
	if of["event-good"] != nil || of["event-bad"]["trace_id"] != id || of["event-bad"]["span_id"] == "" {
		t.Errorf("exemplars %v, want trace %s", of, id)
	}
	if !strings.Contains(log.String(), "parked as a dead letter") || !strings.Contains(log.String(), "trace_id="+id+" span_id=") {
		t.Errorf("log without the trace %s: %s", id, log.String())
	}
}

// An invocation of Lambda is part of its trace in X-Ray, and follows its sampling.
func TestXRay(t *testing.T) {
	const root = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled="
	for header, want := range map[string]string{
		root + "1": "receive orders 1",
		root + "0": "",
		"":         "receive orders 1", // the default samples
		"Root=x":   "receive orders 1",
	} {
		w := newTracedRoutes(t, "parentbased_always_on")
		ctx := context.WithValue(t.Context(), "x-amzn-trace-id", header) //nolint:staticcheck // the key of aws-lambda-go
		w.tracer.Page(ctx, []sluice.Record{change("a", "")}).Submitted()
		by := w.spans()
		w.want(by, want)
		if header == root+"1" {
			if s := by["receive orders"][0]; s.SpanContext.TraceID().String() != "5759e988bd862e3fe1be46a994272793" || s.Parent.SpanID().String() != "53995c3f42cd8ad8" {
				t.Errorf("trace %v, parent %v", s.SpanContext.TraceID(), s.Parent.SpanID())
			}
		}
	}
}
