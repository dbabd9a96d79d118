package message

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/item"
)

// delayed is a queue that delays, as SQS does, by at most 900 s.
type delayed struct {
	t    *testing.T
	ms   chan sluice.Message
	sent []time.Duration
}

func (q *delayed) send(_ context.Context, m sluice.Message) error {
	if m.Delay > MaxDelay || m.Delay%time.Second != 0 {
		q.t.Errorf("delay of %v", m.Delay)
	}
	q.sent = append(q.sent, m.Delay)
	m.ID = "m"
	time.AfterFunc(m.Delay, func() { q.ms <- m })
	return nil
}

// A check that is due in 2,000 s hops over 900 s twice, and its item's key comes
// back exactly.
func TestLater(t *testing.T) {
	key, err := item.Parse([]byte(`{"pk":{"S":"größe \"<&>\" 🙂\u0000"},"n":{"N":"-12345678901234567890.123456789012345678"},"b":{"B":"AP+/"}}`))
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		q := &delayed{t: t, ms: make(chan sluice.Message, 1)}
		begin := time.Now()
		want := Check{Kind: "order.unpaid", Table: "orders", Key: key, NotBefore: begin.Add(2000 * time.Second).UTC(), DedupeKey: "o-1#1"}
		if err := Later(q.send, Options{})(t.Context(), want); err != nil {
			t.Fatal(err)
		}
		var got []Check
		h := Hop(q.send, Options{})(func(_ context.Context, rec *sluice.Record) error {
			c, err := ReadCheck(rec)
			got = append(got, c)
			if took := time.Since(begin); took != 2000*time.Second {
				t.Errorf("it came after %v", took)
			}
			return err
		})
		for len(got) == 0 {
			m := <-q.ms
			if m.Kind() != "order.unpaid" || m.Attributes["dedupeKey"].Value != "o-1#1" || m.Attributes["notBefore"].Value != formatTime(want.NotBefore) {
				t.Errorf("message %+v", m)
			}
			if err := h(t.Context(), m.Record(queueARN)); err != nil && !sluice.IsSkip(err) {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff([]time.Duration{900 * time.Second, 900 * time.Second, 200 * time.Second}, q.sent); diff != "" {
			t.Error(diff)
		}
		c := got[0]
		if string(c.Key.Raw()) != string(key.Raw()) {
			t.Errorf("key %s, want %s", c.Key.Raw(), key.Raw())
		}
		if b, _ := c.Key.Lookup("b"); string(b.Bytes()) != "\x00\xff\xbf" {
			t.Errorf("binary %q", b.Bytes())
		}
		c.Key = want.Key
		if c.Kind != want.Kind || c.Table != want.Table || c.DedupeKey != want.DedupeKey || !c.NotBefore.Equal(want.NotBefore) {
			t.Errorf("%+v, want %+v", c, want)
		}
	})
}

func TestChecksThatAreNone(t *testing.T) {
	key := item.Of(item.String("pk", "x"))
	sent := 0
	later := Later(func(context.Context, sluice.Message) error { sent++; return nil }, Options{})
	for want, c := range map[string]Check{
		"without a Kind":      {Key: key, NotBefore: time.Now()},
		"without a Key":       {Kind: "k", NotBefore: time.Now()},
		"without a NotBefore": {Kind: "k", Key: key},
	} {
		if err := later(t.Context(), c); !sluice.IsPermanent(err) || !strings.Contains(err.Error(), want) || sent > 0 {
			t.Errorf("%v, want %q; %d sent", err, want, sent)
		}
	}
	for body, want := range map[string]string{
		`{"kind":"k","notBefore":"2019-12-30T19:32:14Z"}`:                         "without a Key",
		`{"kind":"k","key":{"pk":{"X":"x"}},"notBefore":"2019-12-30T19:32:14Z"}`:  "key: ",
		`{"kind":"k","key":"x","notBefore":"2019-12-30T19:32:14Z"}`:               "key: ",
		`{"kind":"k","key":{"pk":{"N":"1x"}},"notBefore":"2019-12-30T19:32:14Z"}`: "key: ",
		`{"kind":"k","key":{"pk":{"S":"x"}},"notBefore":"soon"}`:                  "is no check",
		`{"key":{"pk":{"S":"x"}},"notBefore":"2019-12-30T19:32:14Z","table":"t"}`: "without a Kind",
		`{"kind":"k","table":7,"key":{},"notBefore":"2019-12-30T19:32:14Z"}`:      "is no check",
		`{"kind":"k","key":{"pk":{"S":"x"}}}`:                                     "without a NotBefore",
	} {
		m := sluice.Message{ID: "m1", Body: body}
		if c, err := ReadCheck(m.Record(queueARN)); !sluice.IsPermanent(err) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "message m1 of queue attempts") {
			t.Errorf("%s: %+v, %v, want %q", body, c, err, want)
		}
	}
	if _, err := ReadCheck(&sluice.Record{EventName: sluice.Insert, Table: "orders"}); !sluice.IsPermanent(err) || !strings.Contains(err.Error(), "a INSERT of table orders") {
		t.Error(err)
	}
}

// NotBefore names the member with the due time. A check has it in notBefore.
func TestLaterRefusesAnotherNotBefore(t *testing.T) {
	defer func() {
		if v := recover(); !strings.Contains(fmt.Sprint(v), `Options.NotBefore is "due"`) {
			t.Errorf("panic = %v", v)
		}
	}()
	Later(func(context.Context, sluice.Message) error { return nil }, Options{NotBefore: "due"})
}
