package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/internal/docrules"
	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/item"
)

// world is a table, an index, and a late copier of changes between them. It uses the
// time of the test's bubble.
type world struct {
	mu       sync.Mutex
	rng      *rand.Rand
	items    map[string]row
	revs     map[string]int64 // of each key ever: a row made anew goes on from there
	docs     map[string]doc
	buried   map[string]int64 // versions of deletions
	stuck    map[string]bool  // changes of these never arrive
	sequence bool             // versions are those of changes, and SNAPSHOTs have none
	quiet    bool             // documents lack the revision: a change of it alone is not written
	changes  int64
	writes   int64
	pipes    sync.WaitGroup
}

type row struct {
	rev    int64
	text   string
	hidden bool // is not to be in the index
}

type doc struct {
	version int64
	body    string
	seqNo   int64
}

func (d doc) found(ref document.Ref) document.Doc {
	return document.Doc{Ref: ref, Found: true, Version: d.version, Source: []byte(d.body), Revision: document.Revision{SeqNo: d.seqNo, PrimaryTerm: 1}}
}

// mark is that of a document, which is as it should be.
func (d doc) mark() document.Mark {
	m, err := d.found(document.Ref{}).Mark("m")
	if err != nil {
		panic(err)
	}
	return m
}

func newWorld(seed uint64) *world {
	return &world{
		rng: rand.New(rand.NewPCG(seed, 1)), items: map[string]row{}, revs: map[string]int64{},
		docs: map[string]doc{}, buried: map[string]int64{}, stuck: map[string]bool{},
	}
}

func (w *world) body(id string, r row) string {
	if w.quiet {
		r.rev = 0
	}
	return fmt.Sprintf(`{"id":%q,"text":%q,"rev":%d}`, id, r.text, r.rev)
}

// change writes or deletes a row, and its document after a delay.
func (w *world) change(id string, deleted, hidden bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.revs[id]++
	w.changes++
	r := row{rev: w.revs[id], text: strconv.Itoa(w.rng.IntN(5)), hidden: hidden}
	old, there := w.items[id]
	if deleted {
		delete(w.items, id)
	} else {
		w.items[id] = r
	}
	unchanged := w.quiet && there && !deleted && old.hidden == hidden && old.text == r.text
	if w.stuck[id] || unchanged {
		return
	}
	op := document.Op{Action: document.Put, Index: "things", ID: id, Fence: document.Newer, Version: r.rev, Body: []byte(w.body(id, r))}
	switch {
	case w.sequence: // two changes have one version
		mark := document.Mark{Sequence: stamp(int(1000 + w.changes))}
		op.Fence, op.Version, op.Sequence, op.MarkField = document.Exact, leastVersion(mark.Sequence), mark.Sequence, "m"
		if deleted || hidden {
			mark.Deleted, op.Body = "2026-01-01T00:00:00Z", []byte("{}")
		}
		op.Body = docrules.WithMark(op.Body, "m", mark)
	case deleted || hidden:
		op.Action, op.Body = document.Delete, nil
	}
	late := time.Duration(w.rng.IntN(1500)) * time.Millisecond
	w.pipes.Go(func() {
		time.Sleep(late)
		w.Write(context.Background(), op)
	})
}

// Write follows the version rules of the index.
func (w *world) Write(_ context.Context, op document.Op) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	at, known := w.buried[op.ID]
	d, there := w.docs[op.ID]
	if there {
		at, known = d.version, true
	}
	switch op.Fence {
	case document.Unchanged:
		if !there || d.seqNo != op.Revision.SeqNo {
			return nil
		}
		op.Version = at + 1
	case document.Exact:
		if known && op.Version <= at && there && d.mark().Sequence >= op.Sequence {
			return nil
		}
		op.Version = max(op.Version, at+1)
	default:
		if known && (op.Version < at || op.Version == at && op.Fence == document.Newer) {
			return nil
		}
	}
	delete(w.docs, op.ID)
	delete(w.buried, op.ID)
	w.writes++
	if op.Action == document.Delete {
		w.buried[op.ID] = op.Version
		return nil
	}
	w.docs[op.ID] = doc{op.Version, string(op.Body), w.writes}
	return nil
}

func keyOf(id string) sluice.Item {
	it, err := item.Parse(fmt.Appendf(nil, `{"id":{"S":%q}}`, id))
	if err != nil {
		panic(err)
	}
	return it
}

func itemOf(id string, r row) sluice.Item {
	hidden := ""
	if r.hidden {
		hidden = `,"hidden":{"BOOL":true}`
	}
	it, err := item.Parse(fmt.Appendf(nil, `{"id":{"S":%q},"text":{"S":%q},"rev":{"N":"%d"}%s}`, id, r.text, r.rev, hidden))
	if err != nil {
		panic(err)
	}
	return it
}

// Scan goes through the ids in order, and sees each row as it is when its turn
// comes.
func (w *world) Scan(ctx context.Context) iter.Seq2[*sluice.Record, error] {
	return func(yield func(*sluice.Record, error) bool) {
		last := ""
		for {
			time.Sleep(7 * time.Millisecond)
			w.mu.Lock()
			next := ""
			for id := range w.items {
				if id > last && (next == "" || id < next) {
					next = id
				}
			}
			r := w.items[next]
			w.mu.Unlock()
			if next == "" {
				return
			}
			last = next
			rec := &sluice.Record{EventName: sluice.Snapshot, Table: "things", Keys: keyOf(next), New: itemOf(next, r), Origin: sluice.Backfilled}
			if !yield(rec, nil) {
				return
			}
		}
	}
}

