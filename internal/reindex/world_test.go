package reindex

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/streamtest"
)

// world is a table, a cluster, and writers that bring the changes of one to the
// other. It takes the time of the test's bubble.
type world struct {
	t    *testing.T
	docs *streamtest.Index

	mu      sync.Mutex
	rng     *rand.Rand
	meta    map[string]map[string]json.RawMessage // of each index
	aliases map[string]string
	items   map[string]int64 // revisions
	revs    map[string]int64 // of each id ever
	last    map[string]chan struct{}
	writers []func(context.Context, document.Op) error
	pending sync.WaitGroup
	quiet   bool // every second change leaves the document as it is, and is not written

	calls, killAt int // calls of the cluster by the reindex; 0 kills never
	late          bool
}

var errKilled = errors.New("killed")

const body = `{"settings":{"number_of_replicas":0},"mappings":{"_meta":{"owner":"us"},"dynamic":false}}`

func newWorld(t *testing.T, seed uint64, writers int) *world {
	w := &world{
		t: t, docs: streamtest.NewIndex(), rng: rand.New(rand.NewPCG(seed, 1)),
		meta:    map[string]map[string]json.RawMessage{"products-000001": nil},
		aliases: map[string]string{"products": "products-000001"},
		items:   map[string]int64{}, revs: map[string]int64{}, last: map[string]chan struct{}{},
	}
	for range writers {
		write := Writer{Write: w.write, Behind: w.behind}.New()
		w.writers = append(w.writers, write)
	}
	return w
}

// pause takes up to most.
func (w *world) pause(most time.Duration) {
	w.mu.Lock()
	d := time.Duration(w.rng.Int64N(int64(most)))
	w.mu.Unlock()
	time.Sleep(d)
}

// behind answers after a while, with the state at some moment in between.
func (w *world) behind(_ context.Context, aliases ...string) (map[string][]string, error) {
	w.pause(200 * time.Millisecond)
	w.mu.Lock()
	found := map[string][]string{}
	for _, a := range aliases {
		if index, ok := w.aliases[a]; ok {
			found[a] = []string{index}
		}
	}
	w.mu.Unlock()
	w.pause(200 * time.Millisecond)
	return found, nil
}

// write writes to an index that is there.
func (w *world) write(ctx context.Context, op document.Op) error {
	w.pause(300 * time.Millisecond)
	w.mu.Lock()
	_, ok := w.meta[op.Index]
	w.mu.Unlock()
	if !ok {
		w.t.Errorf("%v of %s in %s, which is not there: the cluster would make it", op.Action, op.ID, op.Index)
		return nil
	}
	return w.docs.Write(ctx, op)
}

// change writes or deletes an item; any writer has the record, after those of
// the item before it.
func (w *world) change(id string, deleted bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.revs[id]++
	rev := w.revs[id]
	op := document.Op{Action: document.Put, Index: "products", ID: id, Fence: document.Newer, Version: rev, Body: fmt.Appendf(nil, `{"id":%q,"rev":%d}`, id, w.shown(rev))}
	if was, ok := w.items[id]; ok && !deleted && w.shown(was) == w.shown(rev) {
		w.items[id] = rev
		return
	}
	if deleted {
		delete(w.items, id)
		op.Action, op.Body = document.Delete, nil
	} else {
		w.items[id] = rev
	}
	before, ended := w.last[id], make(chan struct{})
	w.last[id] = ended
	write := w.writers[w.rng.IntN(len(w.writers))]
	w.pending.Go(func() {
		defer close(ended)
		if before != nil {
			<-before
		}
		w.pause(500 * time.Millisecond)
		if err := write(context.Background(), op); err != nil {
			w.t.Errorf("writing %v: %v", op, err)
		}
	})
}

// shown returns the version that a document has for its item's revision.
func (w *world) shown(rev int64) int64 {
	if w.quiet {
		return rev / 2
	}
	return rev
}

// live changes items until stop is called, which returns when all records are
// handled.
func (w *world) live(ids int) (stop func()) {
	ended := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-ended:
				return
			default:
			}
			w.pause(100 * time.Millisecond)
			w.mu.Lock()
			id, deleted := fmt.Sprint("p", w.rng.IntN(ids)), w.rng.IntN(3) == 0
			_, there := w.items[id]
			w.mu.Unlock()
			if there || !deleted {
				w.change(id, deleted)
			}
		}
	})
	return func() {
		close(ended)
		wg.Wait()
		w.pending.Wait()
	}
}

// check compares an index with the table; the world is at rest.
func (w *world) check(index string) {
	w.t.Helper()
	got := map[string]int64{}
	for _, d := range w.docs.Docs(index) {
		got[d.ID] = w.shown(d.Version)
		if want := fmt.Sprintf(`{"id":%q,"rev":%d}`, d.ID, w.shown(d.Version)); string(d.Source) != want {
			w.t.Errorf("%s of %s is %s, want %s", d.ID, index, d.Source, want)
		}
	}
	want := map[string]int64{}
	for id, rev := range w.items {
		want[id] = w.shown(rev)
	}
	if !maps.Equal(got, want) {
		w.t.Errorf("%s holds\n%v, want\n%v", index, got, want)
	}
}

func (w *world) reindex() Reindex {
	return Reindex{
		Alias: "products", Cluster: (*cluster)(w), Get: w.get, Body: []byte(body),
		Scan: w.scan, Project: w.project, Write: w.write, Concurrency: 8,
	}
}

