//go:build integration

package opensearch

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/handlers/projection"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/internal/tally"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/streamtest"
)

// The changes of documents come in any order, several times and by two writers, in
// rounds. After each round every document shows the latest change, and deleted
// documents are tombstones. Between rounds tombstones are swept, and the index forgets
// swept tombstones within a second.
func TestLocalExact(t *testing.T) {
	localtest.OpenSearch(t, func(t *testing.T, url string) {
		c := connected(t, Connection{URLs: []string{url}})
		index := localIndex(t, c, `"mappings":{"properties":{"sluice":{"properties":{"sequence":{"type":"keyword"},"deleted":{"type":"date"}}}}}`)
		if err := c.Call(t.Context(), "PUT", "/"+index+"/_settings", []byte(`{"index":{"gc_deletes":"1s"}}`), nil); err != nil {
			t.Fatal(err)
		}
		s, err := New(c, Options{})
		if err != nil {
			t.Fatal(err)
		}
		swept := 0
		exactRounds(t, c, index, 4, func() {}, func(docs []document.Doc) {
			for _, d := range docs {
				if mark, _ := d.Mark("sluice"); mark.Deleted == "" {
					continue
				}
				op := del(index, d.ID)
				op.Fence, op.Revision = document.Unchanged, d.Revision
				if err := s.Write(t.Context(), op); err != nil {
					t.Error(err)
				}
				swept++
			}
		})
		if swept == 0 {
			t.Error("no tombstone was swept")
		}
	})
}

// The same after the node was killed and began again. TestProofExactOverRestarts takes
// each version.
func TestLocalExactOverRestarts(t *testing.T) { exactOverRestarts(t, localtest.OwnOpenSearch(t)) }

// exactOverRestarts has the index forget deletions within a second.
func exactOverRestarts(t *testing.T, server *localtest.Server) {
	c := connected(t, Connection{URLs: []string{server.URL}})
	index := localIndex(t, c, "")
	if err := c.Call(t.Context(), "PUT", "/"+index+"/_settings", []byte(`{"index":{"gc_deletes":"1s"}}`), nil); err != nil {
		t.Fatal(err)
	}
	restart := sync.OnceFunc(func() {
		server.Kill()
		server.Start()
	})
	exactRounds(t, c, index, 2, restart, func([]document.Doc) {})
}

// atChange is the write of change n of a document, as a projection makes it. Its
// sequence number is like those of AWS: about four numbers in a row have the same
// version.
func atChange(t *testing.T, index, id string, n int, gone bool) document.Op {
	p, err := projection.New(nil, projection.Options{Index: index, ID: "{id}", Version: projection.BySequence()})
	if err != nil {
		t.Fatal(err)
	}
	it := item.Of(item.String("id", id), item.Number("n", fmt.Sprint(n)))
	rec := sluice.Record{
		EventName: sluice.Insert, Table: "t", StreamARN: "arn:aws:dynamodb:eu-west-1:111122223333:table/t/stream/2025-07-04T12:33:21.123",
		Sequence: sluice.Sequence(fmt.Sprintf("%d002395190001559217", 8935985800+250*n)), Keys: it.Only("id"), New: it,
	}
	if gone {
		rec.EventName, rec.Old, rec.New = sluice.Remove, it, sluice.Item{}
	}
	ops, err := p.Project(&rec)
	if err != nil {
		t.Fatal(err)
	}
	return ops[0]
}

