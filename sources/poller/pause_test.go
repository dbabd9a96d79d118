package poller_test

import (
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/streamtest"
)

// While its route is paused, a poller is ready, and stops at once. Its records come
// again, also those of a shard that was read to its end, before those of its child.
func TestAPausedRoute(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	inWorld(t, streamtest.TableOptions{}, func(w *world) {
		w.o.Grace = 10 * time.Minute
		w.o.IdleInterval = 30 * time.Second
		for _, roll := range []bool{false, true} {
			before := w.handled()
			w.put("a", "b")
			if roll {
				w.table.Roll(w.shard(0))
				w.put("a")
			}
			w.paused = true
			d := w.start()
			w.pass(3 * time.Hour)
			d.unready("")
			if got := w.handled(); got != before {
				w.Errorf("handled in the pause: %q, before %q", got, before)
			}
			began := time.Now()
			d.end()
			if took := time.Since(began); took > time.Minute {
				w.Errorf("the end took %v", took)
			}
			w.paused = false
			d = w.start()
			w.pass(time.Minute)
			d.end()
			w.complete(0)
		}
	})
}
