package rollup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/internal/backoff"
	"github.com/sluicehq/sluice/item"
)

// Recount repairs one counter of parents: it counts the existing children and sets
// the counter.
//
// A single count is not enough: the record of an existing child may still be under
// way, and will be added later. So Recount looks at a parent with a wrong counter
// twice, Settle apart. It corrects the counter only if neither the children nor
// the counter have changed in between, and on condition that the counter is still
// the same. Records under way at the first look have arrived by the second. Writes
// during or after the second look are not among the counted children, or they move
// the counter. Recount looks again at a parent that changes, Attempts times, and
// then reports it as busy.
//
// This is correct while Settle exceeds the time from a record's write to its
// effect. It is not correct:
//   - while a route fails, or records wait among the dead letters or are replayed later;
//   - if a child is deleted and written again unchanged within Settle, while another is under way;
//   - while a cascade still has to delete children that the counter has and Children no longer finds: their
//     records subtract them again.
//
// So run it while the routes are ready and without lag. Redrive or delete the dead
// letters first. In doubt run it again: the second run should find nothing.
//
// Recount leaves a parent whose counter is right at the first look, unless it has
// children that came before it. Such a counter may be right by chance: it counts a
// deleted child instead of one that was never counted. From then on these children
// count too. That takes a second look, and a row among the markers.
//
// A counter that is not a number is reported, and the others are recounted.
type Recount struct {
	Table     string   // of the parents
	Keys      []string // names of their key attributes
	Attribute string   // as in Count
	Of        string
	When      func(child sluice.Item) bool // as in Count; if it can fail, let Children end with the error

	// Children reads the children of a parent, consistently: usually dynamo.All
	// of a Query. A query for few attributes is enough, if they include the
	// keys, Of and the attributes that When reads. A version attribute makes
	// the comparison of looks sharper.
	Children func(ctx context.Context, parent sluice.Item) iter.Seq2[sluice.Item, error]

	// Get reads an item, consistently; the absent Item if there is none.
	Get func(ctx context.Context, table string, key sluice.Item) (sluice.Item, error)

	// Transact makes all writes or none. A failed condition is a
	// [*dynamo.ConditionError].
	Transact func(ctx context.Context, ops ...dynamo.Op) error

	// Name and Markers are the Rollup's. A child that was not counted, because
	// its parent came later, counts from now on; the markers record that.
	Name, Markers string

	Settle   time.Duration    // between two looks at a parent (default 1 min)
	Attempts int              // looks at a parent after the first (default 5)
	Now      func() time.Time // as in Config
	DryRun   bool             // report, but write nothing

	// MaxDeletes limits the counters that a run lowers, because they count
	// missing children (default 1,000, and 5 % of the parents, or one). With
	// more, Run lowers none and returns an error that says so. Unless TrustTables
	// is set, it also lowers none if more of these parents have no child than
	// parents of the table have one. Counters are lowered at the end of the
	// run, when all of them are known.
	MaxDeletes int

	// TrustTables says that Children reads the table that the counter counts.
	TrustTables bool

	// Found is called for each wrong counter, once its parent is finished
	// (default: nothing).
	Found func(Correction)

	// Settling is called before each wait for Settle. counters is the number of
	// wrong counters that are checked again afterwards (default: nothing).
	Settling func(counters int)
}

// Correction is a wrong counter.
type Correction struct {
	Table     string
	Key       sluice.Item
	Attribute string
	Old, New  int64

	// Busy says that the parent kept changing: Old and New are the last values,
	// and nothing was written.
	Busy bool

	// Held says that nothing was written, because too many counters would be
	// lowered.
	Held bool

	// Err says why the counter is unreadable. Old and New are 0, and nothing
	// was written.
	Err error
}

// Recounted counts parents by result.
type Recounted struct {
	Parents   int // looked at
	Right     int // at the first look
	Settled   int // right at a later look: records were under way
	Corrected int // or, in a dry run, to be corrected
	Busy      int
	Gone      int // not existing (any more)
	Held      int // to be lowered, but too many
	Failed    int // with an unreadable counter

	Brake error // why no counter was lowered, or a repair would lower none
}

// Open is the number of wrong counters that were still to be checked again. It is
// 0 unless the recount failed.
func (r Recounted) Open() int {
	return r.Parents - r.Right - r.Settled - r.Corrected - r.Busy - r.Gone - r.Held - r.Failed
}

