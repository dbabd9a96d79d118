package deadletter

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
)

// How says how entries are redriven. The zero How is ready to use.
type How struct {
	// DryRun finds out what would run, and changes nothing.
	DryRun bool
	// Earlier has Redrive run the entries of earlier changes of the item first.
	Earlier bool
	// Force runs an entry although an earlier change of its item is still parked.
	Force bool
	// Allow names routes that run redriven records although they do not allow it
	// themselves: an older change may take the place of a newer one then.
	Allow []string
	// Unsigned are the ids of letters that are run although their signature does
	// not prove who sent them; see [NewSignedBox].
	Unsigned []string
	// Fetch reads records that are had by reference; nil refuses them.
	Fetch Fetch
	// Told is called with what came of each entry, as it comes; nil: nobody is told.
	Told func(Outcome)
}

// earlierError says that earlier changes of an entry's item are still parked, or
// may be: nobody knows of which item an entry is that cannot be read.
type earlierError struct {
	ID  string
	IDs []string // of the earlier ones, in their order; or of those that cannot be read

	unread string // which cannot be read, and what to do
}

func (e *earlierError) Error() string {
	return fmt.Sprintf("dead letter %s: %s", e.ID, e.why())
}

func (e *earlierError) why() string {
	if e.unread != "" {
		return e.unread
	}
	return fmt.Sprintf("earlier changes of its item are still parked: %s; redrive them first, or together", strings.Join(e.IDs, ", "))
}

// Redrive runs the route of one entry again, or all routes that its record
// takes when it names none, and deletes the entry once they have succeeded. An
// entry that fails again stays, with the new error; where it named no route
// it becomes one entry for each route that failed. Routes that do not allow
// redriven records refuse before anything is run; a gap, which has no record,
// is refused too ([ErrRefused]).
//
// While an earlier change of the item is parked for the same route, or an entry
// that cannot be read may be one, the entry is refused with an error that names them,
// unless how says what to do.
func (b *Box) Redrive(ctx context.Context, m sluice.Matcher, id string, how How) error {
	release, err := b.alone(ctx)
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
		if err := b.load(ctx); err != nil {
			return err
		}
		wait := Outcome{ID: e.ID, Result: Waiting}
		if wait.behind(b.held.unreadable(), &e); len(wait.Earlier) > 0 {
			how.tell(wait)
			return &earlierError{ID: e.ID, IDs: wait.Earlier, unread: wait.Note}
		}
		earlier = b.held.earlier(e.Record(), e.Route)
	}
	if len(earlier) > 0 && !how.Earlier {
		err := &earlierError{ID: e.ID, IDs: earlier}
		how.tell(Outcome{ID: e.ID, Result: Waiting, Error: err.why(), Earlier: earlier})
		return err
	}
	for _, id := range earlier {
		before, err := b.Get(ctx, id)
		if errors.Is(err, ErrNotFound) { // somebody purged it meanwhile
			continue
		}
		if err != nil { // which nobody is told
			return err
		}
		if err := b.redriveEntry(ctx, m, before, how); err != nil {
			how.tell(Outcome{ID: e.ID, Result: Waiting, Earlier: []string{id}})
			return err
		}
	}
	if len(earlier) > 0 { // somebody may have deleted it, or its record has failed anew
		if e, err = b.Get(ctx, id); err != nil {
			return err
		}
	}
	return b.redriveEntry(ctx, m, e, how)
}

// Report is what RedriveAll did.
type Report struct {
	Done     int `json:"done"`     // succeeded; deleted
	Failed   int `json:"failed"`   // failed or were refused; kept
	Waiting  int `json:"waiting"`  // not tried, because an earlier change of their item is still parked; kept
	Gaps     int `json:"gaps"`     // not tried, because they have no record; kept
	WouldRun int `json:"wouldRun"` // of a dry run
}

// RedriveAll redrives every entry that the filter chooses and that is there when
// it begins, a table's streams one behind the other, each in the order of ids:
// changes of one item in their order, and none after one that failed, that the
// filter left out, or that cannot be read and may be of the item, unless
// how.Force. The error joins what how.Told was not told: entries that cannot be
// read, and those that failed when it is nil. Cancelling ctx, or a store that
// cannot be read, ends it between two entries.
func (b *Box) RedriveAll(ctx context.Context, m sluice.Matcher, filter Filter, how How) (Report, error) {
	release, err := b.alone(ctx)
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
		if err := ctx.Err(); err != nil {
			return r, errors.Join(append(errs, err)...)
		}
		// As it is now: somebody may have deleted it, or its record has failed anew.
		e, err := b.Get(ctx, id)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil { // what comes behind may be of the same item
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

// redriveEntry redrives e, and tells what came of it.
func (b *Box) redriveEntry(ctx context.Context, m sluice.Matcher, e Entry, how How) error {
	o := Outcome{ID: e.ID}
	err := b.runEntry(ctx, m, e, how, &o)
	switch {
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
		if cut := ctx.Err(); cut != nil {
			// The caller gave up, which says nothing about the record.
			return &routeError{rt.Name, cut}
		}
		failed = append(failed, &routeError{rt.Name, err})
		one := e
		if e.Route == "" {
			one.ID, one.Route = id(&e, rt.Name), rt.Name
			if e.Unverified != "" { // it must not take the place of a signed one with that id
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
	// What happened has happened, whether or not the caller still waits.
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

// storeTimeout is for storing what came of a redrive.
const storeTimeout = 10 * time.Second

// ErrRefused says that a route does not take redriven records, that it does
// not take this record any more, or that there is no record.
var ErrRefused = errors.New("redrive refused")

// routesOf returns the routes that rec is to run, all of which allow it, or are
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
			case name == "" || name == rt.Name: // what others refuse does not matter
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
		case err != nil: // which says nothing of the route
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
