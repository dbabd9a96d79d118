//go:build unix

package main

import (
	"strings"
	"testing"
	"time"
)

const metrics = `# HELP sluice_polls_total GetRecords calls: with records, empty, or failed.
# TYPE sluice_polls_total counter
sluice_polls_total{outcome="empty",table="a"} 1.2e+03
sluice_polls_total{outcome="failed",table="a"} 3
sluice_polls_total{outcome="records",table="a"} 30
sluice_polls_total{outcome="empty",table="b"} 200
sluice_polled_records_total{table="a"} 999
`

func TestCountPolls(t *testing.T) {
	got, err := countPolls(metrics)
	if err != nil || len(got) != 2 || got["a"] != 1233 || got["b"] != 200 {
		t.Errorf("%v, %v; want 1233 polls of a and 200 of b", got, err)
	}
	for _, bad := range []string{
		`sluice_polls_total{outcome="empty",table="a"} many` + "\n",
		`sluice_polls_total{outcome="empty"} 1` + "\n",
	} {
		if got, err := countPolls(bad); err == nil {
			t.Errorf("%q was taken for %v", bad, got)
		}
	}
}

// 60 s have 300 intervals of 200 ms, between 301 polls.
func TestPollRate(t *testing.T) {
	before := map[string]float64{"a": 10, "b": 7}
	for _, tt := range []struct {
		after map[string]float64
		want  float64
		bad   string
	}{
		{after: map[string]float64{"a": 311, "b": 207}, want: 5},
		{after: map[string]float64{"a": 210, "b": 338}, want: 5.5},
		{after: map[string]float64{"a": 311, "b": 7}, bad: "table b was not polled"},
		{after: nil, bad: "counts no polls"},
	} {
		got, err := pollRate(before, tt.after, time.Minute)
		switch {
		case tt.bad != "":
			if err == nil || !strings.Contains(err.Error(), tt.bad) {
				t.Errorf("%v: %v, %v; want an error with %q", tt.after, got, err, tt.bad)
			}
		case err != nil || got != tt.want:
			t.Errorf("%v: %v, %v; want %v", tt.after, got, err, tt.want)
		}
	}
}
