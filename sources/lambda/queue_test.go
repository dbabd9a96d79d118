package lambda

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
)

// queueEvent makes an event of messages "id:do" or "group/id:do".
func queueEvent(queue string, messages ...string) []byte {
	var recs []string
	for _, m := range messages {
		group, rest, ok := strings.Cut(m, "/")
		if !ok {
			group, rest = "", m
		}
		id, do, _ := strings.Cut(rest, ":")
		body, _ := json.Marshal(fmt.Sprintf(`{"kind":"job","do":%q}`, do))
		if do == "none" {
			body = []byte(`"no JSON"`)
		}
		attributes := `"ApproximateReceiveCount":"2","SentTimestamp":"1740818400000"`
		if group != "" {
			attributes += fmt.Sprintf(`,"MessageGroupId":%q`, group)
		}
		recs = append(recs, fmt.Sprintf(`{"messageId":%q,"receiptHandle":"h","body":%s,"attributes":{%s},"messageAttributes":{},"md5OfBody":"x","eventSource":"aws:sqs","eventSourceARN":"arn:aws:sqs:eu-west-1:1:%s","awsRegion":"eu-west-1"}`, id, body, attributes, queue))
	}
	return []byte(`{"Records":[` + strings.Join(recs, ",") + `]}`)
}

func failsOf(ids ...string) string {
	var parts []string
	for _, id := range ids {
		parts = append(parts, `{"itemIdentifier":"`+id+`"}`)
	}
	return `{"batchItemFailures":[` + strings.Join(parts, ",") + `]}`
}

func TestQueueAnswers(t *testing.T) {
	for _, tt := range []struct {
		name, queue, messages string
		want                  string // ids
		calls                 string
	}{
		{"all succeed", "jobs", "a:ok b:skip c:ok", "", "a b c"},
		{"each fails alone", "jobs", "a:ok b:fail c:ok d:later e:panic f:goexit g:ok", "b d e f", "a b c d e f g"},
		{"permanent", "jobs", "a:permanent b:ok", "a", "a b"},
		{"no JSON", "jobs", "a:none b:ok", "a", "b"},
		{"twice, and one fails", "jobs", "a:ok a:fail b:ok", "a", "a a b"},
		{"twice, and both fail", "jobs", "a:fail a:fail", "a", "a a"},
		{"groups of a standard queue", "jobs", "g/a:fail g/b:ok", "a", "a b"},
		{"groups of a FIFO queue", "jobs.fifo", "g/a:ok h/b:ok g/c:fail h/d:ok g/e:ok i/f:fail g/g:ok", "c e f g", "a b c d f"},
		{"first of a group", "jobs.fifo", "g/a:fail g/b:ok h/c:ok", "a b", "a c"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var seen recorder
			var inv Invocation
			h := NewHandler(one(func(ctx context.Context, rec *sluice.Record) error {
				seen.add(rec.EventID)
				if m, ok := rec.Message(); !ok || m.Received != 2 || rec.EventName != sluice.Delivery {
					t.Errorf("message %+v", m)
				}
				return obey(ctx, rec)
			}), Options{Logger: quiet(), Invoked: func(i Invocation) { inv = i }})
			messages := strings.Fields(tt.messages)
			if got := invoke(t, t.Context(), h, queueEvent(tt.queue, messages...)); got != failsOf(strings.Fields(tt.want)...) {
				t.Errorf("answer %s, want %s", got, tt.want)
			}
			calls := seen.take()
			slices.Sort(calls)
			if got := strings.Join(calls, " "); got != tt.calls {
				t.Errorf("called for %s, want %s", got, tt.calls)
			}
			if !inv.Queue || inv.Records != len(messages) || (tt.want == "") != (inv.Settled == inv.Records) || (tt.want == "") != (inv.Stopped == nil) {
				t.Errorf("invocation %+v", inv)
			}
		})
	}
}

func TestGroupsRunInOrder(t *testing.T) {
	var mu sync.Mutex
	last := map[string]string{}
	h := NewHandler(one(func(_ context.Context, rec *sluice.Record) error {
		m, _ := rec.Message()
		mu.Lock()
		defer mu.Unlock()
		if m.ID < last[m.GroupID] {
			t.Errorf("group %s: %s after %s", m.GroupID, m.ID, last[m.GroupID])
		}
		last[m.GroupID] = m.ID
		return nil
	}), Options{Logger: quiet()})
	var messages []string
	for i := range 100 {
		messages = append(messages, fmt.Sprintf("g%d/%03d:ok", i%3, i))
	}
	if got := invoke(t, t.Context(), h, queueEvent("jobs.fifo", messages...)); got != allDone {
		t.Errorf("answer %s", got)
	}
}

