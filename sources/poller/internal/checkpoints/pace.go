package checkpoints

import (
	"slices"
	"time"
)

// pace counts the positions that may be stored now.
type pace struct {
	allowed float64
	at      time.Time // when allowed was counted
}

// paced returns as many writes as PerSecond allows now. Those that were tried longest
// ago come first: each of n moving shards has its turn in n/PerSecond seconds. mu is held.
func (c *Checkpointer) paced(moved []write) []write {
	perSecond := float64(c.config.PerSecond)
	if perSecond == 0 {
		return moved
	}
	now := time.Now()
	most := max(1, perSecond*c.config.Every.Seconds())
	c.pace.allowed = min(c.pace.allowed+perSecond*now.Sub(c.pace.at).Seconds(), most)
	c.pace.at = now
	slices.SortFunc(moved, func(a, b write) int { return a.holding.tried.Compare(b.holding.tried) })
	moved = moved[:min(len(moved), int(c.pace.allowed))]
	c.pace.allowed -= float64(len(moved))
	for _, w := range moved {
		w.holding.tried = now
	}
	return moved
}

// interval is the longest time between two writes of a moving shard, while the store
// works. mu is held.
func (c *Checkpointer) interval() time.Duration {
	if c.config.PerSecond == 0 {
		return c.config.Every
	}
	return max(c.config.Every, time.Duration(len(c.held))*time.Second/time.Duration(c.config.PerSecond))
}
