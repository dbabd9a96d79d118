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

// ForeignKey names a document that refers to another, as Meadowlark's answers
// and alerts do.
type ForeignKey struct {
	NaturalKey string
	Type       string
}

// MaxForeignKeys limits the listed keys, which must fit into a message.
const MaxForeignKeys = 500

// Document returns a document, without its references; false when there is none.
func (w *Writer) Document(ctx context.Context, typ, id string) (d Document, ok bool, err error) {
	it, err := w.c.Store.Get(ctx, w.c.Table, EntityKey(typ, id))
	if err != nil || !it.Exists() {
		return d, false, err
	}
	return Read(it), true, nil
}

// ForeignKeys are those who refer to the document with the id, the first
// MaxForeignKeys of them in the order of their ids.
func (w *Writer) ForeignKeys(ctx context.Context, id string) ([]ForeignKey, error) {
	var keys []ForeignKey
	q := dynamo.Query{
		Table: w.c.Table, Partition: item.String("pk", toPrefix+id), Sort: dynamo.Prefix("sk", fromPrefix),
		Limit: MaxForeignKeys,
	}
	for it, err := range dynamo.All(ctx, w.c.Store.Query, q) {
		if err != nil {
			return nil, fmt.Errorf("reading who refers to the document: %w", err)
		}
		if len(keys) == MaxForeignKeys {
			break
		}
		keys = append(keys, foreignKey(it))
	}
	return keys, nil
}

// Dangling is a reference to a missing document.
type Dangling struct {
	From, To    string       // ids
	Type        string       // partition key under which To was looked for
	ForeignKeys []ForeignKey // From, if the table says who that is
}

// Dangling checks a reference by the key of its FREF item: false if its target
// exists, or if the reference no longer does.
func (w *Writer) Dangling(ctx context.Context, fref sluice.Item) (d Dangling, ok bool, err error) {
	it, err := w.c.Store.Get(ctx, w.c.Table, fref)
	if err != nil || !it.Exists() {
		return d, false, err
	}
	from, _ := strings.CutPrefix(kit.Text(it, "pk"), fromPrefix)
	to, _ := strings.CutPrefix(kit.Text(it, "sk"), toPrefix)
	p := pair{from, to, counterOf(it)}
	if !p.counter.Exists() {
		return d, false, sluice.Permanent(fmt.Errorf("the reference %s does not say to what: want pk and sk in \"to\"", Named(fref)))
	}
	count, err := w.c.Store.Get(ctx, w.c.Table, p.counter)
	if err != nil || count.Exists() {
		return d, false, err
	}
	tref, err := w.c.Store.Get(ctx, w.c.Table, p.tref())
	if err != nil {
		return d, false, err
	}
	d = Dangling{From: from, To: to, Type: kit.Text(p.counter, "pk"), ForeignKeys: []ForeignKey{}}
	if tref.Exists() {
		d.ForeignKeys = append(d.ForeignKeys, foreignKey(tref))
	}
	return d, true, nil
}

func foreignKey(tref sluice.Item) ForeignKey {
	return ForeignKey{kit.Text(tref, "info.NaturalKey"), kit.Text(tref, "info.Type")}
}
