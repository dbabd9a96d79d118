package daemon

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/sluicehq/sluice/internal/page"
)

// cascades have deleted rows for a while, and go on. The zero value has
// none; its methods are safe for concurrent use.
type cascades struct {
	mu  sync.Mutex
	all map[string]page.Cascade // by parent
}

func (c *cascades) set(now page.Cascade, over bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if over {
		delete(c.all, now.Parent)
		return
	}
	if c.all == nil {
		c.all = make(map[string]page.Cascade)
	}
	c.all[now.Parent] = now
}

// now lists them, the longest first.
func (c *cascades) now() []page.Cascade {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]page.Cascade{}, slices.SortedFunc(maps.Values(c.all), func(a, b page.Cascade) int {
		return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), strings.Compare(a.Parent, b.Parent))
	})...)
}
