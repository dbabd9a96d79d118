package daemon

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestWatchReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := [][]string{{}, {"disabled for 1s"}, {"disabled for 11s"}, {"disabled for 21s", "a gap"}, {"a gap"}, {}, {}}
		ctx, stop := context.WithCancel(t.Context())
		var log bytes.Buffer
		n := 0
		health := func() []string {
			h := answers[n]
			if n++; n == len(answers) {
				stop()
			}
			return h
		}
		begin := time.Now()
		watchReady(ctx, health, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{
			ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey {
					return slog.Attr{}
				}
				return a
			},
		})))
		want := strings.Join([]string{
			`level=WARN msg="not ready" reasons="disabled for 1s"`,
			`level=WARN msg="not ready" reasons="disabled for 21s\na gap"`,
			`level=INFO msg="ready again"`, "",
		}, "\n")
		if log.String() != want {
			t.Errorf("logged\n%swant\n%s", log.String(), want)
		}
		if took := time.Since(begin); took != time.Duration(len(answers))*readyEvery {
			t.Errorf("asked %d times in %v", len(answers), took)
		}
	})
}

func TestWhereToLook(t *testing.T) {
	for _, tt := range []struct {
		reasons []string
		held    int
		want    string
	}{
		{nil, 0, ""},
		{nil, 3, ""}, // items that wait are no reason
		{[]string{"down"}, 0, "down"},
		{[]string{"down"}, 3, "down\nitems that wait: 3; sluice status --held lists them, and why"},
	} {
		if got := strings.Join(whereToLook(tt.reasons, tt.held), "\n"); got != tt.want {
			t.Errorf("%q with %d held: %q, want %q", tt.reasons, tt.held, got, tt.want)
		}
	}
}
