package deadletter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/outcomes"
)

// How controls a redrive. The zero How is ready to use.
type How struct {
	// DryRun reports what would run, and changes nothing.
	DryRun bool
	// Earlier makes Redrive run the entries of earlier changes of the item
	// first.
	Earlier bool
	// Force runs an entry even if an earlier change of its item is parked.
	Force bool
	// Allow names routes that run redriven records without router.Redrive. An
	// older change may then overwrite a newer one.
	Allow []string
	// Unsigned names the letters that run although their signature does not
	// prove the sender; see [NewBox].
	Unsigned []string
	// Fetch reads records kept by reference; nil refuses such entries.
	Fetch Fetch
	// Told, if not nil, is called with the outcome of each entry as it ends.
	Told func(Outcome)
}

// Redrive runs the route of one entry again, and deletes the entry once the route
// has succeeded. An entry without a route runs all routes of its record. An entry
// that fails again stays, with the new error. If it had no route, it becomes one
// entry for each failed route. Routes that do not allow redriven records refuse
// before anything runs. A gap, which has no record, is refused too ([ErrRefused]).
//
// Redrive refuses the entry while an earlier change of its item is parked for the
// same route, or an unreadable entry may be one. The error names these entries.
// How can override it.
func (b *Box) Redrive(ctx context.Context, m sluice.Matcher, id string, how How) error {
	ctx, release, err := b.alone(ctx, how.DryRun)
	if err != nil {
		return err
	}
	defer release()
	e, err := b.Get(ctx, id)
	if err != nil {
		return err
	}
	var earlier []string
	if !how.Force && e.Gap == nil {
		if b.shared { // others park, too
			b.held.forget()
		}
		if err := b.load(ctx); err != nil {
			return err
		}
		wait := Outcome{ID: e.ID, Result: Waiting}
		if wait.behind(b.held.unreadable(), &e); len(wait.Earlier) > 0 {
			how.tell(wait)
			return fmt.Errorf("dead letter %s: %s", e.ID, wait.Note)
		}
		earlier = b.held.earlier(e.Record(), e.Route)
	}
	if len(earlier) > 0 && !how.Earlier {
		why := fmt.Sprintf("earlier changes of its item are still parked: %s; redrive them first, or together", strings.Join(earlier, ", "))
		how.tell(Outcome{ID: e.ID, Result: Waiting, Error: why, Earlier: earlier})
		return fmt.Errorf("dead letter %s: %s", e.ID, why)
	}
	for _, id := range earlier {
		before, err := b.Get(ctx, id)
		if errors.Is(err, ErrNotFound) { // purged meanwhile
			continue
		}
		if err != nil { // told to nobody yet
			return err
		}
		if err := b.redriveEntry(ctx, m, before, how); err != nil {
			how.tell(Outcome{ID: e.ID, Result: Waiting, Earlier: []string{id}})
			return err
		}
	}
	if len(earlier) > 0 { // it may be deleted, or its record may have failed again
		if e, err = b.Get(ctx, id); err != nil {
			return err
		}
	}
	return b.redriveEntry(ctx, m, e, how)
}

// Report is the result of RedriveAll.
type Report struct {
	Done     int `json:"done"`     // succeeded; deleted
	Failed   int `json:"failed"`   // failed or were refused; kept
	Waiting  int `json:"waiting"`  // not tried, because an earlier change of their item is parked; kept
	Gaps     int `json:"gaps"`     // not tried, because they have no record; kept
	WouldRun int `json:"wouldRun"` // in a dry run
}

