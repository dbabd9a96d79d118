//go:build integration || long

package cascade

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
)

// vast is a partition of many points, each stored as a bit. So the test measures the
// memory of the cascade, not of the points.
type vast struct {
	*world
	mu    sync.Mutex
	gone  []bool
	left  int
	peak  uint64
	reads int
}

func (v *vast) query(ctx context.Context, q dynamo.Query) (dynamo.Page, error) {
	n, err := v.begin(ctx)
	defer v.world.mu.Unlock()
	if err != nil {
		return dynamo.Page{}, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.reads++; v.reads%100 == 0 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		v.peak = max(v.peak, m.HeapAlloc)
	}
	i := 0
	if id, ok := q.After.Lookup("point_id"); ok {
		i, _ = strconv.Atoi(id.Str()[2:])
		i++
	}
	var page dynamo.Page
	for ; i < len(v.gone) && len(page.Items) < q.Limit; i++ {
		if !v.gone[i] {
			page.Items = append(page.Items, parse(fmt.Sprintf(`{"map_id":{"S":"m-1"},"point_id":{"S":"p-%07d"}}`, i)))
		}
	}
	if i < len(v.gone) {
		page.Next = page.Items[len(page.Items)-1]
	}
	return page, v.end(n)
}

func (v *vast) delete(ctx context.Context, d dynamo.GuardedDelete) {
	v.deleteBy(ctx, d, v.deleteAll)
}

func (v *vast) deleteAll(ctx context.Context, keys []sluice.Item) []error {
	n, err := v.begin(ctx)
	defer v.world.mu.Unlock()
	errs := make([]error, len(keys))
	v.mu.Lock()
	defer v.mu.Unlock()
	for i, key := range keys {
		// A process that dies has written a part of its request.
		if errs[i] = err; err != nil || n == v.killAt && i%2 > 0 {
			continue
		}
		id, _ := key.Lookup("point_id")
		k, _ := strconv.Atoi(id.Str()[2:])
		if !v.gone[k] {
			v.gone[k] = true
			v.left--
		}
	}
	if err := v.end(n); err != nil {
		for i := range errs {
			errs[i] = err
		}
	}
	return errs
}

// A million children, by processes that die again and again, with no more
// memory than a few pages of keys take.
func TestAMillionChildren(t *testing.T) {
	const bound = 2 << 20 // live heap above what there was before; 5,000 keys of 60 B, with what they are kept in
	synctest.Test(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 2))
		v := &vast{world: points(0), gone: make([]bool, vastRows), left: vastRows}
		v.took = 5 * time.Millisecond
		c := v.config()
		c.Query, c.Delete = v.query, v.delete
		c.Threshold = DefaultThreshold
		var before runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		begun := time.Now()
		deaths := v.restart(t, must(t, c), mapRemoved(), func() (int, bool) {
			return 1 + r.IntN(vastRows/requestRows/15), r.IntN(2) == 0
		})
		if v.left != 0 {
			t.Errorf("%d children are left", v.left)
		}
		if grown := int64(v.peak) - int64(before.HeapAlloc); grown > bound || v.peak == 0 {
			t.Errorf("the heap grew by %d bytes; want %d at most", grown, bound)
		} else {
			t.Logf("%d rows in %v of the service's time, %d deaths, heap +%d kB at most", vastRows, time.Since(begun), deaths, grown>>10)
		}
		if deaths < 10 {
			t.Errorf("only %d deaths", deaths)
		}
	})
}