func (w *world) get(_ context.Context, refs []document.Ref) ([]document.Doc, error) {
	var docs []document.Doc
	for _, ref := range refs {
		docs = append(docs, w.docs.Get(ref))
	}
	return docs, nil
}

// scan reads each item when its turn comes.
func (w *world) scan(context.Context) iter.Seq2[*sluice.Record, error] {
	return func(yield func(*sluice.Record, error) bool) {
		last := ""
		for {
			w.pause(100 * time.Millisecond)
			w.mu.Lock()
			next := ""
			for id := range w.items {
				if id > last && (next == "" || id < next) {
					next = id
				}
			}
			rev := w.items[next]
			w.mu.Unlock()
			if next == "" {
				return
			}
			last = next
			it, err := item.Parse(fmt.Appendf(nil, `{"id":{"S":%q},"rev":{"N":"%d"}}`, next, rev))
			if err != nil {
				panic(err)
			}
			if !yield(&sluice.Record{EventName: sluice.Snapshot, Keys: it.Only("id"), New: it}, nil) {
				return
			}
		}
	}
}

func (w *world) project(rec *sluice.Record) ([]document.Op, error) {
	id, _ := rec.New.Lookup("id")
	v, _ := rec.New.Lookup("rev")
	rev, _ := v.Int64()
	return []document.Op{
		{Action: document.Put, Index: "products", ID: id.Str(), Fence: document.Newer, Version: rev, Body: fmt.Appendf(nil, `{"id":%q,"rev":%d}`, id.Str(), w.shown(rev))},
		{Action: document.Put, Index: "elsewhere", ID: id.Str(), Fence: document.Newer, Version: rev, Body: []byte(`{}`)},
	}, nil
}

// cluster is the world as a reindex sees it. The process may be killed at any
// call, before or after it is done.
type cluster world

// kill runs do, unless the process is dead.
func (c *cluster) kill(do func() error) error {
	(*world)(c).pause(50 * time.Millisecond)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls++
	switch {
	case c.killAt == 0 || c.calls < c.killAt:
		return do()
	case c.calls == c.killAt && c.late:
		do() // its answer is lost
	}
	return errKilled
}

func (c *cluster) Behind(_ context.Context, aliases ...string) (found map[string][]string, err error) {
	err = c.kill(func() error {
		found = map[string][]string{}
		for _, a := range aliases {
			if index, ok := c.aliases[a]; ok {
				found[a] = []string{index}
			}
		}
		return nil
	})
	return found, err
}

func (c *cluster) Create(_ context.Context, index string, body []byte) (created bool, err error) {
	err = c.kill(func() error {
		if _, ok := c.meta[index]; ok {
			return nil
		}
		var in struct {
			Aliases  map[string]struct{}
			Mappings struct {
				Meta map[string]json.RawMessage `json:"_meta"`
			}
		}
		if err := json.Unmarshal(body, &in); err != nil {
			return err
		}
		c.meta[index] = in.Mappings.Meta
		for a := range in.Aliases {
			c.aliases[a] = index
		}
		created = true
		return nil
	})
	return created, err
}

func (c *cluster) Point(_ context.Context, from, to map[string]string) error {
	return c.kill(func() error {
		for a, index := range from {
			if c.aliases[a] != index {
				return fmt.Errorf("%s leads to %s", a, c.aliases[a])
			}
		}
		for a := range from {
			delete(c.aliases, a)
		}
		maps.Copy(c.aliases, to)
		return nil
	})
}

func (c *cluster) Meta(_ context.Context, index string) (meta map[string]json.RawMessage, found bool, err error) {
	err = c.kill(func() error {
		meta, found = c.meta[index]
		meta = maps.Clone(meta)
		return nil
	})
	return meta, found, err
}

func (c *cluster) SetMeta(_ context.Context, index string, meta map[string]json.RawMessage) error {
	return c.kill(func() error {
		c.meta[index] = meta
		return nil
	})
}

func (c *cluster) Count(_ context.Context, index, _ string) (n int64, err error) {
	err = c.kill(func() error {
		n = int64(len(c.docs.Docs(index)))
		return nil
	})
	return n, err
}

func (c *cluster) Sample(_ context.Context, index string, n int, last bool) (docs []document.Doc, err error) {
	err = c.kill(func() error {
		docs = c.docs.Docs(index)
		if last {
			slices.SortFunc(docs, func(a, b document.Doc) int { return cmp.Compare(b.Version, a.Version) })
		} else {
			c.rng.Shuffle(len(docs), func(i, j int) { docs[i], docs[j] = docs[j], docs[i] })
		}
		docs = docs[:min(n, len(docs))]
		return nil
	})
	return docs, err
}

func (c *cluster) Delete(_ context.Context, index string) error {
	return c.kill(func() error {
		delete(c.meta, index)
		return nil
	})
}

func started(t *testing.T, seed uint64) *world {
	w := newWorld(t, seed, 4)
	for i := range 30 {
		w.change(fmt.Sprint("p", i), false)
	}
	w.pending.Wait()
	return w
}

// swapped swaps as soon as the two indices are seen to be equal, which chance may
// put off while many changes are on their way.
func swapped(r Reindex) (err error) {
	for range 50 {
		err = r.Swap(context.Background(), false)
		if differ := (*NotEqualError)(nil); !errors.As(err, &differ) {
			return err
		}
	}
	return err
}
