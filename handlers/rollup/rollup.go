package rollup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/internal/keyhash"
	"github.com/sluicehq/sluice/metrics"
)

// Config describes the effect of the records of one kind of child. A field without
// a stated default is required. The functions must be safe for concurrent use.
type Config struct {
	// Name is in the id of each marker. It must be unique in a table of
	// markers. Do not change it: a record delivered again under another name
	// counts again.
	Name string

	// Counts of parents. One of Counts and Also is required.
	Counts []Count

	// Also returns further additions and writes of a record, for the same
	// transaction (default: nothing). It must depend only on the record. A
	// record whose Ops have a failed condition fails permanently; its error
	// wraps the [*dynamo.ConditionError].
	Also func(rec *sluice.Record) ([]dynamo.Add, []dynamo.Op, error)

	// Orphans are deleted (default: a child without a parent stays).
	Orphans *Orphans

	// Once applies a unit, such as sinks/dynamodb.Store.Once.
	Once func(ctx context.Context, u dynamo.Unit) (dynamo.Applied, error)

	// Get reads an item consistently, such as sinks/dynamodb.Store.Get; a
	// missing one is the absent Item. It finds out whether a child that no
	// longer counts ever counted, and reads parents for Orphans. It may be nil
	// when all of Counts create their parents.
	Get func(ctx context.Context, table string, key sluice.Item) (sluice.Item, error)

	// Markers is a table with the key "pk" (S) and time to live on "ttl". It
	// remembers which records were counted, and which children were not.
	Markers string

	// Life is the greatest age of a record that still counts (default 72 h, at
	// least 25 h). A marker outlives it by an hour. Make it longer than records
	// stay among the dead letters. Set it from the start: existing markers keep
	// their expiry, so after a change a record older than the former Life could
	// count twice.
	Life time.Duration

	Now     func() time.Time // default time.Now
	Metrics metrics.Meter    // of additions that are lost (default: none)
}

var lost = metrics.New(metrics.Metric{Name: "sluice_count_additions_lost_total", Help: "Additions lost because the parent is missing.", Labels: []string{"table"}})

const (
	defaultLife = 72 * time.Hour
	leastLife   = 25 * time.Hour // the stream's 24 h, plus a margin for clocks
	margin      = time.Hour      // by which a marker outlives its records
)

// Rollup counts. It is safe for concurrent use.
type Rollup struct {
	c    Config
	lost *metrics.Series
}

// New returns a Rollup, or an error that names every missing or invalid field.
func New(c Config) (*Rollup, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("rollup: %w", err)
	}
	return &Rollup{c, lost.Of(c.Metrics)}, nil
}

