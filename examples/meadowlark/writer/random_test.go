package writer

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/examples/internal/kit"
)

// Writers work at the same time, lose answers and die. Still, counts equal the
// references, and references have both ends. If everybody uses the writer, no reference
// has a missing target.
func TestRandom(t *testing.T) {
	for seed := range uint64(16) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			past := seed%2 == 1 // documents are deleted past the writer, too
			w := newWorld(t)
			faults := rand.New(rand.NewPCG(seed, 1))
			lost := errors.New("no answer")
			w.Fault = func(after bool, _ []dynamo.Op) error { // called under the table's lock
				if faults.IntN(20) == 0 {
					return lost
				}
				return nil
			}
			var running sync.WaitGroup
			for n := range uint64(4) {
				running.Go(func() {
					r := rand.New(rand.NewPCG(seed, 2+n))
					for range 100 {
						if err := w.act(t, r, past); err != nil && !errors.Is(err, lost) && !expected(err) {
							t.Errorf("seed %d: %v", seed, err)
						}
					}
				})
			}
			running.Wait()
			w.Fault = nil
			if past {
				for name := range documents {
					d := doc(name)
					if _, err := w.Clean(t.Context(), d.Type, d.ID()); err != nil {
						t.Fatal(err)
					}
				}
			}
			w.consistent(t, past)
		})
	}
}

// documents are the possible documents, with their possible references.
var documents = map[string][]string{
	"S1": {"G1"}, "A1": {"G1", "S2"}, "S2": {"O1"},
	"C1": {"O1", "S1", "A1", "S2", "O2", "G1"}, "C2": {"C1", "O1", "O2"},
	"X1": {"C1", "C2", "O1", "S2"}, "G1": nil,
}

func (w *world) act(t *testing.T, r *rand.Rand, past bool) error {
	name := []string{"S1", "A1", "S2", "C1", "C2", "X1", "G1"}[r.IntN(7)]
	var refs []string
	for _, ref := range documents[name] {
		if r.IntN(3) == 0 {
			refs = append(refs, ref)
		}
	}
	d := doc(name, refs...)
	switch n := r.IntN(8); {
	case n < 3:
		return w.Writer.Create(t.Context(), d)
	case n < 5:
		return w.Update(t.Context(), d)
	case n < 7 || !past:
		return w.Writer.Delete(t.Context(), d.Type, d.ID())
	}
	if err := w.Write(t.Context(), dynamo.Delete(DefaultTable, EntityKey(d.Type, d.ID()))); err != nil {
		return err
	}
	if r.IntN(2) == 0 {
		return nil // nobody has cleaned up yet
	}
	_, err := w.Clean(t.Context(), d.Type, d.ID())
	return err
}

func expected(err error) bool {
	for _, e := range []error{ErrReference, ErrReferenced, ErrExists, ErrNotFound, ErrBusy} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// consistent looks at the table from outside.
func (w *world) consistent(t *testing.T, past bool) {
	t.Helper()
	there, counts, ends := map[string]bool{}, map[string]int{}, map[string]int{}
	for _, it := range w.Items(DefaultTable) {
		pk, sk := kit.Text(it, "pk"), kit.Text(it, "sk")
		switch Kind(it) {
		case Entity:
			there[sk] = true
		case Guard, Assign:
			v, _ := it.Lookup("refCount")
			n, _ := v.Int64()
			counts[pk+" "+sk] += int(n)
		case FRef:
			ends[pk+" "+sk]++
			counts[kit.Text(it, "to.pk")+" "+kit.Text(it, "to.sk")]--
		case TRef:
			ends[sk+" "+pk]++
		}
	}
	for count, n := range counts {
		if n != 0 {
			t.Errorf("%s is %d off: %s", count, n, w.state())
		}
	}
	for pair, n := range ends {
		from, to, _ := strings.Cut(pair, " ")
		if n != 2 {
			t.Errorf("%s has one end: %s", pair, w.state())
		}
		if !there[strings.TrimPrefix(from, "FREF#")] {
			t.Errorf("%s comes from nowhere: %s", pair, w.state())
		}
		if !there[strings.TrimPrefix(to, "TREF#")] && !past {
			t.Errorf("%s points nowhere: %s", pair, w.state())
		}
	}
}
