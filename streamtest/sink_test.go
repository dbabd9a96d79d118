package streamtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/flow"
)

var _ flow.DeadLetter = (*DeadLetters)(nil)

func sendAll(s *Sink[string], values string) string {
	var out []string
	for v := range strings.SplitSeq(values, " ") {
		out = append(out, fmt.Sprint(s.Send(context.Background(), v)))
	}
	return strings.Join(out, " ")
}

func TestSinkFails(t *testing.T) {
	for _, tt := range []struct {
		name   string
		script func(s *Sink[string])
		want   string
	}{
		{"never", func(*Sink[string]) {}, "<nil> <nil> <nil> <nil>"},
		{"the nth", func(s *Sink[string]) { s.FailNth(2, errDown) }, "<nil> down <nil> <nil>"},
		{"two nths", func(s *Sink[string]) { s.FailNth(1, errDown); s.FailNth(4, errDown) }, "down <nil> <nil> down"},
		{"the first", func(s *Sink[string]) { s.FailFirst(3, errDown) }, "down down down <nil>"},
		{"by value", func(s *Sink[string]) { s.FailIf(func(v string) bool { return v == "b" }, errDown) }, "<nil> down <nil> down"},
		{"all", func(s *Sink[string]) { s.FailAll(errDown) }, "down down down down"},
		{"until removed", func(s *Sink[string]) { s.FailAll(errDown)() }, "<nil> <nil> <nil> <nil>"},
		{"the first script counts", func(s *Sink[string]) {
			s.FailNth(1, errors.New("up"))
			s.FailAll(errDown)
		}, "up down down down"},
		{"by a function", func(s *Sink[string]) {
			s.Fail(func(_ context.Context, n int, v string) error { return fmt.Errorf("%d%s", n, v) })
		}, "6a 7b 8c 9b"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var s Sink[string]
			sendAll(&s, "x y z x y") // a script counts from when it was given
			tt.script(&s)
			wantText(t, "outcomes", sendAll(&s, "a b c b"), tt.want)
			var values []string
			for _, c := range s.Calls()[5:] {
				if c.Err == nil {
					values = append(values, c.Value)
				}
			}
			wantText(t, "values", strings.Join(s.Values(), " "), strings.TrimSpace("x y z x y "+strings.Join(values, " ")))
			if len(s.Calls()) != 9 {
				t.Errorf("%d calls", len(s.Calls()))
			}
		})
	}
}

func TestSinkAndContexts(t *testing.T) {
	var s Sink[string]
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errDown)
	if err := s.Send(ctx, "late"); !errors.Is(err, errDown) {
		t.Errorf("a call whose context has ended: %v", err)
	}
	ctx, cancel = context.WithCancelCause(t.Context())
	s.Fail(func(ctx context.Context, n int, v string) error {
		cancel(errDown)
		<-ctx.Done()
		return context.Cause(ctx)
	})
	if err := s.Send(ctx, "waits"); !errors.Is(err, errDown) || len(s.Values()) != 0 || len(s.Calls()) != 2 {
		t.Errorf("a script that waits: %v, %v", err, s.Calls())
	}
}

// Calls of several sinks are in one order.
func TestSinkOrder(t *testing.T) {
	var a Sink[string]
	var b Sink[int]
	for i := range 3 {
		_ = a.Send(t.Context(), "x")
		_ = b.Send(t.Context(), i)
	}
	for i := range 3 {
		if x, y := a.Calls()[i], b.Calls()[i]; x.Order >= y.Order || i > 0 && x.Order <= b.Calls()[i-1].Order {
			t.Errorf("call %d: %d and %d", i, x.Order, y.Order)
		}
	}
}

func TestSinkConcurrently(t *testing.T) {
	const senders, each = 8, 50
	var s Sink[int]
	s.FailFirst(100, errDown)
	var wg sync.WaitGroup
	for range senders {
		wg.Go(func() {
			for i := range each {
				_ = s.Send(t.Context(), i)
				s.FailNth(1, nil)
				s.Values()
			}
		})
	}
	wg.Wait()
	calls := s.Calls()
	if len(calls) != senders*each || len(s.Values()) != senders*each-100 {
		t.Errorf("%d calls, %d values", len(calls), len(s.Values()))
	}
	for i, c := range calls[1:] {
		if c.Order <= calls[i].Order {
			t.Errorf("order %d behind %d", c.Order, calls[i].Order)
		}
	}
}

// What was sent does not change when a record's memory is used again.
func TestSinkCopies(t *testing.T) {
	type message struct {
		Body   []byte
		Item   sluice.Item
		Record *sluice.Record
		Parts  map[string][]byte
		List   [][]byte
		Inner  struct{ Body []byte }
		Any    any
		hidden []byte
		Next   *message
	}
	var s Sink[message]
	other := &message{}
	res := Run(t.Context(), orderRouter(func(ctx context.Context, rec *sluice.Record) error {
		body := rec.New.Raw()
		return s.Send(ctx, message{
			Body: body, Item: rec.New, Record: rec, Parts: map[string][]byte{"a": body}, List: [][]byte{body, nil},
			Inner: struct{ Body []byte }{body}, Any: 1, hidden: body, Next: other,
		})
	}), orderRecord("a", 0))
	if res.Settled != 1 {
		t.Fatal(res)
	}
	m := s.Values()[0]
	want := `{"entityType":{"S":"order"},"n":{"N":"0"},"pk":{"S":"a"}}`
	for i, got := range [][]byte{m.Body, m.Item.Raw(), m.Record.New.Raw(), m.Parts["a"], m.List[0], m.Inner.Body} {
		wantText(t, fmt.Sprint("copy ", i), string(got), want)
	}
	if m.List[1] != nil || m.Any != 1 || m.Next != other || len(m.hidden) != len(want) {
		t.Errorf("the rest: %+v", m)
	}
	if v := deepCopy[any](nil); v != nil {
		t.Errorf("a nil interface: %v", v)
	}
	if v := deepCopy(errDown); v != errDown { //nolint:errorlint // the very value
		t.Errorf("an error: %v", v)
	}
}

func TestHandlerAndDeadLetters(t *testing.T) {
	var h Handler
	var letters DeadLetters
	h.FailIf(func(rec *sluice.Record) bool { return rec.EventName == sluice.Modify }, sluice.Permanent(errDown))
	res := RunWith(t.Context(), flow.Options{DeadLetter: &letters}, orderRouter(h.Handle), orderRecord("a", 0), orderRecord("a", 1), orderRecord("b", 0))
	if res.Settled != 3 {
		t.Fatal(res)
	}
	var got []string
	for _, c := range h.Calls() {
		got = append(got, fmt.Sprintf("%s %s %v", c.Value.EventName, c.Value.Keys.AppendJSON(nil), c.Err))
	}
	for _, l := range letters.Values() {
		got = append(got, fmt.Sprintf("parked %s %s %v", l.Record.Keys.AppendJSON(nil), l.Failure.Route, l.Failure.Last))
	}
	wantText(t, "calls", strings.Join(got, "\n"), `INSERT {"pk":"a"} <nil>
MODIFY {"pk":"a"} down
INSERT {"pk":"b"} <nil>
parked {"pk":"a"} order#* down`)
}