// batchSize is the number of wrong counters that wait for their second look
// together.
const batchSize = 1000

// Run recounts parents; each is an item of Table or its key. It ends at the first
// error, and can then be run again from the start.
func (r Recount) Run(ctx context.Context, parents iter.Seq2[sluice.Item, error]) (Recounted, error) {
	r = r.withDefaults()
	if err := r.validate(); err != nil {
		return Recounted{}, fmt.Errorf("rollup: Recount: %w", err)
	}
	run := recount{Recount: r}
	err := run.all(ctx, parents)
	if err == nil {
		err = run.release(ctx)
	}
	return run.done, err
}

// recount is one call of Run.
type recount struct {
	Recount
	done  Recounted
	brake lowerings
}

// all looks at all parents and corrects counters, except those to be lowered.
func (r *recount) all(ctx context.Context, parents iter.Seq2[sluice.Item, error]) error {
	done := &r.done
	var wrong []look
	for parent, err := range parents {
		if err != nil {
			return fmt.Errorf("reading the parents of table %s: %w", r.Table, err)
		}
		key := parent.Only(r.Keys...)
		if key.Len() != len(r.Keys) {
			return fmt.Errorf("a parent has not all of the key attributes %q of table %s", r.Keys, r.Table)
		}
		l, err := r.look(ctx, key)
		if err != nil {
			return err
		}
		done.Parents++
		if l.children > 0 {
			r.brake.fertile++
		}
		switch {
		case l.bad != nil:
			r.unread(l)
			continue
		case l.gone:
			done.Gone++
			continue
		case l.right():
			if l.early, err = r.hasEarly(ctx, l); err != nil {
				return err
			}
			if !l.early {
				done.Right++
				continue
			}
		}
		if wrong = append(wrong, l); len(wrong) == batchSize {
			if err := r.repair(ctx, wrong); err != nil {
				return err
			}
			wrong = nil
		}
	}
	return r.repair(ctx, wrong)
}

func (r Recount) withDefaults() Recount {
	r.Settle = cmp.Or(r.Settle, time.Minute)
	r.Attempts = cmp.Or(r.Attempts, 5)
	if r.Now == nil {
		r.Now = time.Now
	}
	if r.Found == nil {
		r.Found = func(Correction) {}
	}
	if r.Settling == nil {
		r.Settling = func(int) {}
	}
	return r
}

func (r Recount) validate() error {
	var errs []error
	for _, f := range []struct {
		name string
		ok   bool
	}{
		{"Table", r.Table != ""},
		{"Keys", len(r.Keys) > 0},
		{"Attribute", r.Attribute != ""},
		{"Children", r.Children != nil},
		{"Get", r.Get != nil},
		{"Transact", r.Transact != nil || r.DryRun},
		{"Name", r.Name != "" || r.DryRun},
		{"Markers", r.Markers != "" || r.DryRun},
	} {
		if !f.ok {
			errs = append(errs, fmt.Errorf("%s is missing", f.name))
		}
	}
	if r.Settle < 0 {
		errs = append(errs, fmt.Errorf("Settle is %v, want more than 0", r.Settle))
	}
	if r.MaxDeletes < 0 {
		errs = append(errs, fmt.Errorf("MaxDeletes is %d, want 0 (1,000, and 5 %% of the parents) or above", r.MaxDeletes))
	}
	if r.Attempts < 0 {
		errs = append(errs, fmt.Errorf("Attempts is %d, want at least 1", r.Attempts))
	}
	return errors.Join(errs...)
}

// look is a look at a parent and its children.
type look struct {
	key  sluice.Item
	at   time.Time
	gone bool
	bad  error // why the counter is unreadable

	// early: the counter is right, and the parent has children that came before
	// it.
	early bool
	seen
}

// seen is the result of a look; looks with the same result are equal.
type seen struct {
	has     bool // the parent has the attribute
	counter int64

	children int
	sum      int64
	print    uint64 // hash of the children in any order
}

func (s seen) right() bool { return s.counter == s.sum }

