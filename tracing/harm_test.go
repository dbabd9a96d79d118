package tracing

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
	"weak"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/flow"
)

// A text that is not UTF-8 is not in any span: OTLP would lose all spans beside it.
func TestInvalidTexts(t *testing.T) {
	const bad = "x\xff"
	w := newTracedRoutes(t, "always_on")
	w.o.DeadLetter = &letters{}
	b := sink(func(string) error { return sluice.Permanent(errors.New(bad)) })
	w.route(bad, func(ctx context.Context, rec *sluice.Record) error { return b.Do(ctx, rec.EventID) })
	rec := change("a", "")
	rec.EventID, rec.Table, rec.ShardID, rec.Sequence, rec.EventName = bad, bad, bad, bad, bad
	by := w.run(rec)
	n := 0
	for _, spans := range by {
		for _, s := range spans {
			n++
			if text := fmt.Sprint(s.Name, s.Status, s.Attributes); !utf8.ValidString(text) {
				t.Errorf("%q", text)
			}
		}
	}
	if n != 5 {
		t.Errorf("%d spans, want 5: %s", n, names(by))
	}
}

// A commit that failed is not alone, although its handler skips the record. It links to
// the records that failed, if not to all.
func TestACommitThatIsSkipped(t *testing.T) {
	t.Setenv("OTEL_SPAN_LINK_COUNT_LIMIT", "1")
	w := newTracedRoutes(t, "always_off")
	b := sink(func(id string) error {
		if id == "event-bad" {
			return errors.New("refused")
		}
		return nil
	})
	w.route("send", func(ctx context.Context, rec *sluice.Record) error {
		if err := b.Do(ctx, rec.EventID); err != nil {
			return sluice.Skip("nobody misses it")
		}
		return nil
	})
	by := w.run(change("bad", ""), change("good", ""), change("fine", ""))
	w.want(by, "commit bin 1, process orders 1, receive orders 1, route send 1")
	w.child(by["commit bin"], by["route send"])
	links, record := by["commit bin"][0].Links, by["process orders"][0]
	if len(links) != 1 || links[0].SpanContext.SpanID() != record.SpanContext.SpanID() || record.Status.Code != codes.Unset {
		t.Errorf("links %v, record %v, status %v", links, record.SpanContext.SpanID(), record.Status)
	}
}

// A record keeps nothing of its calls that have ended, however long it is held.
func TestAHeldRecord(t *testing.T) {
	w := newTracedRoutes(t, "always_off")
	rec := change("a", "")
	r := w.tracer.Page(t.Context(), []sluice.Record{rec}).Record(time.Now())
	ended := weak.Make(r.Call(t.Context(), &rec, &sluice.Route{Name: "r"}, time.Now(), 1).(*call))
	r.EndCall(&rec, flow.Retried, 0, errors.New("down"))
	runtime.GC()
	if ended.Value() != nil {
		t.Error("the record keeps its ended call")
	}
	r.End(true)
}

// What a stop cuts off is no error.
func TestCutOff(t *testing.T) {
	for text, err := range map[string]error{"": context.Canceled, "down": errors.New("down")} {
		w := newTracedRoutes(t, "always_off")
		rec := change("a", "")
		ctx, end := context.WithCancel(t.Context())
		p := w.tracer.Page(ctx, []sluice.Record{rec})
		r := p.Record(time.Now())
		r.Call(ctx, &rec, &sluice.Route{Name: "r"}, time.Now(), 1)
		end()
		r.EndCall(&rec, flow.Stopped, 0, fmt.Errorf("put: %w", err))
		r.End(false)
		p.Submitted()
		by := w.spans()
		w.want(by, "process orders 1, receive orders 1, route r 1")
		call, record := by["route r"][0], by["process orders"][0]
		if !strings.HasSuffix(call.Status.Description, text) || !strings.HasSuffix(record.Status.Description, text) || (call.Status.Code == codes.Unset) != (text == "") ||
			(record.Status.Code == codes.Unset) != (text == "") || (len(call.Events) == 1) != (text == "") {
			t.Errorf("%v: call %v, record %v, events %v", err, call.Status, record.Status, call.Events)
		}
	}
}

// Each record has the name of its own table.
func TestRecordsOfTwoTables(t *testing.T) {
	w := newTracedRoutes(t, "always_on")
	w.route("r", func(context.Context, *sluice.Record) error { return nil })
	other := change("b", "")
	other.Table = "bills"
	by := w.run(change("a", ""), other)
	w.want(by, "process bills 1, process orders 1, receive orders 1, route r 2")
	if got := attr(by["process bills"][0], "aws.dynamodb.table_names"); got != `["bills"]` {
		t.Errorf("tables %s", got)
	}
}

// A library may take the provider of a call's span, for new traces too.
func TestProviderOfACall(t *testing.T) {
	w := newTracedRoutes(t, "always_on")
	w.route("r", func(ctx context.Context, _ *sluice.Record) error {
		tr := trace.SpanFromContext(ctx).TracerProvider().Tracer("library")
		_, below := tr.Start(ctx, "below")
		below.End()
		_, apart := tr.Start(ctx, "apart", trace.WithNewRoot())
		apart.End()
		return nil
	})
	by := w.run(change("a", ""))
	w.want(by, "apart 1, below 1, process orders 1, receive orders 1, route r 1")
	w.child(by["below"], by["route r"])
}