func (c Config) withDefaults() Config {
	c.Life = cmp.Or(c.Life, defaultLife)
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

func (c Config) validate() error {
	var errs []error
	if c.Name == "" || strings.Contains(c.Name, "#") {
		errs = append(errs, fmt.Errorf("Name is %q, want a text without '#', which ends it in the ids of markers", c.Name))
	}
	if len(c.Counts) == 0 && c.Also == nil {
		errs = append(errs, errors.New("Counts and Also are missing, want at least one of them"))
	}
	for i, n := range c.Counts {
		if err := n.validate(); err != nil {
			errs = append(errs, fmt.Errorf("Counts[%d]: %w", i, err))
		}
		if slices.ContainsFunc(c.Counts[:i], func(o Count) bool { return o.Table == n.Table && o.Create != n.Create }) {
			errs = append(errs, fmt.Errorf("Counts[%d]: Create is %v, unlike that of another Count of table %s: one item cannot be added to in both ways", i, n.Create, n.Table))
		}
	}
	if c.Orphans != nil {
		errs = append(errs, c.Orphans.validate(c.Counts))
	}
	if c.Once == nil {
		errs = append(errs, errors.New("Once is missing"))
	}
	if c.Get == nil && slices.ContainsFunc(c.Counts, func(n Count) bool { return !n.Create }) {
		errs = append(errs, errors.New("Get is missing"))
	}
	if c.Markers == "" {
		errs = append(errs, errors.New("Markers is missing"))
	}
	if c.Life < leastLife {
		errs = append(errs, fmt.Errorf("Life is %v, want at least %v: a stream delivers records for 24h", c.Life, leastLife))
	}
	return errors.Join(errs...)
}

// applied is the result of a record.
type applied struct {
	Nothing bool         // the record adds nothing
	Before  bool         // it was applied before; Dropped is unknown
	Dropped []dynamo.Add // to missing items
}

// Handle applies the additions of a record. It skips a record without additions,
// and one that was applied before. It is a [sluice.Handler].
func (r *Rollup) Handle(ctx context.Context, rec *sluice.Record) error {
	if r.c.Orphans != nil && rec.EventName == sluice.Insert {
		return r.inserted(ctx, rec)
	}
	a, _, err := r.apply(ctx, rec)
	if err != nil {
		return err
	}
	return a.outcome()
}

func (a applied) outcome() error {
	switch {
	case a.Nothing:
		return sluice.Skip("nothing to count")
	case a.Before:
		return sluice.Skip("counted before")
	}
	return nil
}

// Plan returns the additions and writes of Handle for a new record, without a
// marker. It reads nothing, so it does not know orphans or children that were
// never counted.
func (r *Rollup) Plan(rec *sluice.Record) (dynamo.Unit, error) {
	if err := countable(rec); err != nil {
		return dynamo.Unit{}, err
	}
	changes, also, err := r.effect(rec)
	if err != nil {
		return dynamo.Unit{}, err
	}
	return join(changes, also)
}

// countable returns why a record is not a change of an item.
func countable(rec *sluice.Record) error {
	switch rec.EventName {
	case sluice.Insert, sluice.Modify, sluice.Remove:
		return nil
	case sluice.Snapshot:
		return sluice.Permanent(errors.New("rollup: a backfilled item is not a change and cannot be counted: use a Recount"))
	default:
		return sluice.Permanent(fmt.Errorf("rollup: a %s is no change of an item and cannot be counted", rec.EventName))
	}
}

// apply is Handle without the orphans. It also returns the additions, applied or
// not.
func (r *Rollup) apply(ctx context.Context, rec *sluice.Record) (applied, []dynamo.Add, error) {
	if err := countable(rec); err != nil {
		return applied{}, nil, err
	}
	changes, also, err := r.effect(rec)
	if err != nil {
		return applied{}, nil, fmt.Errorf("rollup %s: %w", r.c.Name, err)
	}
	if len(changes) == 0 && len(also.Adds) == 0 && len(also.Ops) == 0 {
		return applied{Nothing: true}, nil, nil
	}
	if rec.EventID == "" {
		return applied{}, nil, sluice.Permanent(fmt.Errorf("rollup %s: the record has no eventID, by which it would be counted once", r.c.Name))
	}
	now := r.c.Now()
	if err := r.expired(rec, now); err != nil {
		return applied{}, nil, sluice.Permanent(err)
	}
	id := r.c.Name + "#" + rec.Table + "#" + rec.EventID
	since := now
	if rec.Created.After(now) {
		since = rec.Created // this clock is slow
	}
	for i := range changes {
		gone, err := r.withhold(ctx, rec, &changes[i])
		if err != nil {
			return applied{}, nil, fmt.Errorf("rollup %s: %w", r.c.Name, err)
		}
		also.Ops = append(also.Ops, gone...)
	}
	u, err := join(changes, also)
	if err != nil {
		return applied{}, nil, fmt.Errorf("rollup %s: %w", r.c.Name, err)
	}
	// Write the marker even without additions: when the record comes again, its
	// items may have changed.
	expires := since.Add(r.c.Life + margin)
	u.Marker = dynamo.NewMarker(r.c.Markers, id, expires)

	done, err := r.c.Once(ctx, u)
	if err != nil {
		err = fmt.Errorf("rollup %s: adding %s to %s: %w", r.c.Name, id, places(u.Adds), err)
		if dynamo.IsCondition(err) {
			err = sluice.Permanent(err) // a retry would write the same
		}
		return applied{}, nil, err
	}
	a := applied{Before: done.Before}
	for _, i := range done.Dropped {
		a.Dropped = append(a.Dropped, u.Adds[i])
		r.lost.Add(1, u.Adds[i].Table)
	}
	if err := r.noteEarly(ctx, rec, a, changes, id, expires); err != nil {
		return applied{}, nil, fmt.Errorf("rollup %s: %w", r.c.Name, err)
	}
	return a, u.Adds, nil
}

// places lists the numbers that adds change.
func places(adds []dynamo.Add) string {
	var all []string
	for _, a := range adds {
		names := strings.Join(slices.Sorted(maps.Keys(a.By)), ", ")
		all = append(all, fmt.Sprintf("%s of %s of table %s", names, keyhash.Item(a.Key), a.Table))
	}
	return strings.Join(all, "; ")
}

// effect returns the record's changes of parents, and the additions and writes of
// Also.
func (r *Rollup) effect(rec *sluice.Record) (changes []change, also dynamo.Unit, err error) {
	changes, err = counted(r.c.Counts, rec)
	if err != nil {
		return nil, also, sluice.Permanent(err)
	}
	if r.c.Also != nil {
		also.Adds, also.Ops, err = r.c.Also(rec)
		also.Ops = slices.Clone(also.Ops)
	}
	return changes, also, err
}

// join makes one unit of both, without a marker.
func join(changes []change, also dynamo.Unit) (dynamo.Unit, error) {
	u := dynamo.Unit{Ops: also.Ops}
	for _, c := range changes {
		if len(c.By) > 0 {
			u.Adds = append(u.Adds, c.Add)
		}
	}
	for _, a := range also.Adds {
		var err error
		if u.Adds, err = merge(u.Adds, a); err != nil {
			return dynamo.Unit{}, sluice.Permanent(err)
		}
	}
	return u, nil
}

// expired says that a record is so old that its marker may be gone, so it could be
// counted twice. It is a permanent failure.
func (r *Rollup) expired(rec *sluice.Record, now time.Time) error {
	switch {
	case rec.Created.IsZero() && rec.Origin == sluice.Live: // some emulators omit the time; a stream has no old records
		return nil
	case !rec.Created.IsZero() && now.Sub(rec.Created) <= r.c.Life:
		return nil
	}
	age := "made at an unknown time"
	if !rec.Created.IsZero() {
		age = "made at " + rec.Created.UTC().Format(time.RFC3339)
	}
	return fmt.Errorf("rollup %s: record %s of table %s was %s, and markers are kept for %v: it may have been counted already, and is not counted again; recount its parents (rollup.Recount), then delete it from the dead letters", r.c.Name, rec.EventID, rec.Table, age, r.c.Life)
}
