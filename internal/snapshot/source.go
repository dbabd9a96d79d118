package snapshot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"golang.org/x/sync/errgroup"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/backoff"
	"github.com/sluicehq/sluice/internal/latectx"
	"github.com/sluicehq/sluice/state"
)

// Source reads a table once and hands its items to the routes of a Matcher.
type Source struct {
	cfg     aws.Config
	matcher sluice.Matcher
	o       Options
	log     *slog.Logger
	ran     atomic.Bool
	opened  chan struct{}

	// Known once it is open.
	scanner *scanner
	book    *book
	fleet   *fleet // nil if the store has one process

	refusals refusals
	health   health

	mu       sync.Mutex
	segments []*segment
	finished bool
	whole    *head // of a backfill that was finished before, or by others
}

// New returns a Source that calls the service by cfg. It makes no call; its
// error says which option is wrong, or that no route takes SNAPSHOT records.
func New(cfg aws.Config, m sluice.Matcher, o Options) (*Source, error) {
	o = o.withDefaults()
	if err := checkName(o.Table); err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(m.Routes(), func(rt *sluice.Route) bool { return rt.Snapshot }) {
		return nil, errors.New(`snapshot: no route takes SNAPSHOT records: write the event out, such as "order#SNAPSHOT"`)
	}
	if o.Flow.Group == nil {
		o.Flow.Group = flow.NewGroup(m)
	}
	s := &Source{cfg: cfg, matcher: m, o: o, opened: make(chan struct{})}
	s.log = o.Scan.Logger.With("table", o.Table)
	if o.Name != "" {
		s.log = s.log.With("backfill", o.Name)
	}
	s.refusals.limit, s.refusals.routes, s.health.segments = o.GiveUpAfter, map[string]int{}, map[int]trouble{}
	s.health.tellScan.Interval, s.health.tellSave.Interval = tellEvery, tellEvery
	return s, nil
}

// Run reads the table and returns nil when every item is settled and stored as
// such. If the backfill is finished, Run logs that and does nothing, unless
// Options.Again is set. A begun backfill continues after its stored progress.
//
// When ctx ends, Run stops reading, settles the items read, stores the progress
// and returns nil within Options.Grace. [Source.Progress] says whether the
// backfill is finished. Run returns errors of the start, a [*TableError] for a
// permanent failure, an error if a route refuses everything, and one if the
// progress could not be stored. It retries everything else without a limit; see
// [Source.Troubles]. Call Run once.
func (s *Source) Run(ctx context.Context) error {
	if s.ran.Swap(true) {
		return errors.New("snapshot: Run was called before: make a new Source")
	}
	begin, err := s.open(ctx)
	if s.fleet != nil {
		defer s.fleet.owner.End()
	}
	if err != nil || !begin {
		if ctx.Err() != nil {
			return nil // stopped before it began
		}
		if err == nil {
			close(s.opened)
			s.tell()
			s.log.Info("the backfill is finished: nothing is read", "finished", s.book.head.Finished, "items", s.book.head.Sum.Items)
		}
		return err
	}
	close(s.opened)
	s.health.set(true)
	defer s.health.set(false)
	s.tell()
	defer s.tellEnd()

	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	s.refusals.stop = stop
	var t terms
	var ends [3]context.CancelFunc
	t.flows, ends[0] = latectx.After(ctx, s.o.Grace-s.reserve())
	t.handlers, ends[1] = latectx.After(ctx, s.o.Grace-s.reserve()/2)
	t.writes, ends[2] = latectx.After(ctx, s.o.Grace)
	for _, end := range ends {
		defer end()
	}
	saving, endSaving := context.WithCancel(context.WithoutCancel(ctx))
	var background sync.WaitGroup
	background.Go(func() { s.saveAgain(saving, t.writes) })

	var reading errgroup.Group
	read := func(g *segment) {
		reading.Go(func() error {
			err := g.run(ctx, t)
			if err != nil {
				stop(nil)
			}
			return err
		})
	}
	var shared error
	if s.fleet != nil {
		if shared = s.share(ctx, read); shared != nil {
			stop(nil)
		}
	} else {
		for _, g := range s.segments {
			read(g)
		}
	}
	err = reading.Wait()
	endSaving()
	background.Wait()
	saved := s.save(t.writes)
	if s.fleet != nil {
		s.fleet.leave(t.writes, s.all())
	}
	return errors.Join(cmp.Or(s.refusals.err(), err), shared, saved, s.finish(ctx, t, saved))
}

