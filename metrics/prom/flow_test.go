package prom

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/flow"
)

// rec is of a moment ago.
var rec = sluice.Record{Created: time.Now()}

type routes []*sluice.Route

func (r routes) Routes() []*sluice.Route { return r }
func (r routes) Match(dst []*sluice.Route, _ *sluice.Record) ([]*sluice.Route, error) {
	return append(dst, r...), nil
}

func two() routes {
	return routes{{Name: "first", Index: 0}, {Name: "second", Index: 1}}
}

func TestOutcomesByRoute(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	rs := two()
	h := New(reg).Flow(rs)
	h.Handled(context.Background(), &rec, rs[0], flow.Done, time.Millisecond, nil)
	h.Handled(context.Background(), &rec, rs[0], flow.Done, time.Millisecond, nil)
	for _, unknown := range []sluice.Record{{}, {Origin: sluice.Redriven}, {Created: time.Now(), Origin: sluice.Replayed}} { // how late they are
		h.Handled(context.Background(), &unknown, rs[0], flow.Done, time.Millisecond, nil)
	}
	h.Handled(context.Background(), &rec, rs[1], flow.Retried, 3*time.Second, errors.New("down"))
	h.Handled(context.Background(), &rec, rs[1], flow.Skipped, 0, fmt.Errorf("wrapped: %w", sluice.Skip("not active")))
	h.Handled(context.Background(), &rec, nil, flow.Unrouted, 0, nil)
	h.Handled(context.Background(), &rec, nil, flow.Parked, 0, errors.New("not a record"))
	h.Stuck(nil, rs[0], time.Minute, false)
	h.ParkFailed(nil, rs[1], errors.New("full"))
	h.ParkFailed(nil, nil, errors.New("full"))

	var want strings.Builder
	want.WriteString("# HELP sluice_records_total Records: done, skipped, retried, parked, stopped, unrouted.\n# TYPE sluice_records_total counter\n")
	counts := map[string]int{"first/done": 5, "second/retried": 1, "second/skipped": 1, "/unrouted": 1, "/parked": 1}
	for _, route := range []string{"", "first", "second"} {
		for _, outcome := range []string{"done", "skipped", "retried", "parked", "stopped", "unrouted"} {
			fmt.Fprintf(&want, "sluice_records_total{outcome=%q,route=%q} %d\n", outcome, route, counts[route+"/"+outcome])
		}
	}
	want.WriteString(`# HELP sluice_skips_total Records that a handler skipped, by reason.
# TYPE sluice_skips_total counter
sluice_skips_total{reason="not active",route="second"} 1
# HELP sluice_park_failures_total Records that could not be parked yet.
# TYPE sluice_park_failures_total counter
sluice_park_failures_total{route=""} 1
sluice_park_failures_total{route="first"} 0
sluice_park_failures_total{route="second"} 1
# HELP sluice_stuck_handlers Calls that run for too long.
# TYPE sluice_stuck_handlers gauge
sluice_stuck_handlers{route="first"} 1
sluice_stuck_handlers{route="second"} 0
`)
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want.String()),
		"sluice_park_failures_total", "sluice_records_total", "sluice_skips_total", "sluice_stuck_handlers"); err != nil {
		t.Error(err)
	}

	h.Stuck(nil, rs[0], time.Minute, true)
	n := 0
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, s := range f.Metric {
			switch f.GetName() {
			case "sluice_stuck_handlers":
				n++
				if v := s.GetGauge().GetValue(); v != 0 {
					t.Errorf("%s %v is %v after it ended", f.GetName(), s.Label, v)
				}
			case "sluice_lag_seconds":
				n++
				want := map[string]uint64{"first": 2, "second": 0}[s.Label[0].GetValue()]
				if got := s.GetHistogram().GetSampleCount(); got != want {
					t.Errorf("lag_seconds %v has %d samples, want %d", s.Label, got, want)
				}
			case "sluice_handler_seconds":
				n++
				want := map[string]uint64{"first": 5, "second": 2}[s.Label[0].GetValue()]
				if got := s.GetHistogram().GetSampleCount(); got != want {
					t.Errorf("handler_seconds %v has %d samples, want %d", s.Label, got, want)
				}
			}
		}
	}
	if n != 6 {
		t.Errorf("looked at %d series, want 6", n)
	}
}

func TestReasonsAreBounded(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	rs := two()
	h := New(reg).Flow(rs)
	for i := range 10 * maxReasons {
		for range 2 {
			h.Handled(context.Background(), &rec, rs[0], flow.Skipped, 0, sluice.Skip(fmt.Sprint("reason ", i)))
		}
	}
	n, err := testutil.GatherAndCount(reg, "sluice_skips_total")
	if err != nil || n != maxReasons+1 {
		t.Errorf("%d series, %v; want %d", n, err, maxReasons+1)
	}
}

func BenchmarkHandled(b *testing.B) {
	rs := two()
	h := New(prometheus.NewRegistry()).Flow(rs)
	b.ReportAllocs()
	for i := range b.N {
		h.Handled(context.Background(), &rec, rs[i&1], flow.Done, time.Duration(i&1023)*time.Microsecond, nil)
	}
}
