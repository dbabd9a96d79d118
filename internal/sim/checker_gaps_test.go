package sim

import (
	"slices"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/state"
)

// What nobody has to handle, and why.

// beforeStart excuses what need not be handled, and may be.
const beforeStart = "from before the start"

// gap notes that records were reported as lost: of a shard those behind a
// position that nobody can read any more, or all of them when the shard is
// gone; of a stream of which nothing was read, all; and between two streams,
// those of other ones that came and went.
func (c *checker) gap(life int, g *sluice.Gap) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.learn()
	n := 0
	var between []string
	if g.Next != "" {
		c.replaced[g.StreamARN] = true
		between = c.older(g.Next)[len(c.older(g.StreamARN))+1:]
	}
	for p, s := range c.shards {
		switch {
		case g.Next == "" && p.arn == g.StreamARN && (p.id == g.ShardID || g.ShardID == ""):
		case slices.Contains(between, p.arn) && !c.listed(p):
		default:
			continue
		}
		if g.Gone && c.listed(p) {
			c.fail(propLost, "shard %s is reported as gone, and is there", p.id)
		}
		s.gone = s.gone || g.Gone
		s.gaps = append(s.gaps, g.After)
		lost := c.trimmed(p)
		for _, ch := range s.changes {
			if (g.After == "" || ch.seq.Compare(g.After) > 0) && (g.Gone || lost(ch.seq)) && ch.excuse == "" {
				ch.excuse = "in a reported gap"
				n++
			}
		}
	}
	c.trace.add(life, "gap of %d changes: %v", n, *g)
}

// began notes the stored start of a stream: what need not be handled.
func (c *checker) began(life int, arn string, start state.Start) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.learn()
	n := 0
	older := c.older(arn)
	for _, old := range older {
		if c.known[old] {
			older = nil // what was written since is in a later stream, all of which is to be handled
		}
	}
	first := len(c.older(arn)) == len(older)
	for p, s := range c.shards {
		if !first || p.arn != arn && !slices.Contains(older, p.arn) {
			continue
		}
		s.excused = p.arn != arn
		lost := c.trimmed(p)
		for _, ch := range s.changes {
			// What expires within an hour may be trimmed before anybody can read it.
			expires := start.Position == "TRIM_HORIZON" && ch.at.Before(start.At.Add(time.Hour-24*time.Hour))
			if start.Position == "LATEST" || s.excused || lost(ch.seq) || expires {
				ch.excuse = beforeStart
				n++
			}
		}
	}
	c.known[arn] = true
	c.trace.add(life, "start stored: %s %v; %d changes lie before it", start.Position, start.At.Format(time.StampMilli), n)
}

// lost reports whether ch is in a gap that was reported before ch was trimmed,
// too: until a record behind it is read, a gap grows.
func (c *checker) lost(ch *change) bool {
	r := c.readings[ch.shard.place]
	if r == nil || !c.trimmed(ch.shard.place)(ch.seq) {
		return false
	}
	read := func(after sluice.Sequence) bool {
		return slices.ContainsFunc(ch.shard.changes, func(b *change) bool {
			return after.Compare(b.seq) < 0 && b.seq.Compare(ch.seq) <= 0 && r.begun[b]
		})
	}
	if !slices.ContainsFunc(ch.shard.gaps, func(after sluice.Sequence) bool { return after.Compare(ch.seq) < 0 && !read(after) }) {
		return false
	}
	ch.excuse = "in a gap that grew"
	return true
}

// buried reports whether a shard that nobody ever saw is no more, and a gap
// says that of an ancestor or a descendant, or that its stream was replaced:
// nobody can name it, and that gap stands for it.
func (c *checker) buried(s *shard) bool {
	if s.begun || c.listed(s.place) {
		return false
	}
	if c.replaced[s.arn] {
		return true
	}
	for _, other := range c.shards {
		if other.gone && (c.descends(other, s) || c.descends(s, other)) {
			return true
		}
	}
	return false
}

func (c *checker) descends(s, from *shard) bool {
	for s.arn == from.arn && s.parent != "" {
		if s = c.shard(place{s.arn, s.parent}); s == from {
			return true
		}
	}
	return false
}