// exactRounds calls before ahead of each round's check, and then after with the
// documents.
func exactRounds(t *testing.T, c *Client, index string, rounds int, before func(), after func([]document.Doc)) {
	const documents, changes = 25, 10
	gone := map[int]bool{} // by change: it deletes all documents
	var all []document.Op
	refs := make([]document.Ref, documents)
	for round := range rounds {
		last := (round+1)*changes - 1
		for n := round * changes; n <= last; n++ {
			gone[n] = rand.IntN(4) == 0 || round == 0 && n == last
			for d := range documents {
				op := atChange(t, index, fmt.Sprint(d), n, gone[n])
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
						// An older change has to wait where the index remembers the sweep
						// of a later tombstone.
						localtest.Await(t, "a change", func() string {
							if err := s.Write(t.Context(), late[i]); err != nil {
								return err.Error()
							}
							return ""
						})
					}
				})
			}
		}
		wg.Wait()
		before()
		docs, err := c.Get(t.Context(), refs)
		if err != nil {
			t.Fatal(err)
		}
		want := atChange(t, index, "any", last, gone[last])
		for _, d := range docs {
			mark, err := d.Mark("sluice")
			if err != nil || mark.Sequence != want.Sequence || (mark.Deleted != "") != gone[last] || d.Version < want.Version {
				t.Errorf("round %d: %s has %+v at version %d, want %s at %d or more, %v", round, d.ID, mark, d.Version, want.Sequence, want.Version, err)
			}
		}
		after(docs)
	}
}

// A write by revision is refused when the document has changed since it was read,
// or is no more.
func TestLocalUnchanged(t *testing.T) {
	localtest.OpenSearch(t, func(t *testing.T, url string) {
		c := connected(t, Connection{URLs: []string{url}})
		index := localIndex(t, c, "")
		var counts tally.Tally
		s, err := New(c, Options{Metrics: &counts})
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
		if d, refused := read(), counts.Sum("sluice_document_conflicts_total"); d.Version != 8 || string(d.Source) != `{"n":2}` || refused != 0 {
			t.Errorf("%+v, %d refused", d, refused)
		}
		write(put(index, "a", `{"n":3}`), first.Revision)
		write(del(index, "a"), first.Revision)
		if d, refused := read(), counts.Sum("sluice_document_conflicts_total"); d.Version != 8 || refused != 2 {
			t.Errorf("%+v, %d refused", d, refused)
		}
		write(del(index, "a"), read().Revision)
		write(put(index, "a", `{"n":4}`), first.Revision)
		if d, refused := read(), counts.Sum("sluice_document_conflicts_total"); d.Found || refused != 3 {
			t.Errorf("%+v, %d refused", d, refused)
		}
	})
}

// streamtest.Index accepts and refuses the same changes as a sink, with the same
// reasons.
func TestLocalExactIsLikeTheIndexOfTests(t *testing.T) {
	localtest.OpenSearch(t, func(t *testing.T, url string) {
		c := connected(t, Connection{URLs: []string{url}})
		index := localIndex(t, c, "")
		x, r := streamtest.NewIndex(), rand.New(rand.NewPCG(3, 9))
		refused := 0
		for i := range 300 {
			op := atChange(t, index, []string{"a", "b", "c"}[r.IntN(3)], i/10+r.IntN(8), r.IntN(4) == 0)
			refusal := func(write func(context.Context, document.Op) error) (got []document.Refusal) {
				op.Refused = func(r document.Refusal) {
					r.Version, r.Doc.Version, r.Doc.Revision = 0, 0, document.Revision{} // how often it was written
					got = append(got, r)
				}
				if err := write(t.Context(), op); err != nil {
					t.Fatal(err)
				}
				return got
			}
			s, err := New(c, Options{}) // it remembers no write
			if err != nil {
				t.Fatal(err)
			}
			want := refusal(s.Write)
			if diff := cmp.Diff(want, refusal(x.Write)); diff != "" {
				t.Fatalf("write %d, %+v: the sink (-) and the Index (+) say\n%s", i, op, diff)
			}
			docs, err := c.Get(t.Context(), []document.Ref{op.Ref()})
			if err != nil || !bytes.Equal(docs[0].Source, x.Get(op.Ref()).Source) || docs[0].Version != x.Get(op.Ref()).Version {
				t.Fatalf("write %d: %+v, %v; the Index has %+v", i, docs, err, x.Get(op.Ref()))
			}
			refused += len(want)
		}
		if refused < 50 || refused > 250 {
			t.Errorf("%d of 300 writes were refused", refused)
		}
	})
}
