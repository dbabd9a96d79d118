package item_test

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"testing"

	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/item"
)

// A Walker gives what All gives, whatever it is asked for on the way.
func TestWalk(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 3))
		it, err := item.Parse([]byte(recordtest.Random(r, 3).Variant(r)))
		if err != nil {
			t.Fatal(err)
		}
		fields, stop := iter.Pull2(it.Fields())
		w := it.Walk()
		for name, v := range it.All() {
			if !w.Next() || string(w.Name().Text()) != name || w.Kind() != v.Kind() {
				t.Fatalf("%q (%v), want %q in %s", w.Name(), w.Kind(), name, it.Raw())
			}
			if n, f, ok := fields(); !ok || string(n) != string(w.Name()) || string(f.Raw()) != string(v.Raw()) {
				t.Fatalf("field %s: %s, want %s: %s", n, f.Raw(), w.Name(), v.Raw())
			}
			switch r.IntN(3) {
			case 0:
				if got := w.Value(); string(got.Raw()) != string(v.Raw()) || got.Kind() != v.Kind() {
					t.Fatalf("%s: %s, want %s", name, got.Raw(), v.Raw())
				}
			case 1:
				if got, want := w.AppendJSON(nil, item.JSON{SortedKeys: true}), v.AppendJSON(nil, item.JSON{SortedKeys: true}); string(got) != string(want) {
					t.Fatalf("%s: %s, want %s", name, got, want)
				}
			}
		}
		stop()
		for range 2 {
			if w.Next() {
				t.Fatalf("more attributes than there are in %s", it.Raw())
			}
		}
	}
	if w := (item.Item{}).Walk(); w.Next() {
		t.Error("an absent item has an attribute")
	}
}

func ExampleWalker() {
	it := item.Of(item.String("pk", "a"), item.String("secret", "x"), item.Number("n", "1.50"))
	for w := it.Walk(); w.Next(); {
		if string(w.Name().Text()) != "secret" {
			fmt.Printf("%s: %s\n", w.Name(), w.AppendJSON(nil, item.JSON{}))
		}
	}
	// Output:
	// "pk": "a"
	// "n": 1.50
}
