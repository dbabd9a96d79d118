package demo

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/examples/estuve"
	"github.com/sluicehq/sluice/internal/localstack"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/sinks/dynamodb"
)

const (
	estuveMain  = "./examples/estuve/main"
	mapPoints   = 600
	watchEvery  = 250 * time.Millisecond
	pointBudget = "150" // write units a second, so that there is something to watch
)

// byCascade deletes a map with many points: the estuve program hands over to
// the queue, deletes the points within a budget, and counts them off the user.
func (d *demo) byCascade(ctx context.Context) error {
	d.title("5. Estuve: a map is deleted, and %d points with it", mapPoints)
	ctx, cancel := context.WithTimeoutCause(ctx, 8*patience, fmt.Errorf("the cascade did not come to its end within %v", 8*patience))
	defer cancel()
	program := filepath.Join(d.dir, "estuve")
	if err := localstack.Build(ctx, program, "-tags", "lambda.norpc", estuveMain); err != nil {
		return err
	}
	prefix := d.table + "-"
	tables := estuve.Named(prefix)
	if err := estuve.Create(ctx, d.world.cfg, tables); err != nil {
		return err
	}
	queue, err := d.world.createQueue(ctx, d.table+"-cascades")
	if err != nil {
		return err
	}
	store, err := dynamodb.New(d.world.cfg, dynamodb.Options{Keys: tables.Keys()})
	if err != nil {
		return err
	}
	p, err := startDaemon(program, []string{
		"--start", "TRIM_HORIZON", "--state", filepath.Join(d.dir, "estuve.db"), "--listen", "off", "--queue", queue,
	}, append(d.daemonEnv(queue),
		"SLUICE_TABLES=", "ESTUVE_PREFIX="+prefix, "ESTUVE_QUEUE="+queue, "ESTUVE_THRESHOLD=100", "ESTUVE_BUDGET="+pointBudget))
	if err != nil {
		return err
	}
	defer p.Kill()
	w := &cascadeWatch{d: d, reads: estuve.Reads{Tables: tables, Store: store}}
	if err := fill(ctx, store, tables); err != nil {
		return err
	}
	d.row("written", "a user, a map, %d points; their counters come from the streams", mapPoints)
	if err := w.until(ctx, p, seen{points: mapPoints, onMap: mapPoints, onUser: mapPoints, maps: 1}); err != nil {
		return err
	}
	d.row("counted", "%s", green(fmt.Sprintf("%d on the map, %d on the user", mapPoints, mapPoints)))
	if err := store.Delete(ctx, tables.Maps, mapKey); err != nil {
		return err
	}
	began := time.Now()
	d.row("deleted", "the map; 100 points at most go with its record, else a message tells the worker")
	if err := w.until(ctx, p, seen{}); err != nil {
		return err
	}
	d.row("gone", "%s after %s, on a budget of %s write units a second", green("all points, and every count is 0 again"), ms(time.Since(began)), pointBudget)
	return p.Stop()
}

var mapKey = item.Of(item.String("user_id", "u-1"), item.String("map_id", "m-1"))

// fill writes what a user's application would.
func fill(ctx context.Context, store *dynamodb.Store, tables estuve.Tables) error {
	if err := store.Put(ctx, tables.Users, item.Of(item.String("user_id", "u-1"))); err != nil {
		return err
	}
	if err := store.Put(ctx, tables.Maps, mapKey.With(item.String("name", "Alps"))); err != nil {
		return err
	}
	points := make([]sluice.Item, mapPoints)
	for i := range points {
		points[i] = item.Of(item.String("map_id", "m-1"), item.String("point_id", fmt.Sprintf("p-%04d", i)), item.String("user_id", "u-1"))
	}
	return errors.Join(store.PutAll(ctx, tables.Points, points)...)
}

// seen is the state at a moment.
type seen struct{ points, onMap, onUser, maps int64 }

// cascadeWatch prints what becomes of the tables.
type cascadeWatch struct {
	d     *demo
	reads estuve.Reads
	last  seen
}

// until looks until all is as wanted, and prints a line where something moved.
func (w *cascadeWatch) until(ctx context.Context, p *daemon, want seen) error {
	for tick := time.NewTicker(watchEvery); ; {
		now, err := w.look(ctx)
		if err != nil {
			return err
		}
		if now == want {
			tick.Stop()
			w.last = now
			return nil
		}
		if now.points != w.last.points || now.onUser != w.last.onUser {
			w.d.effect("", "%4d points there, %4d counted on the user", now.points, now.onUser)
		}
		w.last = now
		select {
		case <-tick.C:
		case <-p.Ended():
			return p.Failure(errors.New("it ended by itself"))
		case <-ctx.Done():
			return p.Failure(fmt.Errorf("%w: it is %+v, want %+v", context.Cause(ctx), now, want))
		}
	}
}

func (w *cascadeWatch) look(ctx context.Context) (s seen, err error) {
	u, _, err := w.reads.User(ctx, "u-1")
	if err != nil {
		return s, err
	}
	m, _, err := w.reads.Map(ctx, "u-1", "m-1")
	if err != nil {
		return s, err
	}
	s.onUser, s.maps, s.onMap = u.Points, u.Maps, m.Points
	for after := ""; ; {
		points, next, err := w.reads.Points(ctx, "m-1", 0, after)
		if err != nil {
			return s, err
		}
		s.points += int64(len(points))
		if after = next; after == "" {
			return s, nil
		}
	}
}
