package daemon

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"

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
	r := holders.Report{At: time.Now().UTC().Truncate(time.Second), Held: len(held), Items: items(held)}
	for _, t := range tablesOf(s.poller.Shards(), nil) {
		r.Tables = append(r.Tables, holders.TableReport{Table: t.Table, LagSeconds: t.LagSeconds, Unsettled: t.Unsettled})
	}
	states := s.routes()
	for i, one := range s.group.States() {
		for _, st := range states { // also of a queue: the last one counts
			if st.Route == one.Route {
				one = st
			}
		}
		r.Routes = append(r.Routes, holders.RouteReport{
			Route: one.Route, State: one.State.String(), PerSecond: s.rates.last(i).Rate(), Failing: one.Failing, Waiting: one.Waiting, Error: plain(one.Err),
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

// others are the other living workers that have a report.
func (v *fleetView) others(me string) (all []holders.Worker) {
	if v == nil {
		return nil
	}
	workers, _ := v.get() // without them, others are missing
	for _, w := range workers {
		if w.Report != nil && w.Name != me {
			all = append(all, w)
		}
	}
	return all
}

// others are the other living workers that have a report.
func (d *shown) others() []holders.Worker {
	if d.src.poller == nil {
		return nil
	}
	return d.fleet.others(d.src.poller.Owner())
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

// addItems adds the items that other workers name, and returns all, the oldest first.
func addItems(all []holders.Item, others []holders.Worker) []holders.Item {
	for _, w := range others {
		all = append(all, w.Report.Items...)
	}
	slices.SortStableFunc(all, func(a, b holders.Item) int { return cmp.Compare(b.AgeSeconds, a.AgeSeconds) })
	return all
}
