package router

import (
	"errors"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
)

const queueARN = "arn:aws:sqs:eu-west-1:123456789012:attempts"

func received(body string) *sluice.Record {
	m := sluice.Message{ID: "m1", Body: body}
	return m.Record(queueARN)
}

func TestMessagesRouteByTheirKind(t *testing.T) {
	r := New(TypeFrom(Attribute("entityType")))
	r.Handle("a.try#MESSAGE", nothing)
	r.Handle("*#*", nothing, Name("changes"))
	r.Handle("b#MESSAGE", nothing, When(func(*sluice.Record) bool { return false }))
	for _, tt := range []struct{ body, want, err string }{
		{`{"kind":"a.try","entityType":"b"}`, "a.try#MESSAGE", ""},
		{`{"kind":"b"}`, "", ""},
		{`{"kind":"c"}`, "", `message m1 of queue attempts: no route takes messages of kind "c"`},
		{`{"entityType":"a.try"}`, "", `message m1 of queue attempts: its body has no member "kind"`},
		{`{"kind":7}`, "", "message m1 of queue attempts: type of the record: the kind of a message is of type N"},
		{`hello`, "", "undecodable record: body of message m1 of queue attempts: it is no JSON object"},
	} {
		routes, err := r.Match(nil, received(tt.body))
		if got := strings.Join(names(routes), " "); got != tt.want {
			t.Errorf("%s takes %q, want %q", tt.body, got, tt.want)
		}
		if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
			t.Errorf("%s: error %v, want %q", tt.body, err, tt.err)
		}
		if err != nil && !sluice.IsPermanent(err) {
			t.Errorf("%s: %v is not permanent", tt.body, err)
		}
	}
}

// Messages have no order that a redrive could break.
func TestMessagesMayBeRedriven(t *testing.T) {
	r := New()
	r.Handle("a#MESSAGE", nothing)
	rec := received(`{"kind":"a"}`)
	rec.Origin = sluice.Redriven
	if routes, err := r.Match(nil, rec); len(routes) != 1 || err != nil {
		t.Errorf("%d routes, %v", len(routes), err)
	}
	var refused *redriveError
	r = New(TypeFrom(Table(nil)))
	r.Handle("t#INSERT", nothing)
	_, err := r.Match(nil, &sluice.Record{EventName: sluice.Insert, Table: "t", Origin: sluice.Redriven})
	if !errors.As(err, &refused) {
		t.Errorf("a change: %v, want it refused", err)
	}
}
