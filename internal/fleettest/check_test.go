//go:build integration && unix

package fleettest

import (
	"fmt"
	"sync"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/state"
	"github.com/sluicehq/sluice/streamtest"
)

// caughtUp waits until all that is written now has its effects. It fails when the stored
// positions say that the rest will never come.
func (c *chaos) caughtUp() {
	c.t.Helper()
	written, shards := c.f.Written(), c.f.Table.Shards()
	looks := 0
	localtest.Await(c.t, "all effects", func() string {
		c.living()
		if looks++; looks%20 == 0 && c.settled(shards) && c.f.Effects.Missing(written) > 0 {
			c.t.Errorf("%d changes have no effect, and the positions are behind them", c.f.Effects.Missing(written))
			return ""
		}
		if n := c.f.Effects.Missing(written); n > 0 {
			return fmt.Sprintf("%d are missing", n)
		}
		return ""
	})
}

// settled reports whether the stored positions say that all records of shards, as they
// were listed, are settled.
func (c *chaos) settled(shards []streamtest.ShardInfo) bool {
	streams, err := c.state.Streams(c.t.Context(), Application)
	if err != nil {
		c.t.Fatal(err)
	}
	positions := make(map[string]state.Position)
	for _, st := range streams {
		stored, err := c.state.Shards(c.t.Context(), st)
		if err != nil {
			c.t.Fatal(err)
		}
		for _, sh := range stored {
			positions[sh.ID] = sh.Position
		}
	}
	for _, sh := range shards {
		p := positions[sh.ID]
		if sh.Last != "" && !p.Finished && (p.Sequence == "" || sh.Last.Compare(sluice.Sequence(p.Sequence)) > 0) {
			return false
		}
	}
	return true
}

// settle waits for all effects, ends all workers in order, and writes once more for a
// new one.
func (c *chaos) settle() {
	c.t.Helper()
	c.caughtUp()
	c.logf("all is handled")
	var ending sync.WaitGroup
	for _, w := range c.healthy {
		ending.Go(func() {
			if err := w.Stop(); err != nil {
				c.t.Error(err)
			}
		})
	}
	ending.Wait()
	c.healthy = nil
	before := c.f.Effects.Len()
	for n := range items {
		c.f.Write(fmt.Sprintf("item-%d", n))
	}
	w := c.start()
	c.caughtUp()
	if err := w.Stop(); err != nil {
		c.t.Error(err)
	}
	for _, e := range c.f.Effects.All(before) {
		if e.Repeated {
			c.t.Errorf("after an orderly end: version %d of %s is repeated", e.Version, e.Item)
		}
	}
}

// check compares the effects with the writes.
func (c *chaos) check() {
	c.t.Helper()
	for _, wrong := range c.f.Effects.Wrong(c.f.Written()) {
		c.t.Error(wrong)
	}
	letters, err := c.state.ListLetters(c.t.Context(), Application, "", 3)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, l := range letters {
		c.t.Errorf("dead letter %s: %.500s", l.ID, l.Data)
	}
	repeated := 0
	for _, e := range c.f.Effects.All(0) {
		if e.Repeated {
			repeated++
		}
	}
	c.logf("%d changes in %d shards, %d repeated; workers were %v", len(c.f.Table.Changes()), len(c.f.Table.Shards()), repeated, c.did)
}
