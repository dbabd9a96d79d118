package poller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluicehq/sluice"
)

// GapKeeper keeps gaps durably until somebody has acknowledged them. The
// poller uses Options.Flow.DeadLetter when that is one, as deadletter.Box is.
// A dead letter with ParkGap alone, such as a queue, is given each gap too; a
// restart then forgets that it was not acknowledged.
//
// A gap is the same as another of the same stream, shard, After and Next. The
// methods are called one at a time, each with a deadline.
type GapKeeper interface {
	// ParkGap makes g durable, in the place of an earlier report of it.
	ParkGap(ctx context.Context, g *sluice.Gap) error
	// Gaps returns what was parked and not acknowledged; beside an error,
	// what of it can be read.
	Gaps(ctx context.Context) ([]sluice.Gap, error)
	// AcknowledgeGap forgets g durably; that it is not there is no error.
	AcknowledgeGap(ctx context.Context, g *sluice.Gap) error
}

type gapParker interface {
	ParkGap(ctx context.Context, g *sluice.Gap) error
}

// gapName tells gaps apart.
type gapName struct {
	stream, shard, next string
	after               sluice.Sequence
}

func nameOf(g *sluice.Gap) gapName { return gapName{g.StreamARN, g.ShardID, g.Next, g.After} }

// gaps are those that nobody has acknowledged: in the keeper, and here.
type gaps struct {
	parker  gapParker                    // nil: only here
	keeper  GapKeeper                    // nil: parker forgets, or there is none
	store   *store                       // makes the calls to both: they may be in the state file
	changed func(table string, open int) // may be nil

	calls chan struct{} // full while both are changed: no mutex, because the keeper takes its time and callers have contexts

	mu   sync.Mutex // guards open
	open map[gapName]sluice.Gap
	told map[string]int // under calls: open gaps by table, as changed was last called
}

func newGaps(o Options, s *store) *gaps {
	g := &gaps{store: s, changed: o.Hooks.OpenGaps, calls: make(chan struct{}, 1),
		open: make(map[gapName]sluice.Gap), told: make(map[string]int)}
	g.parker, _ = o.Flow.DeadLetter.(gapParker)
	g.keeper, _ = o.Flow.DeadLetter.(GapKeeper)
	return g
}

// list returns the open gaps in the order in which they were found.
func (gs *gaps) list() []sluice.Gap {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	return slices.SortedFunc(maps.Values(gs.open), func(a, b sluice.Gap) int {
		return cmp.Or(a.Found.Compare(b.Found), strings.Compare(a.ShardID, b.ShardID), a.After.Compare(b.After))
	})
}

