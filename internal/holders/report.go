package holders

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice/state"
)

// Report is what a worker says of its work to people who look at another one. Its
// process stores it as a value of the application: workers never call each other.
type Report struct {
	At     time.Time     `json:"at"` // by the worker's clock
	Tables []TableReport `json:"tables,omitempty"`
	Routes []RouteReport `json:"routes,omitempty"` // with calls, records that wait or a trouble, the worst first
	Held   int           `json:"held"`             // items
	Items  []Item        `json:"items,omitempty"`  // the oldest of them
}

// TableReport is the worker's part of a table.
type TableReport struct {
	Table      string  `json:"table"`
	LagSeconds float64 `json:"lagSeconds"` // the largest of its shards
	Unsettled  uint64  `json:"unsettled"`
}

// RouteReport is a route at the worker.
type RouteReport struct {
	Route     string  `json:"route"`
	State     string  `json:"state"`
	PerSecond float64 `json:"callsPerSecond"`
	Failing   int     `json:"failingItems"`
	Waiting   int     `json:"waitingRecords"`
	Error     string  `json:"error,omitempty"` // of the last call that failed
}

// Item is an item whose changes wait at a worker.
type Item struct {
	Worker     string  `json:"worker,omitempty"` // empty: the worker that was asked
	Source     string  `json:"source"`           // stream, backfill or queue
	Table      string  `json:"table"`
	Shard      string  `json:"shard,omitempty"`
	Sequence   string  `json:"sequence,omitempty"` // number of the change that waits; a backfill has none
	Key        string  `json:"key"`                // a hash of the item's keys, the same for all of its changes while the process lives
	Route      string  `json:"route"`
	Attempts   int     `json:"attempts"`
	AgeSeconds float64 `json:"ageSeconds"`
	Bytes      int64   `json:"bytes"` // of the change and those behind it
	Stuck      bool    `json:"stuck"` // its handler does not return
	Error      string  `json:"error,omitempty"`
}

// What a report holds at most. A value may have 64 KiB.
const (
	reportedTables = 16
	reportedRoutes = 16
	reportedItems  = 10
	reportedError  = 120 // characters
	reportedName   = 255
)

