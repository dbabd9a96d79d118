package sqs

import (
	"net/http/httptest"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/spantest"
)

func TestSpan(t *testing.T) {
	s := &stub{t: t}
	srv := httptest.NewServer(s)
	defer srv.Close()
	q, err := New(config(srv.Client()), srv.URL+"/123456789012/jobs", Options{Linger: -1})
	if err != nil {
		t.Fatal(err)
	}
	ctx, spans := spantest.Context(t.Context())
	if err := q.Send(ctx, sluice.Message{Body: "hello"}); err != nil {
		t.Fatal(err)
	}
	const want = "sqs: 1 messaging.system=aws_sqs messaging.operation.type=send messaging.operation.name=SendMessageBatch messaging.destination.name=jobs failed=0"
	if got := spans.String(); got != want {
		t.Errorf("span %s, want %s", got, want)
	}
}
