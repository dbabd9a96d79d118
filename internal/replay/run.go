package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/backoff"
	"github.com/sluicehq/sluice/internal/latectx"
	"github.com/sluicehq/sluice/internal/reread"
)

// Options of a replay. DeadLetter and Bad are needed.
type Options struct {
	// Offset is where to continue, from [Progress] of this input.
	Offset int64
	// Route is the only route for records; empty: all.
	Route string
	// Attempts for one record and route (default 5).
	Attempts int
	// Items is the items with a failed change. Inputs whose records belong
	// together share it, so that no later change overtakes a failed one; nil:
	// of this input alone.
	Items *Items
	// Flow has the options for running records; its DeadLetter stores failures.
	// Each route of dead letters has its own flow.
	Flow flow.Options
	// Bad keeps what cannot be read; its error ends the replay.
	Bad func(Bad) error
	// Letter decodes a dead letter; ok is false for other values. nil: none is
	// expected.
	Letter func(data []byte) (l Letter, ok bool, err error)
	// Reread calls f with the records of a range, a page at a time; nil refuses
	// on-failure records.
	Reread func(ctx context.Context, rng reread.Range, f func([]sluice.Record) error) error
	// Tell, if not nil, makes a dry run: it gets the routes that each record
	// would take, or the record's error, and nothing runs. Order and
	// concurrency are Flow's.
	Tell func(rec *sluice.Record, routes []*sluice.Route, err error)
	// Progress is called every second, and at the end; may be nil.
	Progress func(Progress)
	// Grace is for running handlers when ctx ends (default 10 s).
	Grace time.Duration
}

// Bad is a value that cannot be read.
type Bad struct {
	Line int // at which it begins, from 1
	Text []byte
	Err  error
}

// Progress says how far a replay is.
type Progress struct {
	Offset   int64 `json:"offset"`   // in bytes: all before is handled or kept
	Values   int   `json:"values"`   // read
	Records  int   `json:"records"`  // in them
	Bad      int   `json:"bad"`      // values that could not be read
	Done     int   `json:"done"`     // handled, by record and route
	Skipped  int   `json:"skipped"`  // by their handlers
	Unrouted int   `json:"unrouted"` // records that no route takes
	Parked   int   `json:"parked"`   // failed, by record and route
}

// ErrStopped says that ctx ended before the input did.
var ErrStopped = errors.New("stopped before the end of the input")

// replayer is one Run.
type replayer struct {
	o       Options
	matcher *limited
	running context.Context // of handlers: ends Grace after Run's ctx
	flows   map[string]*flow.Flow
	marks   []mark // of unsettled values, in the order of the input

	mu sync.Mutex
	p  Progress
}

// mark is the end of a batch: when its flow has settled that many records,
// everything up to the offset is done.
type mark struct {
	flow    *flow.Flow // nil: nothing to wait for
	ordinal uint64
	offset  int64
}

// Run replays an input to its end. It returns how far it came, and nil when all
// of the input was handled or kept; [ErrStopped] when ctx ended before.
func Run(ctx context.Context, m sluice.Matcher, in io.Reader, o Options) (Progress, error) {
	if o.Flow.DeadLetter == nil || o.Bad == nil {
		return Progress{}, errors.New("replay: Options.Flow.DeadLetter and Options.Bad are needed: what fails must be kept")
	}
	if len(m.Routes()) == 0 {
		return Progress{}, errors.New("replay: there is no route: nothing would be handled")
	}
	if o.Route != "" && !slices.ContainsFunc(m.Routes(), func(rt *sluice.Route) bool { return rt.Name == o.Route }) {
		return Progress{}, fmt.Errorf("replay: there is no route %q", o.Route)
	}
	o.Attempts = cmp.Or(o.Attempts, 5)
	o.Grace = cmp.Or(o.Grace, 10*time.Second)
	o.Items = cmp.Or(o.Items, new(Items))
	running, cancel := latectx.After(ctx, o.Grace)
	defer cancel()
	r := &replayer{o: o, matcher: limit(m, o.Attempts, o.Items), running: running, flows: make(map[string]*flow.Flow), p: Progress{Offset: o.Offset}}
	r.o.Flow.MaxAge, r.o.Flow.ParkItem = ages, true // later changes of an item do not overtake a failed one
	r.o.Flow.DeadLetter = holding{r.o.Flow.DeadLetter, o.Items}
	r.o.Flow.Group = flow.NewGroup(r.matcher)
	told := r.tell()
	err := r.read(ctx, in)
	errs := []error{err}
	for _, f := range r.flows {
		_, err := f.Close(running)
		if err != nil && ctx.Err() != nil { // the time to drain was over
			err = ErrStopped
		}
		if !errors.Is(errs[0], ErrStopped) {
			errs = append(errs, err)
		}
	}
	r.settle()
	told()
	return r.progress(), errors.Join(errs...)
}

