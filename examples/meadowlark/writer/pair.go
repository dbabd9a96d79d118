package writer

import (
	"context"
	"fmt"
	"strings"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/examples/internal/kit"
	"github.com/sluicehq/sluice/item"
)

// pair is a reference as the table has it.
type pair struct {
	from, to string      // ids
	counter  sluice.Item // key of the count that it is in; absent when the table does not say
}

func (p pair) fref() sluice.Item { return key(fromPrefix+p.from, toPrefix+p.to) }
func (p pair) tref() sluice.Item { return key(toPrefix+p.to, fromPrefix+p.from) }

// pairs reads what the document with the id refers to.
func (w *Writer) pairs(ctx context.Context, id string) ([]pair, error) {
	var pairs []pair
	q := dynamo.Query{Table: w.c.Table, Partition: item.String("pk", fromPrefix+id)}
	for it, err := range dynamo.All(ctx, w.c.Store.Query, q) {
		if err != nil {
			return nil, fmt.Errorf("reading what the document refers to: %w", err)
		}
		to, ok := strings.CutPrefix(kit.Text(it, "sk"), toPrefix)
		if !ok {
			continue // not ours
		}
		pairs = append(pairs, pair{id, to, counterOf(it)})
	}
	return pairs, nil
}

// counterOf is the key that an FREF item has in "to".
func counterOf(fref sluice.Item) sluice.Item {
	v, _ := fref.Lookup("to")
	if key := v.Map().Only("pk", "sk"); key.Len() == 2 {
		return key
	}
	return sluice.Item{}
}

// link writes a pair, and adds to its count.
func (w *Writer) link(d Document, ref Reference, p pair) []step {
	from := item.Of(item.String("Type", d.Type), item.String("NaturalKey", d.NaturalKey))
	return []step{
		{op: w.put(p.fref().With(item.Map("to", p.counter)), absent), means: changed},
		{op: dynamo.Put(w.c.Table, p.tref().With(item.Map("info", from)))},
		{op: w.count(p.counter, 1).If(present), means: missing, ref: ref},
	}
}

// unlink deletes a pair, and subtracts it from its count if that exists. gone has
// the targets whose count was absent.
func (w *Writer) unlink(p pair, gone map[string]bool) []step {
	steps := []step{
		{op: w.delete(p.fref()).If(present), means: changed},
		{op: w.delete(p.tref())},
	}
	switch {
	case !p.counter.Exists():
	case gone[p.to]:
		steps = append(steps, step{op: w.check(p.counter, absent), means: counterBack, pair: p})
	default:
		steps = append(steps, step{op: w.count(p.counter, -1).If(present), means: counterGone, pair: p})
	}
	return steps
}

// note keeps what failed steps say about counts, for the next attempt.
func note(gone map[string]bool, failed []step) {
	for _, s := range failed {
		switch s.means {
		case counterGone:
			gone[s.pair.to] = true
		case counterBack:
			delete(gone, s.pair.to)
		}
	}
}
