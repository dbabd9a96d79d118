package snapshot

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/wire"
	"github.com/sluicehq/sluice/state"
)

// segment reads one part of the table into a flow of its own.
type segment struct {
	src   *Source
	n     int
	begun mark // durable before this run

	// Of a fleet: the claim, whose end cancels lost.
	lease state.Lease
	lost  context.Context
	lose  context.CancelFunc // nil: no claim

	mu      sync.Mutex
	flow    *flow.Flow // nil when it was done before
	pages   []position // that are not settled, in order
	read    sum        // since the beginning of the backfill
	durable mark
	stored  bool // durable is
	ended   bool // run has
}

// position is what can be stored once the first n records of the flow are
// settled.
type position struct {
	n    uint64
	mark mark
}

// run reads until the segment's end or the end of ctx, and then settles the items
// read within t.
func (g *segment) run(ctx context.Context, t terms) error {
	defer func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.ended = true
	}()
	if g.begun.Done {
		return nil
	}
	if g.lose != nil {
		var ends [2]context.CancelFunc
		ctx, ends[0] = context.WithCancel(ctx)
		t.flows, ends[1] = context.WithCancel(t.flows)
		for _, end := range ends {
			defer end()
			defer context.AfterFunc(g.lost, end)()
		}
	}
	after, err := g.begun.key()
	if err != nil {
		return fmt.Errorf("snapshot: table %q: the stored key of segment %d: %w", g.src.o.Table, g.n, err)
	}
	f := flow.Open(t.flows, g.src.matcher, g.src.flowOptions())
	g.mu.Lock()
	g.flow = f
	g.mu.Unlock()
	readErr := g.take(ctx, f, after)
	if readErr != nil {
		f.Leave()
	}
	defer context.AfterFunc(ctx, f.Leave)() // items of a paused route come again
	_, err = f.Close(t.handlers)
	if readErr == nil && err == nil {
		g.end()
	}
	if ctx.Err() != nil {
		return nil // why it ended is known
	}
	if readErr != nil {
		return readErr
	}
	return err
}

// take submits the segment's pages. The next is fetched while the flow works on
// this one.
func (g *segment) take(ctx context.Context, f *flow.Flow, after sluice.Item) error {
	ctx, stop := context.WithCancel(ctx)
	r := &reader{
		scanner: g.src.scanner, segment: g.n, after: after,
		failed: func(err error, retryIn time.Duration) { g.src.troubled(g.n, err, retryIn) },
		worked: func() { g.src.untroubled(g.n) },
	}
	pages := make(chan wire.ScanPage)
	var end error
	var fetching sync.WaitGroup
	defer fetching.Wait()
	defer stop()
	fetching.Go(func() {
		defer close(pages)
		end = r.send(ctx, pages)
	})
	for page := range pages {
		last, err := f.Submit(ctx, page.Records...)
		if err != nil {
			return err
		}
		g.submitted(last, page)
	}
	return end
}

// submitted notes where the segment is once its first n records are settled.
func (g *segment) submitted(n uint64, page wire.ScanPage) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.read.add(sumOf(page))
	if !page.Last.Exists() { // the end is stored when Close says that all is settled
		return
	}
	p := position{n, mark{After: page.Last.Raw(), sum: g.read}}
	if k := len(g.pages) - 1; k >= 0 && g.pages[k].n == n { // a page without items
		g.pages[k] = p
		return
	}
	g.pages = append(g.pages, p)
}

func sumOf(page wire.ScanPage) sum {
	s := sum{Items: int64(len(page.Records)), Units: page.Units}
	for i := range page.Records {
		s.Bytes += int64(len(page.Records[i].New.Raw()))
	}
	return s
}

// end notes that all of the segment is settled.
func (g *segment) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pages = nil
	g.durable, g.stored = mark{Done: true, sum: g.read}, false
}

// state reports whether this worker reads a claimed segment or has its end to store, and
// whether the end is stored.
func (g *segment) state() (reads, done bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	done = g.durable.Done && g.stored
	return g.lose != nil && (!g.ended || g.lost.Err() == nil && !done), done
}

// settle moves durable up to the last page whose records are all settled, and
// returns it if it must be stored.
func (g *segment) settle() (mark, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.flow != nil && !g.durable.Done {
		settled := g.flow.Settled()
		i := 0
		for ; i < len(g.pages) && g.pages[i].n <= settled; i++ {
			g.durable, g.stored = g.pages[i].mark, false
		}
		g.pages = g.pages[i:]
	}
	return g.durable, !g.stored
}

// saved notes that m is stored.
func (g *segment) saved(m mark) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stored = m.Done == g.durable.Done && string(m.After) == string(g.durable.After)
}

// progress returns the items read, how many of them are settled, and whether all
// are.
func (g *segment) progress() (read sum, settled int64, done bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	settled = g.begun.Items
	if g.flow != nil {
		settled += int64(g.flow.Settled())
	}
	return g.read, settled, g.durable.Done
}
