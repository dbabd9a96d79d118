//go:build integration || long

package poller

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/state"
)

// inUse returns the bytes of heap and stacks.
func inUse() int64 {
	n := heap()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return n + int64(m.StackInuse)
}

// What an idle shard takes: never more than a few pages of the processor's
// memory, and after a crowd no more than before. See docs/poller.md.
func TestMemoryOfIdleShards(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	bubble(t, func(t *testing.T) {
		const shards, most, rest = 100, 64 << 10, 16 << 10
		s := newStub()
		all := crowd(s, "orders", shards, 0, "")
		o := testOptions(state.NewMemory(), "orders")
		o.BusyInterval = 5 * time.Second
		before, goroutines := inUse(), runtime.NumGoroutine()
		r := start(t, s, func(context.Context, *sluice.Record) error { return nil }, o)
		pass(20 * time.Second)
		s.with(func() { s.calls = nil })
		idle := (inUse() - before) / shards
		t.Logf("%d bytes, %d goroutines", idle, (runtime.NumGoroutine()-goroutines)/shards)
		if n := runtime.NumGoroutine() - goroutines; idle > most || n > 2*shards+20 {
			t.Errorf("%d idle shards take %d bytes each, and %d goroutines", shards, idle, n)
		}
		keys := make([]string, maxRecords/2)
		for i := range keys {
			keys[i] = "a"
		}
		for _, sh := range all {
			s.put(sh, keys...)
		}
		pass(20 * time.Second)
		s.with(func() {
			s.calls = nil
			for _, sh := range all {
				sh.records = nil
			}
		})
		if after := (inUse() - before) / shards; after > idle+rest {
			t.Errorf("%d idle shards take %d bytes each after a crowd, %d before", shards, after, idle)
		}
		r.stop()
		<-r.done
	})
}
