package audit

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"sync"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
)

const (
	maxBatch      = 250     // documents in one Get
	maxBatchBytes = 4 << 20 // of the bodies that they are to have
	maxIndices    = 10_000  // that records name; above, ghosts are looked for in these
)

// run is one call of Run.
type run struct {
	Audit
	ghosts  bool            // they are looked for
	seen    *idSet          // scanned documents, when ghosts are wanted
	indices map[string]bool // that were named
	tallies map[string]*tally
	most    int64       // documents after which a sample ends; 0: no end
	waiting []candidate // differed, in the order of their looks

	naming sync.Mutex
	behind map[string][]string // indices that names lead to

	mu     sync.Mutex // Found, result and brake, during looks
	result Result
	brake  brake
}

// pair is a document that an item is to have, as the scan gave it.
type pair struct {
	rec sluice.Record // without images
	op  document.Op
	was look
}

func newRun(a Audit) *run {
	r := &run{Audit: a, indices: map[string]bool{}, tallies: map[string]*tally{}, behind: map[string][]string{}}
	for _, index := range a.Indices {
		r.indices[index] = true
	}
	return r
}

// compare goes through the table once.
func (r *run) compare(ctx context.Context) error {
	if r.ghosts {
		r.seen = newIDSet()
	}
	var batch []pair
	size := 0
	for rec, err := range r.Scan(ctx) {
		if err != nil {
			return fmt.Errorf("audit: reading the table: %w", err)
		}
		if !r.sampled(rec) {
			continue
		}
		r.result.Items++
		ops, err := r.Project(rec)
		origin := identity(rec)
		if err != nil {
			r.found(Drift{Kind: Failed, Table: rec.Table, Key: origin.Keys, Err: err})
			continue
		}
		if ops, err = r.wanted(ctx, ops); err != nil {
			return err
		}
		if err := r.remember(ctx, ops); err != nil {
			return err
		}
		for _, op := range ops {
			if op.Action == document.Put {
				r.result.Documents++
			}
			batch = append(batch, pair{rec: origin, op: op, was: look{item: rec.New.Hash(), wanted: true, want: op.Version}})
			size += len(op.Body)
		}
		if len(batch) >= maxBatch || size >= maxBatchBytes {
			if err := r.first(ctx, batch); err != nil {
				return err
			}
			batch, size = nil, 0
			if r.most > 0 && r.result.Documents >= r.most {
				return nil
			}
		}
	}
	err := r.first(ctx, batch)
	for err == nil && len(r.waiting) > 0 {
		err = r.settle(ctx, true)
	}
	return err
}

// identity is what of a record is needed to project its item again.
func identity(rec *sluice.Record) sluice.Record {
	return sluice.Record{
		EventID: rec.EventID, EventName: rec.EventName, Table: rec.Table, StreamARN: rec.StreamARN,
		Region: rec.Region, Keys: rec.Keys.Clone(), Origin: rec.Origin,
	}
}

// sampled decides by the item's key, so that Seed chooses the same ones again.
func (r *run) sampled(rec *sluice.Record) bool {
	if r.Sample == 1 {
		return true
	}
	hi, lo := bits.Mul64(rec.Keys.Hash()^r.Seed, 0x9e3779b97f4a7c15)
	hi, lo = bits.Mul64(hi^lo, 0xd6e8feb86659fd93)
	return float64(hi^lo) < r.Sample*math.MaxUint64
}

// remember notes the item's documents, whether they should exist or not: they are
// compared with their item.
func (r *run) remember(ctx context.Context, ops []document.Op) error {
	for _, op := range ops {
		if len(r.indices) < maxIndices {
			r.indices[op.Index] = true
		}
		if r.seen == nil {
			continue
		}
		places, err := r.places(ctx, op.Ref())
		if err != nil {
			return err
		}
		for _, place := range places {
			r.seen.add(place)
		}
	}
	return nil
}

// first looks at documents for the first time.
func (r *run) first(ctx context.Context, batch []pair) error {
	for chunk := range slices.Chunk(batch, maxBatch) {
		docs, err := get(ctx, r, chunk, func(p pair) document.Ref { return p.op.Ref() })
		if err != nil {
			return err
		}
		for i, p := range chunk {
			r.tally(p, docs[i])
			kind, _ := r.judge(&p.op, docs[i])
			if kind == 0 {
				continue
			}
			c := candidate{rec: p.rec, ref: p.op.Ref(), was: p.was}
			c.was.see(docs[i])
			if err := r.wait(ctx, c); err != nil {
				return err
			}
		}
		r.Progress(r.result)
	}
	return r.settle(ctx, false)
}

// get reads the documents of all as they are now, in the same order.
func get[T any](ctx context.Context, r *run, all []T, ref func(T) document.Ref) ([]document.Doc, error) {
	refs := make([]document.Ref, len(all))
	for i, one := range all {
		refs[i] = ref(one)
	}
	docs, err := r.Get(ctx, refs)
	if err != nil {
		return nil, fmt.Errorf("audit: reading documents: %w", err)
	}
	if len(docs) != len(refs) {
		return nil, fmt.Errorf("audit: Get returned %d documents for %d names", len(docs), len(refs))
	}
	for i := range docs {
		docs[i] = r.Marks.shown(docs[i])
	}
	return docs, nil
}

func (r *run) found(d Drift) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.foundLocked(d)
}

// foundLocked is found for a caller that holds the lock.
func (r *run) foundLocked(d Drift) {
	r.result.count(d)
	r.Found(d)
}
