package deadletter

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/sluicehq/sluice"
)

// Redrive runs the route of one entry again, or all routes that its record
// takes when it names none, and deletes the entry once they have succeeded. An
// entry that fails again stays, with the new error; where it named no route
// it becomes one entry for each route that failed. Routes that do not allow
// redriven records refuse before anything is run; a gap, which has no record,
// is refused too ([ErrRefused]).
func (b *Box) Redrive(ctx context.Context, m sluice.Matcher, id string) error {
	b.redrive.Lock()
	defer b.redrive.Unlock()
	e, err := b.Get(ctx, id)
	if err != nil {
		return err
	}
	return b.redriveEntry(ctx, m, e)
}

// Report is what RedriveAll did.
type Report struct {
	Done    int // succeeded; deleted
	Failed  int // failed or were refused; kept
	Waiting int // not tried, because an earlier change of their item is still parked; kept
	Gaps    int // not tried, because they have no record; kept
}

// RedriveAll redrives every entry of a route, or of all when route is empty,
// a table's streams one behind the other, each in the order of ids: changes of
// one item in their order, and none after one that failed or that, parked for
// all routes, is left out. The error joins those of the entries; cancelling
// ctx ends it between two entries.
func (b *Box) RedriveAll(ctx context.Context, m sluice.Matcher, route string) (Report, error) {
	b.redrive.Lock()
	defer b.redrive.Unlock()
	var (
		r      Report
		errs   []error
		failed = make(map[heldItem][]string) // routes of items that are still parked, "" is all
	)
	streams, err := b.streams(ctx)
	if err != nil {
		errs = append(errs, err)
	}
	for after := ""; len(streams) > 0; {
		entries, last, err := b.List(ctx, after, page)
		if err != nil && last == "" { // else entries cannot be read, which is told above
			errs = append(errs, err)
		}
		for _, e := range entries {
			if e.StreamARN != streams[0] {
				continue
			}
			if e.Gap != nil {
				if route == "" {
					r.Gaps++
				}
				continue
			}
			rec := e.Record()
			it := itemOf(rec)
			if route != "" && e.Route != route {
				if e.Route == "" && rec.Keys.Exists() { // it is for this route too
					failed[it] = append(failed[it], "")
				}
				continue
			}
			if err := ctx.Err(); err != nil {
				return r, errors.Join(append(errs, err)...)
			}
			if behind := failed[it]; slices.Contains(behind, "") || slices.Contains(behind, e.Route) || e.Route == "" && behind != nil {
				r.Waiting++
				continue
			}
			if err := b.redriveEntry(ctx, m, e); err != nil {
				r.Failed++
				errs = append(errs, err)
				if rec.Keys.Exists() {
					failed[it] = append(failed[it], e.Route)
				}
				continue
			}
			r.Done++
		}
		if after = last; last == "" {
			streams = streams[1:]
		}
	}
	return r, errors.Join(errs...)
}

// streams lists those that have entries; of one table the oldest comes first.
func (b *Box) streams(ctx context.Context) (all []string, err error) {
	var errs []error
	for after := ""; ; {
		entries, last, err := b.List(ctx, after, page)
		if err != nil {
			errs = append(errs, err)
		}
		for _, e := range entries {
			if i, ok := slices.BinarySearch(all, e.StreamARN); !ok {
				all = slices.Insert(all, i, e.StreamARN)
			}
		}
		if last == "" {
			return all, errors.Join(errs...)
		}
		after = last
	}
}

func (b *Box) redriveEntry(ctx context.Context, m sluice.Matcher, e Entry) error {
	if e.Gap != nil {
		return fmt.Errorf("dead letter %s: %w: it is a gap, and has no record to run: %v; compare what was made of the table with the table itself, then delete the dead letter", e.ID, ErrRefused, e.Gap)
	}
	rec := e.Record()
	routes, err := routesOf(m, rec, e.Route)
	if err != nil {
		return fmt.Errorf("dead letter %s: %w", e.ID, err)
	}
	var failed []error
	var again []Entry
	for _, rt := range routes {
		err := call(ctx, rt, rec)
		if err == nil || sluice.IsSkip(err) {
			continue
		}
		if cut := ctx.Err(); cut != nil {
			// The caller gave up, which says nothing about the record.
			return fmt.Errorf("dead letter %s on route %q: %w", e.ID, rt.Name, cut)
		}
		failed = append(failed, fmt.Errorf("dead letter %s on route %q: %w", e.ID, rt.Name, err))
		one := e
		if e.Route == "" {
			one.ID, one.Route = id(rec, rt.Name), rt.Name
		}
		one.Attempts++
		one.Redrives++
		one.Last = fault(time.Now(), err)
		again = append(again, one)
	}
	// What happened has happened, whether or not the caller still waits.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	// New entries first: a crash in between repeats, and loses nothing.
	for _, one := range again {
		if err := b.put(ctx, one, rec); err != nil {
			return errors.Join(append(failed, err)...)
		}
	}
	if !slices.ContainsFunc(again, func(one Entry) bool { return one.ID == e.ID }) {
		if err := b.Delete(ctx, e.ID); err != nil {
			return errors.Join(append(failed, err)...)
		}
	}
	return errors.Join(failed...)
}

// storeTimeout is for storing what came of a redrive.
const storeTimeout = 10 * time.Second

// ErrRefused says that a route does not take redriven records, that it does
// not take this record any more, or that there is no record.
var ErrRefused = errors.New("redrive refused")

// routesOf returns the routes that rec is to run, all of which allow it.
func routesOf(m sluice.Matcher, rec *sluice.Record, name string) ([]*sluice.Route, error) {
	if err := rec.Err(); err != nil {
		return nil, err
	}
	routes, err := m.Match(nil, rec)
	if name != "" {
		// What other routes refuse does not matter.
		i := slices.IndexFunc(routes, func(rt *sluice.Route) bool { return rt.Name == name })
		switch {
		case i >= 0:
			routes, err = routes[i:i+1], nil
		case err != nil:
			return nil, fmt.Errorf("%w: route %q: %w", ErrRefused, name, err)
		default:
			return nil, fmt.Errorf("%w: route %q does not take this record: it was removed or filters it now; restore the route, or delete the dead letter", ErrRefused, name)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	for _, rt := range routes {
		if !rt.Redrive && rec.EventName != sluice.Delivery { // a message has no later changes
			return nil, fmt.Errorf("%w: route %q does not allow redriven records: later changes of the item may have been handled since", ErrRefused, rt.Name)
		}
	}
	return routes, nil
}

// call calls a route's handler under its timeout, on a goroutine of its own:
// a Goexit would end the caller's.
func call(ctx context.Context, rt *sluice.Route, rec *sluice.Record) error {
	if rt.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, rt.Timeout)
		defer cancel()
	}
	result := make(chan error, 1)
	go func() {
		var err error
		returned := false
		defer func() {
			if !returned { // panic, or Goexit, of which recover knows nothing
				err = &sluice.PanicError{Value: recover(), Stack: debug.Stack()}
			}
			result <- err
		}()
		err = rt.Handler(ctx, rec)
		returned = true
	}()
	return <-result
}
