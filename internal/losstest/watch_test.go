//go:build integration

package losstest

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/sluicehq/sluice/effect/document"
)

// watch checks all the time that no document is older than its last acknowledged write,
// or than its last read since the server's start. A killed server may lose
// unacknowledged writes.
type watch struct {
	mu      sync.Mutex
	written [items]int // the highest version that was acknowledged
	writes  int        // that were acknowledged
	life    int        // of the server
	seen    [items]sight
	looks   int
}

type sight struct{ life, version int }

// acknowledged notes that a write is durable.
func (w *watch) acknowledged(op document.Op) error {
	i, err := number(op.ID)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.written[i] = max(w.written[i], int(op.Version))
	w.writes++
	return nil
}

// count returns how many writes were acknowledged, and of how many items the
// last version was not yet.
func (w *watch) count() (writes, left int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, v := range w.written {
		if v < versions {
			left++
		}
	}
	return w.writes, left
}

// died notes that the server was killed.
func (w *watch) died() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.life++
}

// run looks until ctx ends. A server that is down cannot be looked at.
func (w *watch) run(ctx context.Context, t *testing.T, x *index) {
	r := rand.New(rand.NewPCG(1, 2))
	for tick := time.NewTicker(100 * time.Millisecond); ctx.Err() == nil; {
		var numbers [300]int
		first := r.IntN(items)
		for n := range numbers { // half of them next to each other, where changes are made at a time
			numbers[n] = (first + n) % items
			if n%2 == 0 {
				numbers[n] = r.IntN(items)
			}
		}
		w.mu.Lock()
		life, written, seen := w.life, w.written, w.seen
		w.mu.Unlock()
		if found, err := x.documents(ctx, numbers[:]); err == nil {
			w.judge(t, life, written, seen, numbers[:], found)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// judge compares the read documents with the state known before the read.
func (w *watch) judge(t *testing.T, life int, written [items]int, seen [items]sight, numbers []int, found []document.Doc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looks++
	for n, h := range found {
		i, before := numbers[n], seen[numbers[n]]
		switch {
		case h.ID != name(i):
			t.Errorf("asked for %s, got %s", name(i), h.ID)
		case !h.Found:
			if !absent(i, written[i]) {
				t.Errorf("document %s is not there, and version %d was written", h.ID, written[i])
			}
		case int(h.Version) < written[i]:
			t.Errorf("document %s is at version %d, and %d was written", h.ID, h.Version, written[i])
		case before.life == life && int(h.Version) < before.version:
			t.Errorf("document %s went back from version %d to %d", h.ID, before.version, h.Version)
		default:
			if s := &w.seen[i]; w.life == life && (s.life != life || s.version < int(h.Version)) {
				*s = sight{life, int(h.Version)}
			}
		}
	}
}