func (r *replayer) progress() Progress {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.p
}

// tell tells the progress until the function that it returns is called.
func (r *replayer) tell() (end func()) {
	if r.o.Progress == nil {
		return func() {}
	}
	ctx, stop := context.WithCancel(context.Background())
	var telling sync.WaitGroup
	telling.Go(func() {
		for backoff.Sleep(ctx, time.Second) == nil {
			r.o.Progress(r.progress())
		}
	})
	return func() {
		stop()
		telling.Wait()
		r.o.Progress(r.progress())
	}
}

// read submits all of the input.
func (r *replayer) read(ctx context.Context, in io.Reader) error {
	s := newSplitter(in)
	if err := s.skip(r.o.Offset); err != nil {
		return err
	}
	for ctx.Err() == nil {
		values, err := s.values()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", s.line+1, err)
		}
		for i, v := range values {
			if err := r.submit(ctx, v); err != nil {
				if ctx.Err() != nil {
					return ErrStopped
				}
				return fmt.Errorf("line %d: %w", v.line, err)
			}
			// Values of one line are done together.
			if i == len(values)-1 || values[i+1].end != v.end {
				r.marks = append(r.marks, mark{offset: v.end})
			}
		}
		r.settle()
	}
	return ErrStopped
}

// submit hands a value to the flows, or to Bad.
func (r *replayer) submit(ctx context.Context, v value) error {
	r.add(&r.p.Values, 1)
	err := v.err
	if err == nil {
		err = r.value(ctx, v.text, 0)
	}
	switch {
	case err == nil:
		return nil
	case errors.As(err, new(*runError)), ctx.Err() != nil:
		return err
	}
	r.add(&r.p.Bad, 1)
	return r.o.Bad(Bad{Line: v.line, Text: v.text, Err: err})
}

// flow returns the flow for b's records.
func (r *replayer) flow(b batch) *flow.Flow {
	name := "all"
	var m sluice.Matcher = r.matcher
	switch {
	case b.letter && b.route != "" && r.o.Route != "" && b.route != r.o.Route:
		name, m = "none", nothing{r.matcher}
	case b.letter && b.route != "":
		name, m = "letter "+b.route, only{r.matcher, b.route, true}
	case r.o.Route != "":
		m = only{r.matcher, r.o.Route, false}
	}
	f := r.flows[name]
	if f == nil {
		o := r.o.Flow
		if r.o.Tell != nil {
			t := telling{m, r.o.Tell}
			m, o.DeadLetter = t, t
		}
		next := o.Hooks.Handled
		o.Hooks.Handled = func(ctx context.Context, rec *sluice.Record, rt *sluice.Route, res flow.Result, took time.Duration, err error) {
			r.count(res)
			if next != nil {
				next(ctx, rec, rt, res, took, err)
			}
		}
		f = flow.Open(r.running, m, o)
		r.flows[name] = f
	}
	return f
}

// nothing takes no record: it is of a dead letter for another route.
type nothing struct{ *limited }

func (nothing) Match(dst []*sluice.Route, _ *sluice.Record) ([]*sluice.Route, error) {
	return dst, nil
}

// telling is a Matcher that tells which routes would run.
type telling struct {
	sluice.Matcher
	tell func(*sluice.Record, []*sluice.Route, error)
}

func (t telling) Match(dst []*sluice.Route, rec *sluice.Record) ([]*sluice.Route, error) {
	n := len(dst)
	dst, err := t.Matcher.Match(dst, rec)
	t.tell(rec, dst[n:], err)
	return dst[:n], nil
}

// Park reports a record that cannot be decoded.
func (t telling) Park(_ context.Context, rec *sluice.Record, f sluice.Failure) error {
	t.tell(rec, nil, f.Last)
	return nil
}

func (r *replayer) count(res flow.Result) {
	counts := [...]*int{flow.Done: &r.p.Done, flow.Skipped: &r.p.Skipped, flow.Parked: &r.p.Parked, flow.Unrouted: &r.p.Unrouted}
	if n := counts[res]; n != nil { // Unrouted is the last one
		r.add(n, 1)
	}
}

// add adds to a number of the progress.
func (r *replayer) add(n *int, by int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*n += by
}

// settle moves the offset to where all before is settled.
func (r *replayer) settle() {
	n := 0
	for _, m := range r.marks {
		if m.flow != nil && m.flow.Settled() < m.ordinal {
			break
		}
		n++
		if m.offset > 0 {
			r.mu.Lock()
			r.p.Offset = m.offset
			r.mu.Unlock()
		}
	}
	r.marks = r.marks[n:]
}
