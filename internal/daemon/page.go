package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/holders"
	"github.com/sluicehq/sluice/internal/page"
	"github.com/sluicehq/sluice/sources/poller"
)

// Explained is a [page.Explained].
type Explained = page.Explained

// shown is a daemon as its page shows it.
type shown struct {
	*letterServer
	o      Options
	src    *sources
	status func() page.Status // of this process alone
	fleet  *fleetView         // nil: the state is a file
}

// wanted has one handler answer browsers that want a page, and one the others.
func wanted(browsers, others http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Vary", "Accept")
		if page.Wanted(r) {
			browsers.ServeHTTP(w, r)
			return
		}
		others.ServeHTTP(w, r)
	})
}

// Status implements [page.Daemon].
func (d *shown) Status() page.Status {
	st := d.status()
	others, err := d.others(fleetOld, countWithin)
	if addRoutes(st.Routes, others); err != nil {
		st.Unknown = unknownWorkers(err)
	}
	for _, w := range others {
		st.Held += w.Report.Held
	}
	return st
}

// Tables implements [page.Daemon].
func (d *shown) Tables() []page.Table {
	if d.src.poller == nil {
		return nil
	}
	workers, _ := d.fleet.get(fleetOld, countWithin) // without them, owners are missing
	owners, me := make(map[[2]string]string), d.src.poller.Owner()
	for _, w := range workers {
		for _, h := range w.Shards {
			owners[[2]string{h.StreamARN, h.ShardID}] = w.Name
		}
	}
	tables := tablesShown(d.src.poller.Lineage(), d.src.poller.Shards(), owners, me)
	addTables(tables, others(workers, me))
	return tables
}

// streamRetention is how long a stream keeps a record.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Streams.html
const streamRetention = 24 * time.Hour

// tablesShown joins the lineage of the shards with the status of the shards that this
// worker reads, and with the owners of the fleet by stream and id.
func tablesShown(known []poller.KnownShard, reads []poller.Status, owners map[[2]string]string, me string) []page.Table {
	var tables []page.Table
	table := func(name string) *page.Table {
		i := slices.IndexFunc(tables, func(t page.Table) bool { return t.Table == name })
		if i < 0 {
			i, tables = len(tables), append(tables, page.Table{Table: name, HoursToLoss: page.Unknown})
		}
		return &tables[i]
	}
	at := make(map[poller.Shard]int, len(reads))
	for i, s := range reads {
		at[s.Shard] = i
	}
	add := func(k poller.KnownShard) {
		t := table(k.Shard.Table)
		s := page.Shard{Table: k.Shard.Table, ID: k.Shard.ID, Parent: k.Parent, State: page.Open, HoursToLoss: page.Unknown, Owner: owners[[2]string{k.Shard.StreamARN, k.Shard.ID}]}
		i, reading := at[k.Shard]
		delete(at, k.Shard)
		switch {
		case k.Halted:
			s.State = page.Halted
		case k.Settled && !reading:
			s.State, s.Owner = page.Settled, ""
			t.Settled++
		case k.Closed:
			s.State = page.Closed
		}
		if s.State != page.Settled {
			t.Open++
		}
		if reading {
			r := reads[i]
			s.Reading, s.Owner, s.Position, s.LagSeconds, s.Unsettled, s.LastPoll, s.Error = true, me, r.Position, r.Lag.Seconds(), r.Unsettled, r.LastPoll, plain(r.Err)
			s.HoursToLoss = page.Hours(max(0, streamRetention-r.Lag).Hours())
			t.Reading++
			t.Unsettled += s.Unsettled
			t.LagSeconds = max(t.LagSeconds, s.LagSeconds)
			if t.HoursToLoss < 0 || s.HoursToLoss < t.HoursToLoss {
				t.HoursToLoss = s.HoursToLoss
			}
		}
		t.Shards = append(t.Shards, s)
	}
	for _, k := range known {
		add(k)
	}
	for _, s := range reads { // the lineage is told later
		if _, ok := at[s.Shard]; ok {
			add(poller.KnownShard{Shard: s.Shard})
		}
	}
	return tables
}

