package meadowlark

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/message"
	"github.com/sluicehq/sluice/examples/internal/kit"
	"github.com/sluicehq/sluice/examples/meadowlark/writer"
)

// Kinds of messages.
const (
	alertKind = "integrity.dangling"  // to who watches over the data
	checkKind = "integrity.reference" // to ourselves
)

// grace is how long the target of a reference may come after it.
const grace = time.Minute

// removed raises an alert if others refer to a deleted document. The writer does
// not delete such a document, so the deletion bypassed it.
func (a *app) removed(ctx context.Context, rec *sluice.Record) error {
	typ, id := kit.Text(rec.Keys, "pk"), writer.EntityID(rec.Keys)
	_, again, err := a.writer.Document(ctx, typ, id)
	if err != nil {
		return err
	}
	if again {
		return sluice.Skip("the document exists again")
	}
	keys, err := a.writer.ForeignKeys(ctx, id)
	if err != nil || len(keys) == 0 {
		return err
	}
	rev, err := revOf(rec.Old)
	if err != nil {
		return err
	}
	return a.alert(ctx, id, typ, keys, fmt.Sprintf("%s#%d", id, rev))
}

// clean takes away what stood beside a document that was deleted.
func (a *app) clean(ctx context.Context, rec *sluice.Record) error {
	again, err := a.writer.Clean(ctx, kit.Text(rec.Keys, "pk"), writer.EntityID(rec.Keys))
	if err == nil && again {
		return sluice.Skip("the document exists again")
	}
	return err
}

// unreferred takes away the count that a reference was in, when a document that
// was deleted past the writer has left it behind and this was the last one.
func (a *app) unreferred(ctx context.Context, rec *sluice.Record) error {
	return a.writer.CleanCount(ctx, rec.Old)
}

// referred checks whether the targets of a new reference exist. A missing target
// may still come: order holds for one item only, and not all writers use
// transactions.
func (a *app) referred(ctx context.Context, rec *sluice.Record) error {
	d, dangling, err := a.writer.Dangling(ctx, rec.Keys)
	if err != nil || !dangling {
		return err
	}
	return a.later(ctx, message.Check{
		Kind: checkKind, Table: rec.Table, Key: rec.Keys,
		NotBefore: rec.Created.Add(grace),
		DedupeKey: d.From + "#" + d.To,
	})
}

// lookAgain alerts when it is not there a minute later.
func (a *app) lookAgain(ctx context.Context, rec *sluice.Record) error {
	c, err := message.ReadCheck(rec)
	if err != nil {
		return err
	}
	if writer.Kind(c.Key) != writer.FRef {
		return sluice.Permanent(fmt.Errorf("message %s: it holds the key of no reference", rec.EventID))
	}
	d, dangling, err := a.writer.Dangling(ctx, c.Key)
	if err != nil {
		return err
	}
	if !dangling {
		return sluice.Skip("nothing dangles any more")
	}
	return a.alert(ctx, d.To, d.Type, d.ForeignKeys, d.From+"#"+d.To)
}

// alert tells who watches over the data of references to a document that is not
// there. All of the message comes from the table, so that a second one is alike.
func (a *app) alert(ctx context.Context, id, typ string, keys []writer.ForeignKey, dedupeKey string) error {
	list := []byte{'['}
	for i, k := range keys {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, new(message.Body).Str("NaturalKey", k.NaturalKey).Str("Type", k.Type).Bytes()...)
	}
	var b message.Body
	b.Str("kind", alertKind).Str("id", id).Str("type", typ).JSON("foreignKeys", append(list, ']')).Str("dedupeKey", dedupeKey)
	if err := a.d.Alert(ctx, kit.Message(b.Bytes(), dedupeKey)); err != nil {
		return fmt.Errorf("telling of a document that is missing %s: %w", writer.Named(writer.EntityKey(typ, id)), err)
	}
	return nil
}

func revOf(image sluice.Item) (int64, error) {
	v, _ := image.Lookup("rev")
	rev, ok := v.Int64()
	if !ok {
		return 0, sluice.Permanent(errors.New("a document without a whole number in rev"))
	}
	return rev, nil
}