// terms are contexts that end at different times after Run's has.
type terms struct {
	flows    context.Context // its end starts no records and cancels handlers
	handlers context.Context // its end gives up on handlers that ignore cancellation
	writes   context.Context // its end stops calls to the store
}

// reserve is the part of Grace that is kept for cancelled handlers to return,
// and for the last writes.
func (s *Source) reserve() time.Duration { return min(s.o.Grace/4, 3*time.Second) }

// open finds the table and the stored progress; begin is false if there is nothing
// to do.
func (s *Source) open(ctx context.Context) (begin bool, err error) {
	c := newClient(s.cfg, s.o.Table, s.o.Scan)
	sc, err := newScanner(ctx, c, s.o.Scan)
	if err != nil {
		return false, err
	}
	s.scanner = sc
	s.book = &book{
		store: s.o.Store, app: s.o.Application, timeout: s.o.Scan.CallTimeout,
		name: "backfill/" + s.o.Name + "/" + sc.table.arn,
		saved: func(took time.Duration, err error) {
			s.health.store(err)
			if hook := s.o.Hooks.Saved; hook != nil {
				hook(s.o.Table, took, err)
			}
		},
	}
	s.fleet = s.newFleet(s.book)
	marks, err := s.resume(ctx)
	if err != nil || marks == nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, m := range marks {
		s.segments = append(s.segments, s.elsewhere(i, m))
	}
	return true, nil
}

// resume returns the marks from which to continue, those of a new backfill, or
// none if it is finished.
func (s *Source) resume(ctx context.Context) ([]mark, error) {
	b, t := s.book, &s.scanner.table
	want := head{TableID: t.id, Created: t.created, Segments: s.o.Scan.Segments, Eventual: s.o.Scan.Eventual}
	failed := func(doing string, err error) error {
		return fmt.Errorf("snapshot: table %q: %s the progress of the backfill: %w", s.o.Table, doing, err)
	}
	stored, err := b.load(ctx, s.log)
	if err != nil {
		return nil, failed("read", err)
	}
	differs := ""
	if stored {
		differs = b.head.differs(want)
	}
	if stored && differs == "" && !b.head.Finished.IsZero() && !s.o.Again {
		s.mu.Lock()
		s.finished, s.whole = true, &b.head
		s.mu.Unlock()
		return nil, nil
	}
	if err := s.checkStream(ctx); err != nil {
		return nil, err
	}
	if stored && differs == "" && b.head.Finished.IsZero() {
		s.scanner.segments = b.head.Segments
		marks, err := b.marks(ctx)
		if err != nil {
			return nil, failed("read", err)
		}
		done, items := totals(marks)
		s.log.Info("the backfill goes on", "begun", b.head.Begun, "segments", len(marks), "done", done, "items", items)
		return marks, nil
	}
	if s.fleet != nil && want.Segments == 0 {
		s.scanner.segments = segmentsBySize(t.bytes) // others may join
	}
	want.Segments = s.scanner.segments
	if err := b.begin(ctx, want); errors.Is(err, errOther) {
		return s.resume(ctx)
	} else if err != nil {
		return nil, failed("store", err)
	}
	attrs := []any{"segments", want.Segments, "about", t.items, "units", s.scanner.budget.Rate()}
	if differs != "" {
		attrs = append(attrs, "because", differs)
		s.log.Warn("the backfill begins anew", attrs...)
	} else {
		s.log.Info("the backfill begins", attrs...)
	}
	return make([]mark, want.Segments), nil
}

// checkStream ensures that later writes will be read from the stream: its reading
// has begun, or that of an earlier stream. A new stream is read from its beginning
// after an earlier one.
func (s *Source) checkStream(ctx context.Context) error {
	if s.o.WithoutStream {
		return nil
	}
	const do = "Have the daemon store where it begins to read the stream, then begin the backfill; or say that nothing is written meanwhile"
	t := &s.scanner.table
	if t.stream == "" {
		return &TableError{Table: t.name, Err: fmt.Errorf("%w: the table has no stream", ErrNoStream), Do: do}
	}
	ctx, cancel := context.WithTimeout(ctx, s.o.Scan.CallTimeout)
	defer cancel()
	streams, err := s.o.Store.Streams(ctx, s.o.Application)
	if err != nil {
		return fmt.Errorf("snapshot: table %q: read which streams are stored: %w", t.name, err)
	}
	for _, st := range streams {
		if !strings.HasPrefix(st.ARN, t.arn+"/stream/") {
			continue
		}
		switch _, err := s.o.Store.Start(ctx, st, state.Start{}); {
		case err == nil:
			return nil
		case !errors.Is(err, state.ErrNoStart):
			return fmt.Errorf("snapshot: table %q: read the stored start: %w", t.name, err)
		}
	}
	return &TableError{Table: t.name, Err: fmt.Errorf("%w for the application %q", ErrNoStream, s.o.Application), Do: do}
}

