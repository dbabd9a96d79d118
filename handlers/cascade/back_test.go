package cascade

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
)

// comeback is a map that is deleted and put again, again and again, each time with
// points of a new version, while cascades of its former lives go on.
type comeback struct {
	*world
	t       *testing.T
	rnd     *rand.Rand
	version int
	there   bool
	put     time.Time // when the map was put last
	records chan *sluice.Record
	late    time.Duration // after which a new point may not go
}

func (c *comeback) live(points, times int) {
	defer close(c.records)
	for i := range times {
		time.Sleep(time.Duration(c.rnd.IntN(400)) * time.Millisecond)
		c.mu.Lock()
		c.version++
		image := strings.TrimSuffix(mapKey, "}") + fmt.Sprintf(`,"version":{"N":"%d"}}`, c.version)
		c.tables["maps"].put(image)
		c.there, c.put = true, time.Now()
		for n := range points {
			c.tables["points"].put(fmt.Sprintf(`{"map_id":{"S":"m-1"},"point_id":{"S":"p-%d"},"version":{"N":"%d"}}`, n, c.version))
		}
		c.mu.Unlock()
		if i == times-1 && c.rnd.IntN(2) == 0 {
			return
		}
		time.Sleep(time.Duration(c.rnd.IntN(400)) * time.Millisecond)
		c.mu.Lock()
		c.tables["maps"].set(string(parse(mapKey).Raw()), sluice.Item{})
		c.there = false
		c.mu.Unlock()
		c.records <- removed("maps", mapKey, image)
	}
}

// deleted sees each row that goes without a condition, as it is then.
func (c *comeback) deleted(_ string, keys []sluice.Item) []error {
	for _, key := range keys {
		row := c.tables["points"].rows[string(key.Only("map_id", "point_id").Raw())]
		v, _ := row.Lookup("version")
		n, _ := v.Int64()
		if age := time.Since(c.put); c.there && int(n) == c.version && age > c.late {
			c.t.Errorf("a new point went %v after its map was put", age)
		}
	}
	return nil
}

// Maps are deleted and put again while records and messages of earlier deletions run.
// New points stay, except in the moment after the put; with a version all stay. A
// deleted map keeps no point.
func TestComebacks(t *testing.T) {
	for seed := range uint64(25) {
		synctest.Test(t, func(t *testing.T) { comebackSeed(t, seed) })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func comebackSeed(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 11))
	c := &comeback{world: newWorld(), t: t, rnd: rnd, records: make(chan *sluice.Record, 100)}
	c.table("maps", "user_id", "map_id")
	c.table("points", "map_id", "point_id")
	c.took = time.Duration(1+rnd.IntN(30)) * time.Millisecond
	c.waits = time.Duration(rnd.IntN(3)) * 200 * time.Millisecond
	c.inFlight = 1 + rnd.IntN(4)
	c.late = 100*time.Millisecond + 2*c.took
	conf := c.config()
	conf.Threshold, conf.PageSize = rnd.IntN(80), 1+rnd.IntN(60)
	conf.Budget = time.Duration(1+rnd.IntN(1000)) * time.Millisecond
	byVersion := rnd.IntN(2) == 0
	if byVersion {
		conf.Children[0].NotNewer = Limit{Name: "version", From: "version"}
	} else {
		c.onDelete = c.deleted
	}
	x := must(t, conf)
	points := 1 + rnd.IntN(120)
	var work sync.WaitGroup
	over := make(chan struct{})
	work.Go(func() { c.live(points, 1+rnd.IntN(6)) })
	work.Go(func() {
		for {
			if some, err := c.deliver(t.Context(), x.Work); err != nil && !sluice.IsSkip(err) {
				t.Error(err)
			} else if some {
				continue
			}
			select {
			case <-over:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
	work.Go(func() {
		defer close(over)
		for rec := range c.records {
			if err := x.Remove(t.Context(), rec); err != nil && !sluice.IsSkip(err) {
				t.Error(err)
			}
		}
	})
	work.Wait()
	c.drain(t, x.Work)
	left := len(c.tables["points"].rows)
	switch {
	case !c.there && left > 0:
		t.Errorf("%d points are left of a map that is gone", left)
	case c.there && byVersion && left != points:
		t.Errorf("%d of %d points are left of a map that is there", left, points)
	}
}
