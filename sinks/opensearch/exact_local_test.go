//go:build integration

package opensearch

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/sluicehq/sluice/document"
	"github.com/sluicehq/sluice/internal/localtest"
)

// The changes of documents come in any order, several times and by two writers,
// in rounds, while the index forgets deletions within a second. After each round
// every document is the latest change; those that came with a deletion are
// tombstones, which are swept in the end.
func TestLocalExact(t *testing.T) {
	localtest.OpenSearch(t, func(t *testing.T, url string) {
		c := connected(t, Connection{URLs: []string{url}})
		index := localIndex(t, c, `"mappings":{"properties":{"sluice":{"properties":{"sequence":{"type":"keyword"},"deleted":{"type":"date"}}}}}`)
		if err := c.Call(t.Context(), "PUT", "/"+index+"/_settings", []byte(`{"index":{"gc_deletes":"1s"}}`), nil); err != nil {
			t.Fatal(err)
		}
		exactRounds(t, c, index, 4, func() {})
	})
}

// The same while the node is killed and begins again.
func TestLocalExactOverRestarts(t *testing.T) {
	server := localtest.OwnOpenSearch(t)
	c := connected(t, Connection{URLs: []string{server.URL}})
	index := localIndex(t, c, "")
	exactRounds(t, c, index, 2, func() {
		server.Kill()
		server.Start()
	})
}

func exactRounds(t *testing.T, c *Client, index string, rounds int, between func()) {
	const documents, changes = 25, 10
	gone := map[int]bool{} // by change: it deletes all documents
	var all []document.Op
	refs := make([]document.Ref, documents)
	for round := range rounds {
		for n := round * changes; n < (round+1)*changes; n++ {
			gone[n] = rand.IntN(4) == 0
			for d := range documents {
				op := exact(fmt.Sprint(d), n, gone[n])
				op.Index = index
				refs[d] = op.Ref()
				all = append(all, op)
			}
		}
		late := append([]document.Op(nil), all...) // those of earlier rounds come again
		rand.Shuffle(len(late), func(i, j int) { late[i], late[j] = late[j], late[i] })
		var wg sync.WaitGroup
		for range 2 {
			s, err := New(c, Options{})
			if err != nil {
				t.Fatal(err)
			}
			for w := range 8 {
				wg.Go(func() {
					for i := w; i < len(late); i += 8 {
						if err := s.Write(t.Context(), late[i]); err != nil {
							t.Error(err)
						}
					}
				})
			}
		}
		wg.Wait()
		between()
		docs, err := c.Get(t.Context(), refs)
		if err != nil {
			t.Fatal(err)
		}
		last := exact("", (round+1)*changes-1, false)
		for _, d := range docs {
			mark, err := d.Mark("sluice")
			if err != nil || mark.Sequence != last.Sequence || (mark.Deleted != "") != gone[(round+1)*changes-1] || d.Version < last.Version {
				t.Errorf("round %d: %s has %+v at version %d, want %s at %d or more, %v", round, d.ID, mark, d.Version, last.Sequence, last.Version, err)
			}
		}
	}
}

// A write by revision is refused when the document has changed since it was read,
// or is no more.
func TestLocalUnchanged(t *testing.T) {
	localtest.OpenSearch(t, func(t *testing.T, url string) {
		c := connected(t, Connection{URLs: []string{url}})
		index := localIndex(t, c, "")
		refused := 0
		s, err := New(c, Options{Hooks: Hooks{Conflict: func(*document.Op) { refused++ }}})
		if err != nil {
			t.Fatal(err)
		}
		read := func() document.Doc {
			docs, err := c.Get(t.Context(), []document.Ref{{Index: index, ID: "a"}})
			if err != nil {
				t.Fatal(err)
			}
			return docs[0]
		}
		write := func(op document.Op, at document.Revision) {
			op.Fence, op.Version, op.Revision = document.Unchanged, 0, at
			if err := s.Write(t.Context(), op); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Write(t.Context(), putAt(index, "a", 7, `{"n":1}`)); err != nil {
			t.Fatal(err)
		}
		first := read()
		write(put(index, "a", `{"n":2}`), first.Revision)
		if d := read(); d.Version != 8 || string(d.Source) != `{"n":2}` || refused != 0 {
			t.Errorf("%+v, %d refused", d, refused)
		}
		write(put(index, "a", `{"n":3}`), first.Revision)
		write(del(index, "a"), first.Revision)
		if d := read(); d.Version != 8 || refused != 2 {
			t.Errorf("%+v, %d refused", d, refused)
		}
		write(del(index, "a"), read().Revision)
		write(put(index, "a", `{"n":4}`), first.Revision)
		if d := read(); d.Found || refused != 3 {
			t.Errorf("%+v, %d refused", d, refused)
		}
	})
}