// RedriveAll redrives every entry that the filter selects and that exists at its
// start. It runs the streams of a table one after another, each ordered by id. So
// changes of one item run in order. An entry waits behind an earlier entry of its
// item that failed, that the filter left out, or that is unreadable and may be of
// the item, unless how.Force is set. The error joins what how.Told does not
// report: unreadable entries, and failures if how.Told is nil. It ends between two
// entries when ctx is cancelled or the store cannot be read.
func (b *Box) RedriveAll(ctx context.Context, m sluice.Matcher, filter Filter, how How) (Report, error) {
	ctx, release, err := b.alone(ctx, how.DryRun)
	if err != nil {
		return Report{}, err
	}
	defer release()
	all, err := b.scan(ctx)
	if err != nil {
		return Report{}, err
	}
	var (
		r     Report
		errs  = all.errs()
		stays = parkedItems{}
	)
	for _, id := range all.inOrder() {
		if err := context.Cause(ctx); err != nil {
			return r, errors.Join(append(errs, err)...)
		}
		// Read it again: it may be deleted, or its record may have failed
		// again.
		e, err := b.Get(ctx, id)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil { // entries behind it may be of the same item
			return r, errors.Join(append(errs, err)...)
		}
		chosen := filter.Matches(&e)
		switch {
		case e.Gap != nil:
			if chosen {
				r.Gaps++
				how.tell(Outcome{ID: e.ID, Result: IsGap, Note: e.Gap.String()})
			}
			continue
		case !chosen:
			stays.add(&e)
			continue
		}
		if wait := all.waits(stays, &e); len(wait.Earlier) > 0 && !how.Force {
			r.Waiting++
			stays.add(&e)
			how.tell(wait)
			continue
		}
		switch err := b.redriveEntry(ctx, m, e, how); {
		case gaveUp(ctx, err):
			return r, errors.Join(append(errs, context.Cause(ctx))...)
		case err != nil:
			r.Failed++
			if how.Told == nil {
				errs = append(errs, err)
			}
			stays.add(&e)
		case how.DryRun:
			r.WouldRun++
		default:
			r.Done++
		}
	}
	return r, errors.Join(errs...)
}

// gaveUp reports whether err says only that the caller gave up.
func gaveUp(ctx context.Context, err error) bool {
	return ctx.Err() != nil && errors.Is(err, ctx.Err())
}

// redriveEntry redrives e, and reports the outcome unless the caller gave up.
func (b *Box) redriveEntry(ctx context.Context, m sluice.Matcher, e Entry, how How) error {
	o := Outcome{ID: e.ID}
	err := b.runEntry(ctx, m, e, how, &o)
	switch {
	case gaveUp(ctx, err):
		return err
	case err == nil && how.DryRun:
		o.Result = WouldRun
	case err == nil:
		o.Result = Done
	case errors.Is(err, ErrRefused):
		o.Result = Refused
	default:
		o.Result = Failed
	}
	o.say(err)
	how.tell(o)
	if err != nil {
		err = fmt.Errorf("dead letter %s: %w", e.ID, err)
	}
	return err
}

func (b *Box) runEntry(ctx context.Context, m sluice.Matcher, e Entry, how How, o *Outcome) error {
	if e.Unverified != "" && !slices.Contains(how.Unsigned, e.ID) {
		return fmt.Errorf("%w: %s. Whoever can send to where it is may have made it: look at it (sluice dlq show --payload), and run it by --unsigned %s or purge it", ErrRefused, e.Unverified, e.ID)
	}
	if e.Gap != nil {
		return fmt.Errorf("%w: it is a gap, and has no record to run: %v; compare what was made of the table with the table itself, then delete the dead letter", ErrRefused, e.Gap)
	}
	rec := e.Record()
	if e.Ref != nil {
		var err error
		if rec, err = fetch(ctx, &e, how.Fetch, o); err != nil {
			return err
		}
	}
	routes, err := routesOf(m, rec, e.Route, how.Allow)
	if err == nil && len(routes) == 0 && e.Stands(rec) {
		err = fmt.Errorf("%w: no route takes the item in its place: have one name SNAPSHOT, or delete the dead letter", ErrRefused)
	}
	if err != nil {
		return err
	}
	for _, rt := range routes {
		o.Routes = append(o.Routes, rt.Name)
	}
	if how.DryRun {
		return nil
	}
	var failed []error
	var again []Entry
	for _, rt := range routes {
		err := call(ctx, rt, rec)
		if err == nil || sluice.IsSkip(err) {
			continue
		}
		if ended := ctx.Err(); ended != nil {
			// The caller gave up, which says nothing about the record.
			return &routeError{rt.Name, ended}
		}
		failed = append(failed, &routeError{rt.Name, err})
		one := e
		if e.Route == "" {
			one.ID, one.Route = id(&e, rt.Name), rt.Name
			if e.Unverified != "" { // it must not replace a signed letter with that id
				content, err := one.ContentID()
				if err != nil {
					return errors.Join(append(failed, err)...)
				}
				one.ID = content
			}
		}
		one.Attempts++
		one.Redrives++
		one.Last = fault(time.Now(), err)
		again = append(again, one)
	}
	// Store the result even if the caller no longer waits.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	switch was, err := b.replace(ctx, &e, again); {
	case err != nil:
		failed = append(failed, err)
	case was == failedAnew:
		failed = append(failed, errors.New("its record failed again meanwhile, and stays parked"))
	case was == deletedNow && len(failed) > 0:
		failed = append(failed, errors.New("it was deleted meanwhile, and is not parked again"))
	}
	if len(failed) == 1 {
		return failed[0]
	}
	return errors.Join(failed...)
}