// Messages that did not start before the deadline come again.
func TestQueueDeadline(t *testing.T) {
	for _, queue := range []string{"jobs", "jobs.fifo"} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			var seen recorder
			h := NewHandler(one(func(_ context.Context, rec *sluice.Record) error {
				seen.add(rec.EventID)
				time.Sleep(4 * time.Second)
				seen.add("/" + rec.EventID)
				return nil
			}), Options{Concurrency: 1, Logger: quiet()})
			begin := time.Now()
			got := invoke(t, ctx, h, queueEvent(queue, "g/a:ok", "g/b:ok", "g/c:ok", "g/d:ok"))
			// c runs past the time at which handlers are given up.
			if want := failsOf("c", "d"); got != want {
				t.Errorf("%s: answer %s, want %s", queue, got, want)
			}
			if took := time.Since(begin); took >= 10*time.Second {
				t.Errorf("%s: answered after %v", queue, took)
			}
			// The next invocation waits for it.
			if got := invoke(t, t.Context(), h, queueEvent(queue, "g/e:ok")); got != allDone {
				t.Errorf("%s: the next one: %s", queue, got)
			}
			if got := strings.Join(seen.take(), " "); got != "a /a b /b c /c e /e" {
				t.Errorf("%s: called %s", queue, got)
			}
		})
	}
}

func TestQueueParks(t *testing.T) {
	var mu sync.Mutex
	var parked []string
	h := NewHandler(one(obey), Options{Logger: quiet(), DeadLetter: parkFunc(func(rec *sluice.Record) error {
		mu.Lock()
		defer mu.Unlock()
		if rec.EventID == "c" {
			return errors.New("the dead letters are down")
		}
		parked = append(parked, rec.EventID)
		return nil
	})})
	if got := invoke(t, t.Context(), h, queueEvent("jobs.fifo", "g/a:permanent", "g/b:ok", "h/c:permanent", "h/d:ok")); got != failsOf("c", "d") {
		t.Errorf("answer %s", got)
	}
	if !slices.Equal(parked, []string{"a"}) {
		t.Errorf("parked %q", parked)
	}
}

type parkFunc func(*sluice.Record) error

func (f parkFunc) Park(_ context.Context, rec *sluice.Record, _ sluice.Failure) error { return f(rec) }

func TestQueueEventsThatFail(t *testing.T) {
	good := string(queueEvent("jobs", "a:ok", "b:ok"))
	for name, tt := range map[string]struct{ event, want string }{
		"no id":            {strings.Replace(good, `"messageId":"b",`, "", 1), `message 2 of 2 (queue "jobs") has no messageId`},
		"mixed":            {strings.Replace(good, `"aws:sqs","eventSourceARN":"arn:aws:sqs:eu-west-1:1:jobs","awsRegion":"eu-west-1"}]`, `"aws:dynamodb"}]`, 1), "record 1 is no message of a queue"},
		"body of a number": {strings.Replace(good, `"body":"{`, `"body":7,"x":"{`, 1), "no message of a queue"},
	} {
		answer, err := NewHandler(one(obey), Options{Logger: quiet()}).Invoke(t.Context(), []byte(tt.event))
		if err == nil || !strings.Contains(err.Error(), tt.want) || answer != nil {
			t.Errorf("%s: %s, %v", name, answer, err)
		}
	}
	for _, queue := range []string{"jobs", "jobs.fifo"} { // there, what is behind the first of a group is not looked at
		_, err := NewHandler(unroutable{}, Options{Logger: quiet()}).Invoke(t.Context(), queueEvent(queue, "a:ok", "b:ok"))
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("no message of queue %q has a route", queue)) || !strings.Contains(err.Error(), "no route is for it") {
			t.Errorf("without a route: %v", err)
		}
	}
}

// unroutable has no route for messages, as a router says it.
type unroutable struct{}

func (unroutable) Routes() []*sluice.Route { return []*sluice.Route{{Name: "of streams"}} }
func (unroutable) Match(dst []*sluice.Route, _ *sluice.Record) ([]*sluice.Route, error) {
	return dst, sluice.Permanent(errors.New("no route is for it"))
}

// One function takes both kinds of events.
func TestStreamAndQueue(t *testing.T) {
	var seen recorder
	h := NewHandler(one(func(_ context.Context, rec *sluice.Record) error {
		seen.add(string(rec.EventName))
		return nil
	}), Options{Logger: quiet()})
	// The name of the other kind in an image changes nothing.
	invoke(t, t.Context(), h, event(change{seq: 1, raw: `"x":{"S":"aws:sqs"},"\"aws:sqs\"":{"S":"\"aws:sqs\""}`}))
	invoke(t, t.Context(), h, queueEvent("jobs", "a:ok"))
	if got := strings.Join(seen.take(), " "); got != "INSERT MESSAGE" {
		t.Errorf("handled %s", got)
	}
}