// Bound shortens lists and texts, and rounds small changes away, so that no report is
// stored for them: a lag is of whole tens of seconds.
func (r Report) Bound() Report {
	r.Tables, r.Routes, r.Items = slices.Clone(r.Tables), slices.Clone(r.Routes), slices.Clone(r.Items)
	for i := range r.Tables {
		t := &r.Tables[i]
		if t.LagSeconds = 10 * math.Trunc(t.LagSeconds/10); t.LagSeconds == 0 {
			t.Unsettled = 0
		}
	}
	slices.SortStableFunc(r.Tables, func(a, b TableReport) int {
		return cmp.Or(cmp.Compare(b.LagSeconds, a.LagSeconds), strings.Compare(a.Table, b.Table))
	})
	r.Routes = slices.DeleteFunc(r.Routes, func(a RouteReport) bool { return a.PerSecond == 0 && a.Waiting == 0 && !a.Troubled() })
	slices.SortStableFunc(r.Routes, func(a, b RouteReport) int {
		if a.Troubled() != b.Troubled() {
			if a.Troubled() {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(b.PerSecond, a.PerSecond), strings.Compare(a.Route, b.Route))
	})
	r.Tables, r.Routes, r.Items = first(r.Tables, reportedTables), first(r.Routes, reportedRoutes), first(r.Items, reportedItems)
	for i := range r.Routes {
		r.Routes[i].Route, r.Routes[i].Error = cut(r.Routes[i].Route, reportedName), cut(r.Routes[i].Error, reportedError)
	}
	for i := range r.Items {
		r.Items[i].Route, r.Items[i].Error = cut(r.Items[i].Route, reportedName), cut(r.Items[i].Error, reportedError)
	}
	return r
}

// Troubled reports whether something fails, or is overloaded.
func (r RouteReport) Troubled() bool { return r.State != "works" || r.Failing > 0 || r.Error != "" }

func first[T any](all []T, n int) []T { return all[:min(len(all), n)] }

func cut(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

// news reports whether r says something that before does not. The age of an item is news
// after agedAfter: readers have other clocks.
func (r Report) news(before Report) bool {
	if age := r.At.Sub(before.At); age >= storedFor || r.Held > 0 && age >= agedAfter {
		return true
	}
	plain := func(r Report) []byte {
		r.At, r.Items = time.Time{}, slices.Clone(r.Items)
		for i := range r.Items {
			r.Items[i].AgeSeconds = 0
		}
		data, _ := json.Marshal(r) // numbers and texts
		return data
	}
	return !bytes.Equal(plain(r), plain(before))
}

// Lag is the largest of the tables.
func (r Report) Lag() (seconds float64) {
	for _, t := range r.Tables {
		seconds = max(seconds, t.LagSeconds)
	}
	return seconds
}

// PerSecond is the calls a second of the reported routes.
func (r Report) PerSecond() (all float64) {
	for _, one := range r.Routes {
		all += one.PerSecond
	}
	return all
}

const (
	reports = "workers/" // and the name of the worker: the name of its value
	// storedFor is how long a report without news is not stored again,
	storedFor = time.Hour
	// and agedAfter while items are held.
	agedAfter = 30 * time.Second
	// forgottenAfter is the age of a report whose worker nobody knows any more.
	forgottenAfter = 24 * time.Hour
)

// IsReport reports whether a value of an application is the report of a worker, which
// has no meaning elsewhere.
func IsReport(value string) bool { return strings.HasPrefix(value, reports) }

// Reporter stores the reports of one process.
type Reporter struct {
	Store state.Values
	App   string

	worker string // whose report is stored, or may be
	last   Report
}

// Report stores the report of a worker if it has news. A worker of another name replaces
// the one before.
func (r *Reporter) Report(ctx context.Context, worker string, report Report) error {
	if worker != r.worker {
		if err := r.Forget(ctx); err != nil {
			return err
		}
	}
	report = report.Bound()
	if worker == "" || !report.news(r.last) {
		return nil
	}
	var data bytes.Buffer
	e := json.NewEncoder(&data)
	e.SetEscapeHTML(false) // shorter
	if err := e.Encode(report); err != nil {
		return err
	}
	r.worker, r.last = worker, Report{} // the stored report is unknown until the response
	if err := r.Store.PutValue(ctx, r.App, reports+worker, data.Bytes()); err != nil {
		return err
	}
	r.last = report
	return nil
}

// Forget deletes the stored report.
func (r *Reporter) Forget(ctx context.Context) error {
	if r.worker == "" {
		return nil
	}
	err := r.Store.DeleteValue(ctx, r.App, reports+r.worker)
	if err == nil {
		r.worker = ""
	}
	return err
}

// List lists the workers of an application as [Fleet] does, the living ones with their
// reports, which are up to agedAfter older.
func List(ctx context.Context, f Fleet, app string) ([]Worker, error) {
	all, err := f.Workers(ctx, app)
	if err != nil {
		return nil, err
	}
	values, err := f.ListValues(ctx, app, reports)
	if err != nil {
		return nil, err
	}
	for _, v := range values {
		name := strings.TrimPrefix(v.Name, reports)
		i := slices.IndexFunc(all, func(w Worker) bool { return w.Name == name && w.State == Living })
		var r Report
		if i < 0 || json.Unmarshal(v.Data, &r) != nil { // of a program that writes them otherwise
			continue
		}
		for n := range r.Items {
			r.Items[n].Worker = name
		}
		all[i].Report = &r
	}
	return all, nil
}

// Sweep deletes the reports of workers that have ended.
func Sweep(ctx context.Context, f Fleet, app string, all []Worker) error {
	values, err := f.ListValues(ctx, app, reports)
	if err != nil {
		return err
	}
	for _, v := range values {
		name := strings.TrimPrefix(v.Name, reports)
		i := slices.IndexFunc(all, func(w Worker) bool { return w.Name == name })
		var r Report
		ended := i >= 0 && all[i].State == Fenced
		if i < 0 && json.Unmarshal(v.Data, &r) == nil { // it has not claimed, or ended long ago
			ended = time.Since(r.At) > forgottenAfter
		}
		if ended {
			if err := f.DeleteValue(ctx, app, v.Name); err != nil {
				return err
			}
		}
	}
	return nil
}
