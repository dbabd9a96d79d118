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

// GapKeeper stores gaps until an operator acknowledges them. The poller uses
// Options.Flow.DeadLetter if it is a GapKeeper, such as deadletter.Box. A dead
// letter with ParkGap alone, such as a queue, gets each gap too. After a restart
// the poller then forgets which gaps were not acknowledged.
//
// Stream, shard, After and Next identify a gap. The methods run one at a time,
// each with a deadline.
type GapKeeper interface {
	// ParkGap stores g and replaces an earlier report of it.
	ParkGap(ctx context.Context, g *sluice.Gap) error
	// Gaps returns the stored gaps. With an error it returns the readable ones.
	Gaps(ctx context.Context) ([]sluice.Gap, error)
	// AcknowledgeGap deletes g durably. A missing g is not an error.
	AcknowledgeGap(ctx context.Context, g *sluice.Gap) error
}

type gapParker interface {
	ParkGap(ctx context.Context, g *sluice.Gap) error
}

// gapName identifies a gap.
type gapName struct {
	stream, shard, next string
	after               sluice.Sequence
}

func nameOf(g *sluice.Gap) gapName { return gapName{g.StreamARN, g.ShardID, g.Next, g.After} }

// gaps are the unacknowledged gaps, in memory and in the keeper.
type gaps struct {
	parker  gapParker                    // nil: memory only
	keeper  GapKeeper                    // nil: parker cannot list gaps, or is nil
	store   *store                       // makes the calls to both, which may use the state file
	changed func(table string, open int) // may be nil

	calls chan struct{} // full while gaps change; not a mutex, because the keeper is slow and callers have contexts

	mu   sync.Mutex // guards open
	open map[gapName]sluice.Gap
	told map[string]int // under calls: open gaps by table at the last call of changed
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

// begin waits until no other goroutine changes gaps. Receive from calls to end.
func (gs *gaps) begin(ctx context.Context) error {
	select {
	case gs.calls <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// put parks g once. fresh: g was not open, or was not known to reach the end of
// its shard.
func (gs *gaps) put(ctx context.Context, g *sluice.Gap) (fresh bool, err error) {
	if err := gs.begin(ctx); err != nil {
		return false, err
	}
	defer func() { <-gs.calls }()
	known, ok := gs.known(g)
	if ok { // found again before any record behind it was settled
		g.Found = known.Found
		if !g.Gone { // else the record that ended it is lost, too
			g.Before = cmp.Or(g.Before, known.Before)
		}
	}
	if err := gs.park(ctx, g); err != nil {
		return false, err
	}
	return !ok || g.Gone && !known.Gone, nil
}

// end notes the first record found behind g, unless g was acknowledged meanwhile.
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

// park runs under calls.
func (gs *gaps) park(ctx context.Context, g *sluice.Gap) error {
	if gs.parker != nil {
		known := *g // the caller may reuse g while this call still runs
		if err := tell(ctx, gs.store, parkGap, func(ctx context.Context) error { return gs.parker.ParkGap(ctx, &known) }); err != nil {
			return fmt.Errorf("%v: %w", g, err)
		}
	}
	gs.change(func() { gs.open[nameOf(g)] = *g })
	return nil
}

// acknowledge removes the gaps, even those unknown to the keeper.
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

// load loads the keeper's gaps. If the keeper cannot read all of them, known gaps
// stay.
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

// change runs do, and calls changed for tables with a new number of open gaps. It
// runs under calls.
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

// Gaps lists the unacknowledged gaps in the order in which they were found. It
// includes gaps from the dead letters that are of an earlier run or of another
// stream.
func (p *Poller) Gaps() []sluice.Gap { return p.gaps.list() }

// AcknowledgeGaps acknowledges gaps that an operator has seen: they no longer make
// the poller unready, and their dead letters are deleted. A gap that the error
// names could not be deleted and stays.
func (p *Poller) AcknowledgeGaps(ctx context.Context, gaps ...sluice.Gap) error {
	return p.gaps.acknowledge(ctx, gaps)
}

// loadGaps loads the open gaps.
func (p *Poller) loadGaps(ctx context.Context) {
	if err := p.gaps.load(ctx); ctx.Err() == nil {
		p.health.store(listGaps, err)
		if err != nil {
			p.failed(Shard{}, listGaps, err, transient, p.o.DiscoverEvery)
		}
	}
}

// watchGaps notices gaps that were acknowledged by deleting their dead letters.
func (p *Poller) watchGaps(ctx context.Context) {
	for sleep(ctx, p.o.DiscoverEvery) == nil {
		p.loadGaps(ctx)
	}
}

const (
	parkGap  = "park gap"
	listGaps = "list gaps"
)

// foundGap stores a gap and then reports it. It returns nil, or ctx's error.
// Reading must not continue before the gap is durable.
func (p *Poller) foundGap(ctx context.Context, g *sluice.Gap) error {
	var fresh bool
	err := p.until(ctx, Shard{g.Table, g.StreamARN, g.ShardID}, parkGap, func() (err error) {
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

// endGap stores the end of an open gap before pg, which has the first record
// behind it, is handled.
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
		if err := w.p.until(ctx, w.shard, parkGap, func() error { return w.p.gaps.end(ctx, w.behind, seq) }); err != nil {
			return err
		}
		w.behind = nil
		return nil
	}
	return nil
}

// gap reports that the records after a position of the shard are lost.
func (w *worker) gap(ctx context.Context, after sluice.Sequence, gone bool) (*sluice.Gap, error) {
	g := &sluice.Gap{
		Table: w.shard.Table, StreamARN: w.shard.StreamARN, ShardID: w.shard.ID,
		After: after, Gone: gone, Found: time.Now(),
	}
	return g, w.p.foundGap(ctx, g)
}