// flowOptions are those of one segment's flow.
func (s *Source) flowOptions() flow.Options {
	o := s.o.Flow
	o.WindowBytes = cmp.Or(o.WindowBytes, max(4<<20, windowBytes/int64(max(1, len(s.all())))))
	o.Hooks.Handled = s.refusals.watch(o.Hooks.Handled)
	return o
}

// windowBytes limits the unsettled bytes of all segments.
const windowBytes = 256 << 20

// saveAgain stores the progress each SaveEvery until ctx ends; writes ends
// later. What cannot be stored is tried again.
func (s *Source) saveAgain(ctx, writes context.Context) {
	for backoff.Sleep(ctx, s.o.SaveEvery) == nil {
		if err := s.save(writes); err != nil {
			s.health.tellSave.Do(func() {
				s.log.Warn("the progress of the backfill cannot be stored; it is tried again", "error", err)
			})
		}
		s.tell()
	}
}

// save stores the marks that moved. A mark is never ahead of durable items.
func (s *Source) save(ctx context.Context) error {
	var errs []error
	for i, g := range s.all() {
		m, moved := g.settle()
		if !moved || g.lost != nil && g.lost.Err() != nil {
			continue
		}
		var err error
		if g.lose == nil {
			err = s.book.put(ctx, s.book.segment(i), m)
		} else if err = s.fleet.put(ctx, g, m); errors.Is(err, state.ErrLeaseLost) {
			s.log.Warn("another worker has the segment: it goes on there", "segment", i, "error", err)
			g.lose()
			continue
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("snapshot: table %q: store the progress of segment %d: %w", s.o.Table, i, err))
			continue
		}
		g.saved(m)
	}
	return errors.Join(errs...)
}

// finish stores that all is settled, if it is.
func (s *Source) finish(ctx context.Context, t terms, saved error) error {
	var all sum
	for _, g := range s.all() {
		read, _, done := g.progress()
		if !done {
			return nil
		}
		all.add(read)
	}
	if saved != nil || ctx.Err() != nil {
		return nil // the next Run finds all segments done
	}
	if err := s.scanner.unchanged(ctx, s.o.Scan.Patience); err != nil {
		return err
	}
	finish := func() error { return s.book.finish(t.writes, all) }
	if s.fleet != nil {
		finish = func() error { return s.finishTogether(t.writes) }
	}
	if err := finish(); err != nil {
		return fmt.Errorf("snapshot: table %q: store that the backfill is finished: %w", s.o.Table, err)
	}
	s.mu.Lock()
	s.finished = true
	s.mu.Unlock()
	return nil
}

// Progress returns how far the backfill is; the zero Progress before it has
// begun.
func (s *Source) Progress() Progress {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := Progress{Table: s.o.Table, Name: s.o.Name, Finished: s.finished, Segments: len(s.segments)}
	select {
	case <-s.opened:
	default:
		return p
	}
	p.TableItems, p.TableBytes, p.Begun = s.scanner.table.items, s.scanner.table.bytes, s.book.head.Begun
	for _, g := range s.segments {
		read, settled, done := g.progress()
		p.Items, p.Bytes, p.Units = p.Items+read.Items, p.Bytes+read.Bytes, p.Units+read.Units
		p.Settled += settled
		if done {
			p.Done++
		}
	}
	if s.whole != nil {
		all := s.whole.Sum
		p.Items, p.Settled, p.Bytes, p.Units = all.Items, all.Items, all.Bytes, all.Units
		p.Segments, p.Done = s.whole.Segments, s.whole.Segments
	}
	return p
}

// tellEnd tells how far Run came: in its numbers first, so that who reads in the
// log that it is finished finds it in the metrics, too.
func (s *Source) tellEnd() {
	s.tell()
	if p := s.Progress(); p.Finished {
		s.log.Info("the backfill is finished", "items", p.Items, "units", p.Units, "took", time.Since(p.Begun).Round(time.Millisecond))
	}
}

func (s *Source) tell() {
	if hook := s.o.Hooks.Progress; hook != nil {
		hook(s.Progress())
	}
}
