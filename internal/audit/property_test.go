//go:build integration || long

package audit

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/internal/docrules"
	"github.com/sluicehq/sluice/internal/localtest"
)

// For any drift and any concurrent writes, an audit finds exactly the drift. A repair
// removes all drift, and damages nothing.
func TestFindsExactlyTheDrift(t *testing.T) {
	if localtest.Elsewhere(t) { // TestSharesNothing has the race detector
		return
	}
	kinds := map[Kind]int{}
	for seed := range uint64(100) {
		synctest.Test(t, func(t *testing.T) {
			found := auditUnderWrites(t, seed)
			for _, kind := range found {
				kinds[kind]++
			}
		})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	for kind := Missing; kind <= Unfenced; kind++ {
		if kinds[kind] < 20 {
			t.Errorf("only %d documents were %v: the worlds say little", kinds[kind], kind)
		}
	}
}

// Some of those worlds with the race detector: each option is in one at least.
func TestSharesNothing(t *testing.T) {
	for seed := range uint64(10) {
		synctest.Test(t, func(t *testing.T) { auditUnderWrites(t, seed) })
	}
}

func auditUnderWrites(t *testing.T, seed uint64) map[string]Kind {
	w := newWorld(seed)
	rng := rand.New(rand.NewPCG(seed, 2))
	w.sequence = seed%3 == 2
	w.quiet = seed%5 > 2
	n := 40 + rng.IntN(80)
	for i := range n {
		w.change(fmt.Sprintf("k%03d", i), false, rng.IntN(10) == 0)
	}
	w.pipes.Wait()
	if wrong := w.disagreements(); len(wrong) > 0 {
		t.Fatalf("the world begins with %v", wrong)
	}
	want := drift(w, rng, n)
	if !maps.Equal(w.disagreements(), want) {
		t.Fatalf("the world holds %v, want %v", w.disagreements(), want)
	}

	stop := make(chan struct{})
	var live sync.WaitGroup
	live.Go(func() { writeOn(w, rng, n, stop) })

	a := Audit{
		Scan: w.Scan, Project: w.Project, Read: w.Read, Get: w.Get, List: w.List,
		Settle: 2 * time.Second, Attempts: 30, MaxDeletes: 1000,
	}
	if w.sequence {
		a.Marks = &Marks{Field: "m", LeastVersion: leastVersion, Tombstones: w.Tombstones}
	}
	// Delayed changes arrive during the audit.
	got := find(t, a)
	if !maps.Equal(got, want) {
		t.Errorf("found %v\nwant  %v", got, want)
	}

	a.Write = w.Write
	find(t, a)
	close(stop)
	live.Wait()
	w.pipes.Wait()
	for id, kind := range w.disagreements() {
		if kind != Ahead && !w.stuck[id] { // the writer went on with those
			t.Errorf("%s is %v after the repair", id, kind)
		}
	}
	clear(w.stuck)
	find(t, a)
	for id, kind := range w.disagreements() {
		if kind != Ahead {
			t.Errorf("%s is %v after a repair at rest", id, kind)
		}
	}
	for id, kind := range want { // a repair is in no later change's way
		if kind != Ahead {
			w.change(id, false, false)
		}
	}
	w.pipes.Wait()
	a.Write = nil
	for id, kind := range find(t, a) {
		if kind != Ahead {
			t.Errorf("%s is %v in an audit after the repair", id, kind)
		}
	}
	return want
}

// drift makes documents wrong that writeOn leaves alone, and rows stuck, named
// k9…, that it writes.
func drift(w *world, rng *rand.Rand, n int) map[string]Kind {
	want := map[string]Kind{}
	for i := 0; i < n; i += 3 {
		id := fmt.Sprintf("k%03d", i)
		d, ok := w.visible()[id]
		switch r := w.items[id]; rng.IntN(9) {
		case 0:
			if ok {
				delete(w.docs, id)
				want[id] = Missing
			}
		case 1:
			if ok && !w.sequence {
				w.docs[id] = doc{d.version - 1, w.body(id, row{rev: r.rev - 1, text: "old"}), 0}
				want[id] = Stale
			}
		case 2:
			if ok {
				w.docs[id] = doc{d.version, w.marked(d, w.body(id, row{rev: r.rev, text: "other"})), w.writes}
				want[id] = Different
			}
		case 3:
			if ok && !w.sequence {
				w.docs[id] = doc{d.version + 5, d.body, 0}
				want[id] = Ahead
			}
		case 4:
			if !ok { // hidden
				w.docs[id] = doc{r.rev, w.marked(d, "{}"), w.writes}
				delete(w.buried, id)
				want[id] = Ghost
			}
		case 6:
			if d, there := w.docs[id]; there && w.sequence { // as a copy by another program has it; also a tombstone
				w.docs[id] = doc{1, d.body, w.writes}
				want[id] = Unfenced
			}
		case 5:
			delete(w.items, id)
			if ok {
				want[id] = Ghost
			}
		}
	}
	for i := range rng.IntN(3) {
		id := fmt.Sprintf("k9%02d", i)
		w.change(id, false, false)
		w.pipes.Wait()
		if !w.sequence && !w.quiet { // nothing tells a document that lags, or has come round to the same text, from one that is stuck
			w.stuck[id] = true
			w.change(id, false, false)
			want[id] = Stale
		}
	}
	return want
}

// marked is a body with the mark of a document, where there are marks.
func (w *world) marked(d doc, body string) string {
	if !w.sequence {
		return body
	}
	mark := document.Mark{Sequence: beforeAll}
	if d.body != "" {
		mark = d.mark()
	}
	return string(docrules.WithMark([]byte(body), "m", mark))
}

// writeOn writes, deletes and writes again until stop.
func writeOn(w *world, rng *rand.Rand, n int, stop chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(time.Duration(rng.IntN(60)) * time.Millisecond):
		}
		if rng.IntN(4) == 0 {
			w.change(fmt.Sprintf("k9%02d", rng.IntN(3)), false, false)
			continue
		}
		i := rng.IntN(n + 30)
		if i%3 == 0 {
			continue
		}
		w.change(fmt.Sprintf("k%03d", i), rng.IntN(4) == 0, rng.IntN(10) == 0)
	}
}

// find runs an audit, and returns its findings.
func find(t *testing.T, a Audit) map[string]Kind {
	t.Helper()
	found := map[string]Kind{}
	a.Found = func(d Drift) {
		if _, twice := found[d.Ref.ID]; twice {
			t.Errorf("told twice: %v", d)
		}
		found[d.Ref.ID] = d.Kind
		if a.Write != nil && d.Kind != Ahead && !d.Repaired {
			t.Errorf("%v", d)
		}
	}
	r, err := a.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r.Busy+r.Unchecked+r.Failed > 0 {
		t.Errorf("left open: %+v", r)
	}
	if int(r.Drift()) != len(found) {
		t.Errorf("%+v, and %d told", r, len(found))
	}
	return found
}