// look reads the counter first. A later change of it fails the following write, or
// shows at the next look.
func (r *recount) look(ctx context.Context, key sluice.Item) (look, error) {
	l := look{key: key, at: r.Now()}
	parent, err := r.Get(ctx, r.Table, key)
	if err != nil {
		return l, fmt.Errorf("reading %s of table %s: %w", key.Raw(), r.Table, err)
	}
	if !parent.Exists() {
		l.gone = true
		return l, nil
	}
	if l.counter, l.has, l.bad = r.counter(parent); l.bad != nil {
		return l, nil
	}
	for child, err := range r.Children(ctx, parent) {
		if err != nil {
			return l, fmt.Errorf("reading the children of %s of table %s: %w", key.Raw(), r.Table, err)
		}
		n, err := value(child, r.Of, r.When)
		if err != nil {
			return l, fmt.Errorf("a child of %s of table %s: %w", key.Raw(), r.Table, err)
		}
		sum := l.sum + n
		if (sum > l.sum) != (n > 0) && n != 0 {
			return l, fmt.Errorf("the sum over the children of %s of table %s does not fit into 64 bits", key.Raw(), r.Table)
		}
		l.children, l.sum = l.children+1, sum
		l.print += child.Hash()
	}
	return l, nil
}

func (r Recount) counter(parent sluice.Item) (n int64, has bool, err error) {
	attr := parent.Only(r.Attribute)
	for _, v := range attr.All() {
		if v.Kind() != item.N {
			return 0, false, fmt.Errorf("attribute %q is of type %v, want N", r.Attribute, v.Kind())
		}
		n, ok := v.Int64()
		if !ok {
			return 0, false, fmt.Errorf("attribute %q is %s, want a whole number of 64 bits", r.Attribute, v.Str())
		}
		return n, true, nil
	}
	return 0, false, nil
}

// repair looks again at parents with wrong counters, until each is right,
// corrected, held, gone or busy.
func (r *recount) repair(ctx context.Context, wrong []look) error {
	for attempt := 1; len(wrong) > 0; attempt++ {
		r.Settling(len(wrong))
		if err := backoff.Sleep(ctx, r.Settle); err != nil {
			return err
		}
		var again []look
		for _, before := range wrong {
			now, err := r.look(ctx, before.key)
			if err != nil {
				return err
			}
			ended, err := r.settle(ctx, before, now, attempt == r.Attempts)
			if err != nil {
				return err
			}
			if !ended {
				now.early = before.early
				again = append(again, now)
			}
		}
		wrong = again
	}
	return nil
}

// settle finishes a parent, if possible.
func (r *recount) settle(ctx context.Context, before, now look, last bool) (ended bool, err error) {
	switch {
	case now.bad != nil:
		r.unread(now)
		return true, nil
	case now.gone:
		r.done.Gone++
		return true, nil
	case now.right() && !before.early:
		r.done.Settled++
		return true, nil
	case now.seen == before.seen:
		if r.lowers(now) && !r.brake.released {
			r.hold(now)
			return true, nil
		}
		if err := r.correct(ctx, now); err == nil || !dynamo.IsCondition(err) {
			return true, err
		}
	}
	if !last {
		return false, nil
	}
	c := r.correctionOf(now)
	c.Busy = true
	r.done.Busy++
	r.Found(c)
	return true, nil
}

// unread reports an unreadable counter.
func (r *recount) unread(l look) {
	r.done.Failed++
	r.Found(Correction{Table: r.Table, Key: l.key, Attribute: r.Attribute, Err: l.bad})
}

// correct sets a counter to the right value, and notes that its children count.
func (r *recount) correct(ctx context.Context, l look) error {
	if !r.DryRun {
		noted := parentOp(r.Markers, recountID(r.Name, r.Table, l.key, r.Attribute), l.key, l.at)
		if err := r.Transact(ctx, r.correction(l), noted); err != nil {
			return fmt.Errorf("setting %q of %s of table %s from %d to %d: %w", r.Attribute, l.key.Raw(), r.Table, l.counter, l.sum, err)
		}
	}
	if l.right() {
		r.done.Right++
		return nil
	}
	r.done.Corrected++
	r.Found(r.correctionOf(l))
	return nil
}

func (r *recount) correctionOf(l look) Correction {
	return Correction{Table: r.Table, Key: l.key, Attribute: r.Attribute, Old: l.counter, New: l.sum}
}

func (r *recount) correction(l look) dynamo.Op {
	op := dynamo.Update(r.Table, l.key, "SET #n = :new").Name("#n", r.Attribute).Value(":new", l.sum)
	if l.has {
		return op.If("#n = :old").Value(":old", l.counter)
	}
	return op.If("attribute_not_exists(#n) AND attribute_exists(#k)").Name("#k", r.Keys[0])
}
