package config

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/handlers/cascade"
	"github.com/sluicehq/sluice/router"
)

// workerName is the route that works off the queues of cascades.
const workerName = cascade.Kind

// maxPlanned is how many rows of a cascade are counted when it is explained.
const maxPlanned = 10_000

func (b *builder) cascade(rt *Route, field string) (*built, error) {
	o := rt.Cascade
	if err := rt.only(field, "REMOVE"); err != nil {
		return nil, b.c.wrong(field, err)
	}
	table, err := b.tableOf(rt, o.Table)
	if err != nil {
		return nil, b.c.wrong(field+".table", err)
	}
	c := cascade.Config{Table: table, Key: o.Key, Threshold: cascade.DefaultThreshold, Metrics: b.s.Metrics, Logger: b.s.Logger}
	needsOld := false
	used := []string{table}
	for _, child := range o.Children {
		kind := cascade.Child{Name: child.Name, Table: child.Table, Key: child.Key, Index: child.Index, Partition: cascade.Attr(child.Partition)}
		if child.Sort != nil {
			kind.Sort = cascade.Attr(*child.Sort)
		}
		if child.NotNewer != nil {
			kind.NotNewer = cascade.Limit(*child.NotNewer)
		}
		for _, from := range []string{kind.Partition.From, kind.Sort.From, kind.NotNewer.From} {
			needsOld = needsOld || from != "" && !slices.Contains(o.Key, from)
		}
		if child.Table != "" {
			used = append(used, child.Table)
		}
		c.Children = append(c.Children, kind)
	}
	if o.Queue != "" {
		b.sinks.users = append(b.sinks.users, workerName)
	}
	store := b.sinks.use(field, used...)
	c.Get, c.Query, c.Delete = store.Get, store.Query, store.DeleteGuarded
	var q *queue
	switch {
	case o.Queue != "":
		if q, err = b.delaying(o.Queue, field+".queue"); err != nil {
			return nil, err
		}
		c.Send = q.send
		if o.Threshold != nil {
			c.Threshold = *o.Threshold
		}
	case o.Threshold != nil:
		return nil, b.c.wrong(field+".threshold", fmt.Errorf("it is for a cascade with a queue; without one a record deletes all itself"))
	default:
		c.Threshold = cascade.Unlimited
	}
	made, err := cascade.New(c)
	if err != nil {
		return nil, b.c.wrong(field, err)
	}
	if q != nil {
		b.consume(q.name)
		b.worked = append(b.worked, made)
	}
	r := &built{handle: made.Remove, late: true}
	if needsOld {
		r.options = append(r.options, router.NeedsOld())
	}
	r.Cascade = made
	r.Explain = func(ctx context.Context, rec *sluice.Record) ([]Effect, error) {
		return b.planned(ctx, made, c.Threshold, q, rec)
	}
	return r, nil
}

// planned are the effects of a cascade on the tables as they are.
func (b *builder) planned(ctx context.Context, c *cascade.Cascade, threshold int, q *queue, rec *sluice.Record) ([]Effect, error) {
	parent := rec.Keys
	if rec.Old.Exists() {
		parent = rec.Old
	}
	rows, all := map[string]int{}, 0
	for row, err := range c.Plan(ctx, parent) {
		if err != nil {
			return nil, err
		}
		rows[row.Table]++
		if all++; all == maxPlanned {
			break
		}
	}
	var effects []Effect
	for _, table := range slices.Sorted(maps.Keys(rows)) {
		count := fmt.Sprintf("%d rows", rows[table])
		switch {
		case all == maxPlanned:
			count = "at least " + count
		case rows[table] == 1:
			count = "1 row"
		}
		does := "delete " + count + " of table " + table
		if q != nil && rows[table] > threshold {
			does += ", what a record does not delete itself by queue " + q.name
		}
		effects = append(effects, Effect{Does: does, Sink: b.sinks.storeName, Target: table, Key: string(rec.Keys.AppendJSON(nil))})
	}
	return effects, nil
}

// addWorker adds the route that works off the queues of all cascades. It is one
// for all queues: which queue a message came by tells nothing.
func (b *builder) addWorker() error {
	if len(b.worked) == 0 {
		return nil
	}
	work, err := cascade.Worker(b.worked...)
	if err != nil {
		return b.c.wrong("routes", err)
	}
	if err := b.app.Router.Add(b.c.place("routes"), cascade.Kind+"#MESSAGE", work, router.Name(workerName)); err != nil {
		return err
	}
	sink := b.sinks.storeName
	b.app.Routes = append(b.app.Routes, BuiltRoute{
		Name: workerName, Kind: "cascade",
		Explain: func(_ context.Context, rec *sluice.Record) ([]Effect, error) {
			table, _ := rec.New.Lookup("table")
			key, _ := rec.New.Lookup("key")
			return []Effect{{
				Does: "delete the rows of table " + table.Str() + " that the message names, if their parent is gone",
				Sink: sink, Target: table.Str(), Key: string(key.AppendJSON(nil)),
			}}, nil
		},
	})
	return nil
}