// routeError is the failure of one route.
type routeError struct {
	route string
	err   error
}

func (e *routeError) Error() string { return fmt.Sprintf("route %q: %v", e.route, e.err) }
func (e *routeError) Unwrap() error { return e.err }

// storeTimeout limits storing the result of a redrive.
const storeTimeout = 10 * time.Second

// ErrRefused says that a route does not take redriven records or no longer takes
// this record, or that the entry has no record.
var ErrRefused = errors.New("redrive refused")

// routesOf returns the routes for rec. Each allows redriven records, or is in
// allowed.
func routesOf(m sluice.Matcher, rec *sluice.Record, name string, allowed []string) ([]*sluice.Route, error) {
	if err := rec.Err(); err != nil {
		return nil, err
	}
	routes, err := m.Match(nil, rec)
	var refusal interface {
		error
		Refuses(route string) bool
	}
	if errors.As(err, &refusal) {
		for _, rt := range m.Routes() {
			switch {
			case !refusal.Refuses(rt.Name):
			case slices.Contains(allowed, rt.Name):
				routes = append(routes, rt)
			case name == "" || name == rt.Name: // refusals of other routes do not matter
				return nil, notAllowed(rt.Name)
			}
		}
		err = nil
	}
	if name != "" {
		named := func(rt *sluice.Route) bool { return rt.Name == name }
		switch i := slices.IndexFunc(routes, named); {
		case i >= 0:
			routes, err = routes[i:i+1], nil
		case err != nil: // it says nothing about the route
			return nil, fmt.Errorf("%w: route %q: %w", ErrRefused, name, err)
		case !slices.ContainsFunc(m.Routes(), named):
			return nil, fmt.Errorf("%w: there is no route %q any more: bring its name back, or delete the dead letter", ErrRefused, name)
		default:
			return nil, fmt.Errorf("%w: route %q does not take this record any more: it filters it now; have it take the record, or delete the dead letter", ErrRefused, name)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	for _, rt := range routes {
		if !rt.Redrive && rec.EventName != sluice.Delivery && !slices.Contains(allowed, rt.Name) { // a message has no later changes
			return nil, notAllowed(rt.Name)
		}
	}
	return routes, nil
}

func notAllowed(route string) error {
	return fmt.Errorf("%w: route %q does not allow redriven records: later changes of the item may have been handled since, which this one could undo. Where it cannot, run it by --allow %[2]q once, or give the route redrive: true (router.Redrive)", ErrRefused, route)
}

// call runs a route's handler under its timeout, on its own goroutine, because a
// Goexit would end the caller's.
func call(ctx context.Context, rt *sluice.Route, rec *sluice.Record) error {
	if rt.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, rt.Timeout)
		defer cancel()
	}
	return <-outcomes.Go(func() error { return rt.Handler(ctx, rec) })
}
