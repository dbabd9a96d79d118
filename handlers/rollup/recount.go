package rollup

import (
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

// Recount repairs one counter of parents: it counts the children that are there
// and sets the counter to that.
//
// Counting is not enough: a child whose record is still under way is there and
// not in the counter yet, and will be added to it later. So Recount looks twice
// at a parent whose counter is wrong, Settle apart, and corrects it only when
// neither its children nor its counter have changed in between, and on
// condition that the counter is still what it was. Whatever was under way at
// the first look has arrived by the second one, and what is written during or
// after the second look is not among what was counted, or moves the counter. A
// parent that does change is looked at again, Attempts times, and then told as
// busy.
//
// This is right as long as Settle is longer than a record takes from its write
// to its effect. It is not while a route fails, while records wait among the
// dead letters or are replayed later, or when a child is deleted and written
// again, the same as it was, within Settle and while another is under way. Nor
// is it while a cascade has yet to delete children that the counter has and
// Children no longer finds: their records take them off once more.
// So run it while the routes are ready and without lag; redrive or delete the
// dead letters first; and when in doubt run it once more, which tells what it
// should not find.
//
// A parent whose counter is right at the first look is left alone, unless it has
// children that came before it: a counter may be right by chance, because it counts
// a child that is gone in place of one that was never counted. From then on these
// count, too. That takes a second look, and a row among the markers.
//
// A counter that is no number is told, and the others are recounted.
type Recount struct {
	Table     string   // of the parents
	Keys      []string // names of their key attributes
	Attribute string   // as in Count
	Of        string
	When      func(child sluice.Item) bool // as in Count; where it can fail, let Children end with the error

	// Children reads the children of a parent, consistently: usually
	// dynamo.All of a Query. They are compared as they come, so that a query
	// for few attributes is enough as long as the keys, Of and what When reads
	// are among them; a version attribute makes the comparison sharper.
	Children func(ctx context.Context, parent sluice.Item) iter.Seq2[sluice.Item, error]

	// Get reads an item, consistently; the absent Item if there is none.
	Get func(ctx context.Context, table string, key sluice.Item) (sluice.Item, error)

	// Transact makes all writes or none; a condition that does not hold is a
	// [*dynamo.ConditionError].
	Transact func(ctx context.Context, ops ...dynamo.Op) error

	// Name and Markers are those of the Rollup: a child that was not counted, since
	// its parent came later, counts from now on, and is noted so among the markers.
	Name, Markers string

	Settle   time.Duration    // between two looks at a parent (default 1 min)
	Attempts int              // looks at a parent after the first (default 5)
	Now      func() time.Time // as in Config
	DryRun   bool             // tell, write nothing

	// MaxDeletes is how many counters a run lowers at most: those count children
	// that are not there (default 1,000, and 5 % of the parents, or one). With
	// more it lowers none, and Run returns a [*BrakeError]. Unless TrustTables is
	// set, it lowers none either, whatever MaxDeletes says, when more of these
	// parents have no child at all than parents of the table have one. They are
	// lowered at the end of the run, when all of them are known.
	MaxDeletes int

	// TrustTables says that Children reads the table that the counters are of.
	TrustTables bool

	// Found is called for each counter that is wrong, once its parent's turn is
	// over (default: nothing).
	Found func(Correction)

	// Settling is called each time before Settle is waited for, with how many
	// counters do not agree with the children and are looked at again then
	// (default: nothing).
	Settling func(counters int)
}

// Correction is a counter that is wrong.
type Correction struct {
	Table     string
	Key       sluice.Item
	Attribute string
	Old, New  int64

	// Busy says that the parent kept changing: Old and New are what was seen
	// last, and nothing was written.
	Busy bool

	// Held says that nothing was written, since too many counters would be
	// lowered.
	Held bool

	// Err says why the counter cannot be read. Old and New are 0, and nothing was
	// written.
	Err error
}

// Recounted says how many parents were found how.
type Recounted struct {
	Parents   int // that were looked at
	Right     int // at the first look
	Settled   int // right at a later look: records had been under way
	Corrected int // or, by a dry run, to be corrected
	Busy      int
	Gone      int // not there (any more)
	Held      int // to be lowered, and left, since there are too many
	Failed    int // whose counter cannot be read

	Brake *BrakeError // why no counter is lowered, or would be by a repair
}

// Open is how many counters did not agree and were still to be looked at again,
// which is 0 unless the recount has failed.
func (r Recounted) Open() int {
	return r.Parents - r.Right - r.Settled - r.Corrected - r.Busy - r.Gone - r.Held - r.Failed
}

// batchSize is how many wrong counters wait for their second look together.
const batchSize = 1000

// Run recounts parents, each an item of Table or the key of one. It ends at the
// first error, and can then be run again from the start.
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
	brake brake
}

// all looks at all parents, and corrects what is not to be lowered.
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
	if r.Settle == 0 {
		r.Settle = time.Minute
	}
	if r.Attempts == 0 {
		r.Attempts = 5
	}
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
	bad  error // why the counter cannot be read

	// early says that the counter is right and the parent has children that came
	// before it.
	early bool
	seen
}

// seen is what a look found. Looks that found the same are equal.
type seen struct {
	has     bool // the parent has the attribute
	counter int64

	children int
	sum      int64
	print    uint64 // of the children, whatever their order
}

func (s seen) right() bool { return s.counter == s.sum }

// look reads the counter first: what moves it from then on fails the write that
// follows, or shows at the next look.
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

// repair looks again at parents whose counters are wrong, until each is right,
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

// settle ends a parent's turn, if it can be ended.
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

// unread tells a counter that cannot be read.
func (r *recount) unread(l look) {
	r.done.Failed++
	r.Found(Correction{Table: r.Table, Key: l.key, Attribute: r.Attribute, Err: l.bad})
}

// correct sets a counter right, and notes that its children count.
func (r *recount) correct(ctx context.Context, l look) error {
	if !r.DryRun {
		noted := recountedOp(r.Name, r.Markers, r.Table, l.key, r.Attribute, l.at)
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