// Project puts members into another order than the documents have that came by
// a change.
func (w *world) Project(rec *sluice.Record) ([]document.Op, error) {
	var r struct {
		ID     string `dynamodbav:"id"`
		Text   string `dynamodbav:"text"`
		Rev    int64  `dynamodbav:"rev"`
		Hidden bool   `dynamodbav:"hidden"`
	}
	if err := rec.New.Decode(&r); err != nil {
		return nil, err
	}
	if r.Text == "bad" {
		return nil, errors.New("a bad text")
	}
	op := document.Op{Action: document.Put, Index: "things", ID: r.ID, Fence: document.Newer, Version: r.Rev}
	if w.sequence {
		op.Fence, op.Version, op.Sequence, op.MarkField = document.Exact, 1, beforeAll, "m"
		if r.Hidden {
			return nil, nil // as a projection has it for what a backfill reads
		}
	}
	if r.Hidden {
		op.Action = document.Delete
		return []document.Op{op}, nil
	}
	if w.quiet {
		r.Rev = 0
	}
	op.Body = fmt.Appendf(nil, `{"rev":%d.0,"id":%q,"text":%q}`, r.Rev, r.ID, r.Text)
	if w.sequence {
		op.Body = docrules.WithMark(op.Body, "m", document.Mark{Sequence: op.Sequence})
	}
	return []document.Op{op}, nil
}

func (w *world) Read(_ context.Context, table string, key sluice.Item) (sluice.Item, error) {
	time.Sleep(3 * time.Millisecond)
	v, ok := key.Lookup("id")
	if !ok || table != "things" {
		return sluice.Item{}, fmt.Errorf("table %q, key %s", table, key.Raw())
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	r, ok := w.items[v.Str()]
	if !ok {
		return sluice.Item{}, nil
	}
	return itemOf(v.Str(), r), nil
}

func (w *world) Get(_ context.Context, refs []document.Ref) ([]document.Doc, error) {
	time.Sleep(3 * time.Millisecond)
	w.mu.Lock()
	defer w.mu.Unlock()
	var docs []document.Doc
	for _, ref := range refs {
		d, ok := w.docs[ref.ID]
		found := document.Doc{Ref: ref, Found: ok && ref.Index == "things"}
		if found.Found {
			found = d.found(ref)
		}
		docs = append(docs, found)
	}
	return docs, nil
}

// List is of one moment, as a point in time is.
func (w *world) List(_ context.Context, index string) iter.Seq2[document.Doc, error] {
	return func(yield func(document.Doc, error) bool) {
		w.mu.Lock()
		docs := w.visible()
		w.mu.Unlock()
		for _, id := range slices.Sorted(maps.Keys(docs)) {
			time.Sleep(2 * time.Millisecond)
			ref := document.Ref{Index: index + "-000001", ID: id}
			if !yield(document.Doc{Ref: ref, Found: true, Version: docs[id].version}, nil) {
				return
			}
		}
	}
}

// Tombstones lists the tombstones, which List hides.
func (w *world) Tombstones(_ context.Context, index string) iter.Seq2[document.Doc, error] {
	return func(yield func(document.Doc, error) bool) {
		w.mu.Lock()
		docs := maps.Clone(w.docs)
		w.mu.Unlock()
		for id, d := range docs {
			ref := document.Ref{Index: index + "-000001", ID: id}
			if d.mark().Deleted != "" && !yield(d.found(ref), nil) {
				return
			}
		}
	}
}

// visible are the documents that a search shows.
func (w *world) visible() map[string]doc {
	docs := maps.Clone(w.docs)
	maps.DeleteFunc(docs, func(_ string, d doc) bool { return w.sequence && d.mark().Deleted != "" })
	return docs
}

const (
	stream    = "20250704T123321.123-"
	beforeAll = "00000000T000000.000-0000000000000000000000000000000000000000"
)

// stamp is the mark of the nth change of a stream.
func stamp(n int) string { return stream + recordtest.Sequence(n).Fence() }

// leastVersion has one version for two changes.
func leastVersion(sequence string) int64 {
	if sequence == beforeAll {
		return 1
	}
	n := recordtest.Nth(strings.TrimLeft(strings.TrimPrefix(sequence, stream), "0"))
	return max(int64(n)/2*100, 1)
}

// disagreements returns the drift of an idle world, by brute force.
func (w *world) disagreements() map[string]Kind {
	w.mu.Lock()
	defer w.mu.Unlock()
	wrong := map[string]Kind{}
	docs := w.visible()
	for id, r := range w.items {
		d, ok := docs[id]
		switch {
		case r.hidden && ok:
			wrong[id] = Ghost
		case r.hidden:
		case !ok:
			wrong[id] = Missing
		case !w.sequence && d.version > r.rev:
			wrong[id] = Ahead
		case sameThing(d.body, w.body(id, r)):
		case !w.sequence && d.version < r.rev:
			wrong[id] = Stale
		default:
			wrong[id] = Different
		}
	}
	for id := range docs {
		if _, ok := w.items[id]; !ok {
			wrong[id] = Ghost
		}
	}
	for id, d := range w.docs {
		if _, found := wrong[id]; !found && w.sequence && d.version < leastVersion(d.mark().Sequence) {
			wrong[id] = Unfenced
		}
	}
	return wrong
}

func sameThing(a, b string) bool {
	type thing struct {
		ID, Text string
		Rev      float64
	}
	var x, y thing
	if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		return bytes.Equal([]byte(a), []byte(b))
	}
	return x == y
}
