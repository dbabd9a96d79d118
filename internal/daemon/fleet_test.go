package daemon

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/holders"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/state"
)

// aFleet has these workers at one look after the other, and then fails.
type aFleet struct {
	holders.Fleet
	looks [][]holders.Worker
	takes time.Duration
}

func (f *aFleet) Workers(context.Context, string) ([]holders.Worker, error) {
	time.Sleep(f.takes)
	if len(f.looks) == 0 {
		return nil, errors.New("throttled")
	}
	now := f.looks[0]
	f.looks = f.looks[1:]
	return now, nil
}

func (*aFleet) ListValues(context.Context, string, string) ([]state.Value, error) { return nil, nil }

// A daemon warns of living workers with another configuration, when they come and not
// while they stay.
func TestOtherConfigurations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		same := []holders.Worker{
			{Name: "me", State: holders.Living, Config: "1"}, {Name: "same", State: holders.Living, Config: "1"}, {Name: "old", State: holders.Living},
			{Name: "dead", State: holders.Fenced, Config: "2"}, {Name: "lost", State: holders.Silent, Config: "3"},
		}
		mixed := append(slices.Clone(same), holders.Worker{Name: "b", State: holders.Living, Config: "5"}, holders.Worker{Name: "c", State: holders.Living, Config: "4"})
		for i, tt := range []struct {
			looks [][]holders.Worker
			want  int
		}{
			{nil, 0}, {[][]holders.Worker{same, nil}, 0}, {[][]holders.Worker{same, mixed, mixed}, 1}, {[][]holders.Worker{mixed, same, mixed}, 2}, {[][]holders.Worker{mixed, mixed[:6]}, 2},
		} {
			var log strings.Builder
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			compareFleet(ctx, &aFleet{looks: tt.looks}, "shop", "1", slog.New(slog.NewTextHandler(&log, nil)))
			cancel()
			if n := strings.Count(log.String(), "level=WARN"); n != tt.want || n == 1 && !strings.Contains(log.String(), `config=1 others="4, 5" workers=2 worker=b`) {
				t.Errorf("%d: want %d warnings:\n%s", i, tt.want, &log)
			}
		}
	})
}

func TestFingerprintOfRoutes(t *testing.T) {
	of := func(config string, routes ...string) string {
		m := router.New()
		for _, name := range routes {
			m.Handle("*#*", func(context.Context, *sluice.Record) error { return nil }, router.Name(name))
		}
		return fingerprint(Options{Config: config}, m)
	}
	seen := map[string]bool{}
	both := of("", "a", "b")
	for _, f := range []string{of("", "a"), of("", "b"), both, of("", "ab"), of("1", "a")} {
		if len(f) != 8 || seen[f] {
			t.Errorf("%q, after %v", f, seen)
		}
		seen[f] = true
	}
	if of("", "a", "b") != both {
		t.Error("it changes by itself")
	}
}
