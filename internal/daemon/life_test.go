package daemon

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/router"
)

// lived runs a life for 65 s: 25 records of two routes in its first second, and one in the last 5.
func lived(t *testing.T, terminal bool) string {
	t.Helper()
	var out bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		m := router.New()
		for _, name := range []string{"send", "search", "idle"} {
			m.Handle("*#*", func(context.Context, *sluice.Record) error { return nil }, router.Name(name))
		}
		o := Options{LogFormat: "text", LogLevel: "info"}
		l := newLife(m, o, &out)
		if terminal {
			l.terminal = &out
		}
		h := l.handled
		rec := &sluice.Record{Table: "orders", EventName: sluice.Insert, Created: time.Now().Add(-2 * time.Second)}
		routes := m.Routes()
		for range 125 {
			h(context.Background(), rec, routes[0], flow.Done, 0, nil)
		}
		for range 25 {
			h(context.Background(), rec, routes[1], flow.Skipped, 0, nil)
		}
		h(context.Background(), rec, routes[1], flow.Retried, 0, nil)
		h(context.Background(), rec, routes[1], flow.Parked, 0, nil)
		h(context.Background(), rec, nil, flow.Unrouted, 0, nil)
		h(context.Background(), rec, nil, flow.Parked, 0, nil)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			waiting := 1
			l.watch(ctx, newLogger(o, &out), func() time.Duration { return 1400 * time.Millisecond }, func() int { waiting--; return waiting + 1 })
		}()
		time.Sleep(21 * time.Second)
		if !terminal {
			time.Sleep(60 * time.Second)
		}
		stop()
		<-done
	})
	return out.String()
}

func TestLifeOnATerminal(t *testing.T) {
	const want = `00:00:00  route send: first record done: INSERT of table orders, 2s after it
00:00:00  route search: first record skipped: INSERT of table orders, 2s after it
00:00:10  send 12/s (lag 2s), search 2.5/s (lag 2s, 1 parked), no route 0.1/s; oldest unsettled 1s; 1 waiting item (sluice status --held)
00:00:20  no records; oldest unsettled 1s
`
	if got := lived(t, true); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestLifeInTheLog(t *testing.T) {
	const want = `time=2000-01-01T00:01:00.000Z level=INFO msg="the last minute" handled=150 parked=1 unrouted=1 waiting=1 lag=1s` + "\n"
	if got := lived(t, false); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
