package holders

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/staterules"
	"github.com/sluicehq/sluice/state"
)

// table is a state of several processes, whose writes are counted and may fail.
type table struct {
	state.Values
	workers []Worker
	puts    int
	fail    error // of the next write, which is made all the same
}

func newTable(workers ...Worker) *table {
	return &table{Values: state.NewMemory(), workers: workers}
}

func (*table) Publish(string) {}

func (f *table) Workers(context.Context, string) ([]Worker, error) {
	return slices.Clone(f.workers), nil
}

func (f *table) PutValue(ctx context.Context, app, name string, data []byte) error {
	f.puts++
	if err := f.Values.PutValue(ctx, app, name, data); err != nil {
		return err
	}
	err := f.fail
	f.fail = nil
	return err
}

func (f *table) names(t *testing.T) (all []string) {
	t.Helper()
	values, err := f.ListValues(t.Context(), "shop", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range values {
		all = append(all, v.Name)
	}
	return all
}

// A report is stored when it has news, once an hour without, and again after an error.
// Another name of the worker replaces the one before.
func TestReporter(t *testing.T) {
	f := newTable()
	r := Reporter{Store: f, App: "shop"}
	now := time.Now()
	at := func(after time.Duration, change ...func(*Report)) Report {
		report := Report{At: now.Add(after), Items: []Item{{Key: "00ff", AgeSeconds: after.Seconds(), Attempts: 1}}, Tables: []TableReport{{Table: "orders", LagSeconds: after.Seconds() / 600}}}
		for _, c := range change {
			c(&report)
		}
		return report
	}
	lost := errors.New("lost response")
	for i, step := range []struct {
		worker string
		report Report
		fail   error
		puts   int
		names  string
	}{
		{"", at(0), nil, 0, "[]"}, // not named yet
		{"a", at(0), nil, 1, "[workers/a]"},
		{"a", at(30 * time.Minute), nil, 0, "[workers/a]"},
		{"a", at(time.Hour), nil, 1, "[workers/a]"},
		{"a", at(time.Hour, func(r *Report) { r.Items[0].Attempts++ }), nil, 1, "[workers/a]"},
		{"a", at(time.Hour, func(r *Report) { r.Items[0].Attempts++; r.Tables[0].LagSeconds = 9.9 }), nil, 0, "[workers/a]"},
		{"a", at(time.Hour, func(r *Report) { r.Tables[0].LagSeconds = 10 }), lost, 1, "[workers/a]"},
		{"a", at(time.Hour, func(r *Report) { r.Tables[0].LagSeconds = 10 }), nil, 1, "[workers/a]"},
		{"a", at(time.Hour, func(r *Report) { r.Tables[0].LagSeconds, r.Held = 10, 1 }), nil, 1, "[workers/a]"},
		{"a", at(time.Hour+29*time.Second, func(r *Report) { r.Tables[0].LagSeconds, r.Held = 10, 1 }), nil, 0, "[workers/a]"},
		{"a", at(time.Hour+30*time.Second, func(r *Report) { r.Tables[0].LagSeconds, r.Held = 10, 1 }), nil, 1, "[workers/a]"},
		{"b", at(time.Hour, func(r *Report) { r.Tables[0].LagSeconds = 10 }), nil, 1, "[workers/b]"},
		{"", at(time.Hour), nil, 0, "[]"},
	} {
		f.puts, f.fail = 0, step.fail
		if err := r.Report(t.Context(), step.worker, step.report); !errors.Is(err, step.fail) || f.puts != step.puts || fmt.Sprint(f.names(t)) != step.names {
			t.Errorf("%d: %v, %d writes of %v; want %+v", i, err, f.puts, f.names(t), step)
		}
	}
	f.fail = lost
	if err := errors.Join(r.Report(t.Context(), "c", at(0)), r.Forget(t.Context()), r.Forget(t.Context())); !errors.Is(err, lost) || len(f.names(t)) > 0 {
		t.Errorf("a report that may be stored stays: %v, %v", f.names(t), err)
	}
}

// The living workers come with their reports, and reports of ended ones are deleted.
func TestList(t *testing.T) {
	f := newTable(Worker{Name: "h/1/A", State: Living}, Worker{Name: "h/2/B", State: Silent}, Worker{Name: "h/3/C", State: Fenced}, Worker{Name: "h/4/D", State: Living}, Worker{Name: "h/5/E", State: Living})
	for name, age := range map[string]time.Duration{"h/1/A": 20 * time.Second, "h/2/B": 0, "h/3/C": 0, "new": time.Hour, "old": 25 * time.Hour} {
		r := Reporter{Store: f, App: "shop"}
		if err := r.Report(t.Context(), name, Report{At: time.Now().Add(-age), Held: 7, Items: []Item{{Key: "00ff", AgeSeconds: 100}}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.PutValue(t.Context(), "shop", reports+"h/5/E", []byte("of another program")); err != nil {
		t.Fatal(err)
	}
	all, err := List(t.Context(), f, "shop")
	if err != nil || len(all) != 5 || all[0].Report == nil || all[1].Report != nil || all[2].Report != nil || all[3].Report != nil || all[4].Report != nil {
		t.Fatalf("%+v, %v", all, err)
	}
	if r := all[0].Report; r.Held != 7 || len(r.Items) != 1 || r.Items[0].Worker != "h/1/A" || r.Items[0].AgeSeconds != 100 {
		t.Errorf("%+v", r)
	}
	if err := Sweep(t.Context(), f, "shop", all); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(f.names(t)); got != "[workers/h/1/A workers/h/2/B workers/h/5/E workers/new]" {
		t.Errorf("after the sweep: %s", got)
	}
}

// The worst comes first, and no report is too large for a value.
func TestBound(t *testing.T) {
	var r Report
	long := strings.Repeat("<", 3000)
	for i := range 100 {
		r.Tables = append(r.Tables, TableReport{Table: fmt.Sprint("table", strings.Repeat("x", 250), i), LagSeconds: float64(i), Unsettled: 5})
		r.Routes = append(r.Routes, RouteReport{Route: fmt.Sprint(i, long), State: "works", PerSecond: float64(i % 50)})
		r.Items = append(r.Items, Item{Table: strings.Repeat("x", 255), Shard: strings.Repeat("x", 65), Sequence: strings.Repeat("9", 40), Key: "00ff00ff00ff00ff", Route: long, Error: long, AgeSeconds: float64(100 - i)})
	}
	r.Routes[3].State, r.Routes[4].Failing, r.Routes[5].Error = "outage", 1, long
	got := r.Bound()
	if got.Tables[0].LagSeconds != 90 || got.Items[0].AgeSeconds != 100 || !got.Routes[0].Troubled() || !got.Routes[2].Troubled() || got.Routes[3].Troubled() || got.Routes[3].PerSecond != 49 {
		t.Errorf("%+v", got)
	}
	if len(r.Items[0].Error) != len(long) || r.Tables[0].LagSeconds != 0 || r.Tables[0].Unsettled != 5 {
		t.Error("the report itself was changed")
	}
	f := newTable()
	rep := Reporter{Store: f, App: "shop"}
	if err := rep.Report(t.Context(), "w", r); err != nil {
		t.Fatal(err)
	}
	data, ok, err := f.GetValue(t.Context(), "shop", reports+"w")
	if !ok || err != nil || len(data) > 24<<10 || len(data) > staterules.MaxValue {
		t.Errorf("%d bytes, %v, %v", len(data), ok, err)
	}
	quiet := Report{Tables: []TableReport{{"t", 9.9, 3}}, Routes: []RouteReport{{Route: "r", State: "works"}}}.Bound()
	if len(quiet.Routes) != 0 || quiet.Lag() != 0 || quiet.Tables[0].Unsettled != 0 {
		t.Errorf("at rest: %+v", quiet)
	}
}