// Held implements [page.Daemon].
func (d *shown) Held(patient bool) page.HeldItems {
	age, within := fleetOld, countWithin
	if patient {
		age, within = fleetEvery, listWithin
	}
	others, err := d.others(age, within)
	return addItems(d.src.waiting(), others, err)
}

// Gaps implements [page.Daemon].
func (d *shown) Gaps() []page.Gap {
	var all []page.Gap
	for _, g := range d.src.Gaps() {
		all = append(all, gapOf(g, d.o.Repairs))
	}
	return all
}

func gapOf(g sluice.Gap, repairs []string) page.Gap {
	return page.Gap{ID: gapID(g), Table: g.Table, Found: g.Found, Lost: shortARNs(g.String()), Repair: repairs}
}

// Acknowledge implements [page.Daemon].
func (d *shown) Acknowledge(ctx context.Context, ids []string) error {
	return acknowledgeSome(ctx, d.src, ids, d.logger)
}

// Throttle implements [page.Daemon].
func (d *shown) Throttle(ctx context.Context, action string, form url.Values) (warning string, err error) {
	a, err := d.src.throttles.act(ctx, action, form)
	return a.Warning, err
}

// Workers implements [page.Daemon].
func (d *shown) Workers(context.Context) ([]holders.Worker, error) {
	return d.fleet.get(fleetOld, countWithin)
}

// Explain implements [page.Letters].
func (d *shown) Explain(ctx context.Context, rec *sluice.Record) []page.Explained {
	if d.o.Explain == nil {
		return nil
	}
	return d.o.Explain(ctx, rec)
}

// Redrive implements [page.Letters].
func (d *shown) Redrive(ctx context.Context, ids []string, f deadletter.Filter, how deadletter.How) (deadletter.Report, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(d.ctx, cancel)()
	told := how.Told
	how.Fetch, how.Told = d.fetch, func(o deadletter.Outcome) {
		d.logOutcome(o, how.DryRun)
		told(o)
	}
	return redrive(ctx, d.box, d.routes, slices.Sorted(slices.Values(ids)), f, how) // those of an item in order
}

// Purge implements [page.Letters].
func (d *shown) Purge(ctx context.Context, ids []string, f deadletter.Filter, dryRun bool) (n int, err error) {
	if len(ids) == 0 {
		return d.purgeAll(ctx, f, dryRun)
	}
	for _, id := range ids {
		switch e, err := d.Show(ctx, id); {
		case errors.Is(err, deadletter.ErrNotFound): // somebody was faster
			continue
		case err == nil && e.Gap != nil:
			return n, fmt.Errorf("%s is a gap, which is acknowledged on the page Gaps", id)
		}
		if !dryRun {
			if err := d.delete(ctx, id); err != nil {
				return n, err
			}
		}
		n++
	}
	return n, nil
}

// Settings implements [page.Daemon].
func (d *shown) Settings() page.Settings {
	o := d.o
	endpoint := o.Endpoint
	if u, err := url.Parse(endpoint); err == nil {
		endpoint = u.Redacted()
	}
	var s page.Settings
	for _, one := range []struct {
		name  string
		value any
	}{
		{"application", o.Application}, {"tables", strings.Join(o.Tables, ", ")}, {"queues", strings.Join(o.Queues, ", ")}, {"start", o.Start},
		{"state", o.State}, {"listen", o.Listen}, {"allowed hosts", strings.Join(o.AllowHosts, ", ")}, {"dead letters park", o.DeadLetter},
		{"backfill", o.Backfill}, {"require sinks", o.RequireSinks}, {"grace", o.Grace}, {"Region", o.Region}, {"endpoint of DynamoDB", endpoint},
		{"concurrency", o.Limits.Concurrency}, {"window", o.Limits.Window}, {"log", o.LogFormat + ", " + o.LogLevel}, {"profiles", o.Pprof},
	} {
		value := fmt.Sprint(one.value)
		if value == "0" {
			value = "default"
		}
		s.Values = append(s.Values, page.Setting{Name: one.name, Value: value})
	}
	for _, at := range o.Accounts {
		if text := strings.TrimPrefix(at.String(), at.Field+": "); text != "" {
			s.Values = append(s.Values, page.Setting{Name: at.Field, Value: text})
		}
	}
	return s
}
