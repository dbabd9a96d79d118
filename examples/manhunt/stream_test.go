//go:build integration

package manhunt

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/sources/poller"
	"github.com/sluicehq/sluice/state"
)

// TestStream writes to a real table and checks the records of its stream.
func TestStream(t *testing.T) {
	table := newTable(t)
	fx := Fixtures()
	sent := make(chan string, 10)
	handled := make(chan string, 10)
	r, err := NewRouter(Deps{
		Store: table.store, Table: table.name,
		Send: func(_ context.Context, m sluice.Message) error {
			sent <- fmt.Sprint(m.Delay, " ", m.Body)
			return nil
		},
		Watch: ignore,
		Now:   func() time.Time { return time.Date(2019, 12, 30, 19, 32, 21, 0, time.UTC) },
	})
	if err != nil {
		t.Fatal(err)
	}
	p, err := poller.New(localtest.DynamoDB(t), r, poller.Options{
		Streams: []poller.Stream{{Table: table.name}},
		Store:   state.NewMemory(),
		Start:   poller.TrimHorizon,
		Logger:  slog.New(slog.NewTextHandler(io.Discard, nil)),
		Flow: flow.Options{Hooks: flow.Hooks{Handled: func(_ context.Context, rec *sluice.Record, route *sluice.Route, res flow.Result, _ time.Duration, err error) {
			if route != nil && !strings.HasPrefix(route.Name, "note ") { // no method is malformed
				handled <- fmt.Sprintln(attribute(rec.Keys, "PK"), route.Name, res == flow.Done, err)
			}
		}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()

	receive := func(ch chan string) string {
		t.Helper()
		select {
		case s := <-ch:
			return s
		case <-time.After(localtest.Patience):
			t.Fatalf("nothing came for %v", localtest.Patience)
			return ""
		}
	}
	expect := func(outcome string, bodies ...string) {
		t.Helper()
		if got := receive(handled); got != outcome+"\n" {
			t.Fatalf("handled %swant    %s", got, outcome)
		}
		for _, want := range bodies {
			if got := receive(sent); got != want {
				t.Errorf("sent %s\nwant %s", got, want)
			}
		}
	}
	put(t, table, fx[contact], fx[email], fx[call], fx[search])
	expect("a271244 first step true <nil>", "0s "+firstBody)
	put(t, table, fx[attempt], fx[attempted])
	expect("a271244 next step true <nil>", "15m0s "+secondBody)
	put(t, table, edit(secondAttempt(), attemptedAt, ""), secondAttempt())
	expect("a271244 next step true <nil>", "15m0s "+expiryBody)
	put(t, table, fx[canceled])
	expect("2ad6a19 first step false skipped: escalation not active")

	put(t, table, edit(fx[search], "a271244", "b000001", "89fa8f8", "gone"))
	expect("b000001 first step true <nil>")
	s, _, err := table.Search(t.Context(), "b000001")
	if err != nil || s.Status != "failed" || s.Resolution != contactNotFound {
		t.Errorf("search %+v, %v", s, err)
	}
	if len(sent) != 0 {
		t.Errorf("sent besides: %s", <-sent)
	}
}