// begin waits until nobody else changes both; receiving from calls lets others.
func (gs *gaps) begin(ctx context.Context) error {
	select {
	case gs.calls <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// put parks g, once; fresh says that it was not open, or not known to reach to
// the end of its shard.
func (gs *gaps) put(ctx context.Context, g *sluice.Gap) (fresh bool, err error) {
	if err := gs.begin(ctx); err != nil {
		return false, err
	}
	defer func() { <-gs.calls }()
	known, ok := gs.known(g)
	if ok { // found again, before anything behind it was settled
		g.Found = known.Found
		if !g.Gone { // else what ended it is lost, too
			g.Before = cmp.Or(g.Before, known.Before)
		}
	}
	if err := gs.park(ctx, g); err != nil {
		return false, err
	}
	return !ok || g.Gone && !known.Gone, nil
}

// end notes the first record found behind g, unless g was acknowledged
// meanwhile.
func (gs *gaps) end(ctx context.Context, g *sluice.Gap, before sluice.Sequence) error {
	if err := gs.begin(ctx); err != nil {
		return err
	}
	defer func() { <-gs.calls }()
	known, ok := gs.known(g)
	if !ok || known.Before == before {
		return nil
	}
	known.Before = before
	return gs.park(ctx, &known)
}

func (gs *gaps) known(g *sluice.Gap) (sluice.Gap, bool) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	known, ok := gs.open[nameOf(g)]
	return known, ok
}

// park is called under calls.
func (gs *gaps) park(ctx context.Context, g *sluice.Gap) error {
	if gs.parker != nil {
		known := *g // g is the caller's again when this call is left behind
		if err := tell(ctx, gs.store, parkGap, func(ctx context.Context) error { return gs.parker.ParkGap(ctx, &known) }); err != nil {
			return fmt.Errorf("%v: %w", g, err)
		}
	}
	gs.change(func() { gs.open[nameOf(g)] = *g })
	return nil
}

// acknowledge forgets the gaps. Those of which the keeper does not know are
// forgotten all the same.
func (gs *gaps) acknowledge(ctx context.Context, acknowledged []sluice.Gap) error {
	if err := gs.begin(ctx); err != nil {
		return fmt.Errorf("poller: acknowledge gaps: %w", err)
	}
	defer func() { <-gs.calls }()
	var errs []error
	for _, g := range acknowledged {
		if gs.keeper != nil {
			err := tell(ctx, gs.store, "acknowledge gap", func(ctx context.Context) error { return gs.keeper.AcknowledgeGap(ctx, &g) })
			if err != nil {
				errs = append(errs, fmt.Errorf("poller: acknowledge the gap of %v: %w", g, err))
				continue
			}
		}
		gs.change(func() { delete(gs.open, nameOf(&g)) })
	}
	return errors.Join(errs...)
}

// load takes over what the keeper has. Where it cannot tell all, what is here
// stays.
func (gs *gaps) load(ctx context.Context) error {
	if gs.keeper == nil {
		return nil
	}
	if err := gs.begin(ctx); err != nil {
		return err
	}
	defer func() { <-gs.calls }()
	kept, err := ask(ctx, gs.store, listGaps, gs.keeper.Gaps)
	gs.change(func() {
		if err == nil {
			clear(gs.open)
		}
		for _, g := range kept {
			gs.open[nameOf(&g)] = g
		}
	})
	return err
}

// change changes what is open, and tells the tables where that is another
// number now. It is called under calls.
func (gs *gaps) change(do func()) {
	now := make(map[string]int)
	gs.mu.Lock()
	do()
	for _, g := range gs.open {
		now[g.Table]++
	}
	gs.mu.Unlock()
	for table := range gs.told {
		now[table] += 0
	}
	for table, n := range now {
		if gs.changed != nil && gs.told[table] != n {
			gs.changed(table, n)
		}
	}
	gs.told = now
}

// Gaps lists the gaps that nobody has acknowledged, in the order in which they
// were found: by this poller, and those that the dead letters hold from before
// the start or of another stream.
func (p *Poller) Gaps() []sluice.Gap { return p.gaps.list() }

// AcknowledgeGaps says that somebody has seen the gaps, which Gaps listed: they
// no longer make the poller unready, and their dead letters are deleted. Those
// for which the error says that they could not be deleted stay as they are.
func (p *Poller) AcknowledgeGaps(ctx context.Context, gaps ...sluice.Gap) error {
	return p.gaps.acknowledge(ctx, gaps)
}

// loadGaps reads which gaps are open.
func (p *Poller) loadGaps(ctx context.Context) {
	if err := p.gaps.load(ctx); ctx.Err() == nil {
		p.health.store(listGaps, err)
		if err != nil {
			p.failed(Shard{}, listGaps, err, transient, p.o.DiscoverEvery)
		}
	}
}

// watchGaps notices which gaps somebody acknowledged by deleting their dead
// letters.
func (p *Poller) watchGaps(ctx context.Context) {
	for sleep(ctx, p.o.DiscoverEvery) == nil {
		p.loadGaps(ctx)
	}
}

const (
	parkGap  = "park gap"
	listGaps = "list gaps"
)

// foundGap makes a gap durable, and then tells of it. It returns nil, or ctx's
// error: until the gap is durable nobody may go on behind it.
func (p *Poller) foundGap(ctx context.Context, g *sluice.Gap) error {
	var fresh bool
	err := p.untilParked(ctx, g, func() (err error) {
		fresh, err = p.gaps.put(ctx, g)
		return err
	})
	if err != nil || !fresh {
		return err
	}
	durable := p.gaps.parker != nil
	if g.Next != "" {
		p.o.Logger.Error("the table has a new stream: what was written to it between the two is in neither: not ready until the gap is acknowledged",
			"table", g.Table, "stream", g.StreamARN, "next", g.Next, "deadLetter", durable)
	} else {
		p.o.Logger.Error("records were trimmed before they were read: they are lost to this application: not ready until the gap is acknowledged",
			"table", g.Table, "shard", g.ShardID, "stream", g.StreamARN, "after", string(g.After),
			"wholeRestOfShard", g.Gone, "deadLetter", durable)
	}
	if h := p.o.Hooks.Gap; h != nil {
		h(*g)
	}
	return nil
}

func (p *Poller) untilParked(ctx context.Context, g *sluice.Gap, park func() error) error {
	var b backoff
	for {
		err := park()
		if err != nil && ctx.Err() == nil {
			wait := b.next(transient)
			p.health.store(parkGap, err)
			p.failed(Shard{g.Table, g.StreamARN, g.ShardID}, parkGap, err, transient, wait)
			if sleep(ctx, wait) == nil {
				continue
			}
		}
		p.health.store(parkGap, nil)
		if err != nil {
			return ctx.Err()
		}
		return nil
	}
}

// endGap makes the end of an open gap durable before pg, which holds the first
// record behind it, is handled.
func (w *worker) endGap(ctx context.Context, pg page) error {
	if pg.behind != nil {
		w.behind = pg.behind
	}
	if w.behind == nil {
		return nil
	}
	for i := range pg.records {
		seq := pg.records[i].Sequence
		if !seq.Valid() || seq.Compare(w.skipTo) <= 0 {
			continue
		}
		seq = kept(seq)
		if err := w.p.untilParked(ctx, w.behind, func() error { return w.p.gaps.end(ctx, w.behind, seq) }); err != nil {
			return err
		}
		w.behind = nil
		return nil
	}
	return nil
}

// gap reports that whatever came after a position of the shard was lost.
func (w *worker) gap(ctx context.Context, after sluice.Sequence, gone bool) (*sluice.Gap, error) {
	g := &sluice.Gap{
		Table: w.shard.Table, StreamARN: w.shard.StreamARN, ShardID: w.shard.ID,
		After: after, Gone: gone, Found: time.Now(),
	}
	return g, w.p.foundGap(ctx, g)
}
