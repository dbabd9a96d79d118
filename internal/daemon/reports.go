package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/sluicehq/sluice/internal/backoff"
	"github.com/sluicehq/sluice/internal/holders"
	"github.com/sluicehq/sluice/internal/page"
)

const (
	// reportEvery is how often a worker looks whether it has news for those who look at
	// another worker.
	reportEvery = 5 * time.Second
	// forgetWithin bounds the deletion of the last report, at a stop.
	forgetWithin = 2 * time.Second
)

// report is this worker as others show it.
func (s *sources) report() holders.Report {
	held := s.waiting()
	r := holders.Report{At: time.Now().UTC().Truncate(time.Second), Held: len(held), Items: held}
	for _, t := range tablesShown(nil, s.poller.Shards(), nil, "") {
		r.Tables = append(r.Tables, holders.TableReport{Table: t.Table, LagSeconds: t.LagSeconds, Unsettled: t.Unsettled})
	}
	for _, one := range s.routesShown() {
		r.Routes = append(r.Routes, holders.RouteReport{
			Route: one.Route, State: one.State, PerSecond: one.Rate(), Failing: one.Failing, Waiting: one.Waiting, Error: one.Error,
		})
	}
	return r
}

// tellOthers stores the report of this worker, until ctx ends.
func (s *sources) tellOthers(ctx context.Context, fleet holders.Fleet, application string, logger *slog.Logger) {
	r, failing := holders.Reporter{Store: fleet, App: application}, false
	for backoff.Sleep(ctx, reportEvery) == nil {
		within, cancel := context.WithTimeout(ctx, reportEvery)
		err := r.Report(within, s.poller.Owner(), s.report())
		cancel()
		if err != nil && !failing && ctx.Err() == nil {
			logger.Warn("other workers do not show the news of this one: the state table fails", "error", err)
		}
		failing = err != nil
	}
	over, cancel := context.WithTimeout(context.WithoutCancel(ctx), forgetWithin)
	defer cancel()
	_ = r.Forget(over) // of an ended worker nobody shows it
}

// others are the workers with a report, without the named one.
func others(workers []holders.Worker, me string) (all []holders.Worker) {
	for _, w := range workers {
		if w.Report != nil && w.Name != me {
			all = append(all, w)
		}
	}
	return all
}

// others are the other living workers that have a report. See [fleetView.get].
func (d *shown) others(age, within time.Duration) ([]holders.Worker, error) {
	if d.src.poller == nil {
		return nil, nil
	}
	workers, err := d.fleet.get(age, within)
	return others(workers, d.src.poller.Owner()), err
}

func addItems(all []holders.Item, others []holders.Worker, err error) page.HeldItems {
	unlisted := []string{}
	for _, w := range others {
		all = append(all, w.Report.Items...)
		if n := w.Report.Held - len(w.Report.Items); n > 0 {
			unlisted = append(unlisted, fmt.Sprintf("worker %s holds %d more", w.Name, n))
		}
	}
	if err != nil {
		unlisted = append(unlisted, unknownWorkers(err))
	}
	slices.SortStableFunc(all, func(a, b holders.Item) int { return cmp.Compare(b.AgeSeconds, a.AgeSeconds) })
	return page.HeldItems{Held: all, Unlisted: unlisted}
}

func unknownWorkers(err error) string {
	return "what other workers do is not known: " + plain(err)
}

// addTables adds to tables what other workers say of theirs.
func addTables(tables []page.Table, others []holders.Worker) {
	for _, w := range others {
		for _, r := range w.Report.Tables {
			i := slices.IndexFunc(tables, func(t page.Table) bool { return t.Table == r.Table })
			if i < 0 {
				continue
			}
			t := &tables[i]
			t.Unsettled += r.Unsettled
			t.LagSeconds = max(t.LagSeconds, r.LagSeconds)
			if left := page.Hours(max(0, streamRetention.Hours()-r.LagSeconds/3600)); t.HoursToLoss < 0 || left < t.HoursToLoss {
				t.HoursToLoss = left
			}
		}
	}
}

// addRoutes adds to routes what other workers say of theirs.
func addRoutes(routes []page.Route, others []holders.Worker) {
	for _, w := range others {
		for _, r := range w.Report.Routes {
			if i := slices.IndexFunc(routes, func(one page.Route) bool { return one.Route == r.Route }); i >= 0 {
				routes[i].Others = append(routes[i].Others, page.RouteAt{Worker: w.Name, RouteReport: r})
			}
		}
	}
}

// fleetView reads the workers of the state table for no more than who looks at them
// needs: a list reads a row of each shard. nil is the view of a state file: no workers.
type fleetView struct {
	fleet       holders.Fleet
	application string

	reading singleflight.Group

	mu    sync.Mutex
	begun time.Time // the list that is being made; zero: none is
	last  []holders.Worker
	at    time.Time // of last
	err   error     // of the list after it
}

const (
	fleetEvery = 15 * time.Second // between two lists, while somebody looks
	fleetOld   = time.Minute      // when a list says nothing of now
	listWithin = 10 * time.Second // bounds a list, which takes 1 s, and 4 s if a worker is silent
)

var errNoList = errors.New("the list of the workers has not come yet: ask again")

// get returns the workers of a list that is at most fleetOld old. It has a new one made
// after fleetEvery, and waits for that if the last one is older than age: until within
// after its begin. So a page that asks several times waits once.
func (v *fleetView) get(age, within time.Duration) ([]holders.Worker, error) {
	if v == nil {
		return nil, nil
	}
	v.mu.Lock()
	old := time.Since(v.at)
	if old >= fleetEvery && v.begun.IsZero() {
		v.begun = time.Now()
	}
	begun := v.begun
	v.mu.Unlock()
	if old >= fleetEvery {
		read := v.reading.DoChan("", func() (any, error) { v.read(); return nil, nil })
		if old >= age {
			select {
			case <-read:
			case <-time.After(time.Until(begun.Add(within))):
			}
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if old = time.Since(v.at); old < fleetOld {
		return aged(v.last, old), nil
	}
	return nil, cmp.Or(v.err, errNoList)
}

func (v *fleetView) read() {
	ctx, cancel := context.WithTimeout(context.Background(), listWithin)
	defer cancel()
	workers, err := holders.List(ctx, v.fleet, v.application)
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.begun, v.err = (time.Time{}), err; err == nil {
		v.last, v.at = workers, time.Now()
	}
}

// aged returns workers of a list whose held items have grown older since.
func aged(workers []holders.Worker, by time.Duration) []holders.Worker {
	workers = slices.Clone(workers)
	for i, w := range workers {
		if w.Report == nil || len(w.Report.Items) == 0 {
			continue
		}
		r := *w.Report
		r.Items = slices.Clone(r.Items)
		for n := range r.Items {
			r.Items[n].AgeSeconds += by.Seconds()
		}
		workers[i].Report = &r
	}
	return workers
}
