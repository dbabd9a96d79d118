package transitgateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/examples/internal/kit"
	"github.com/sluicehq/sluice/item"
)

var (
	// ErrVersionConflict says that somebody else has saved, deleted or created
	// the gateway. Read it again and apply the change to the current state, as
	// [Gateways.Change] does. Saving the same copy again would undo theirs.
	ErrVersionConflict = errors.New("version conflict: the gateway is not what was read; read it again and apply the change anew")
	// ErrNameTaken says that another gateway of the owner has the name.
	ErrNameTaken = errors.New("another gateway of the owner has this name")
	// ErrNotFound says that there is no such gateway.
	ErrNotFound = errors.New("there is no such gateway")
)

// Gateways reads and writes the tables. It is safe for concurrent use; a Gateway
// that it is given is not.
//
// Its writes return ErrVersionConflict and the other errors above in wrapping,
// and change the Gateway they are given only when they have succeeded. After any
// other error it is unknown whether the write was done: read again.
type Gateways struct {
	store  Store
	prefix string
	now    func() time.Time
}

// New returns the gateways in the tables whose names begin with the prefix. now
// may be nil.
func New(store Store, prefix string, now func() time.Time) *Gateways {
	if now == nil {
		now = time.Now
	}
	return &Gateways{store: store, prefix: prefix, now: now}
}

func (g *Gateways) table(name string) string { return g.prefix + name }

// SaveNew creates a gateway with its name, in one transaction, and sets Version
// and CreatedAt. An ID that was deleted may be used again: its CreatedAt is then
// later than that of its predecessor, whatever the writers' clocks say.
func (g *Gateways) SaveNew(ctx context.Context, w *Gateway) error {
	if err := w.validate(); err != nil {
		return err
	}
	saved := *w
	saved.Version, saved.CreatedAt = 0, g.now().UnixMilli()
	for {
		err := g.store.Transact(ctx,
			g.putNew(saved),
			g.claim(w.OwnerID, w.Name, w.ID),
			dynamo.Check(g.table("tgw_id"), idKey(*w), "attribute_not_exists(created_at) OR created_at < :created").Value(":created", saved.CreatedAt))
		if before, ok := predecessor(err); ok {
			saved.CreatedAt = before + 1
			continue
		}
		if err != nil {
			return w.refused("creating", err, ErrVersionConflict, ErrNameTaken)
		}
		*w = saved
		return nil
	}
}

// putNew puts a gateway where there is none.
func (g *Gateways) putNew(w Gateway) dynamo.Op {
	return dynamo.Put(g.table("tgw"), w.item()).If("attribute_not_exists(version)")
}

// predecessor returns when a gateway of the same ID had been created, if that
// alone is what a SaveNew failed for.
func predecessor(err error) (created int64, ok bool) {
	refused, ok := errors.AsType[*dynamo.ConditionError](err)
	if !ok || !slices.Equal(refused.Failed, []int{2}) {
		return 0, false
	}
	return kit.Number(refused.Items[0], "created_at")
}

// SaveUpdate saves State and RouteTables of a gateway that was read, if nobody
// has saved it since, and raises Version.
func (g *Gateways) SaveUpdate(ctx context.Context, w *Gateway) error {
	if err := w.validateNext(); err != nil {
		return err
	}
	saved := *w
	saved.Version++
	routeTables, _ := saved.item().Lookup("route_table_ids")
	op := g.ifUnchanged(*w, kit.Set(dynamo.Update(g.table("tgw"), w.key(), ""), map[string]any{
		"version": saved.Version, "state": w.State, "route_table_ids": routeTables,
	}))
	if err := g.store.Write(ctx, op); err != nil {
		return w.refused("saving", err, w.conflict(err))
	}
	*w = saved
	return nil
}

// Rename gives a gateway that was read another name, if nobody has saved it
// since, and raises Version.
func (g *Gateways) Rename(ctx context.Context, w *Gateway, name string) error {
	saved := *w
	saved.Name = name
	if err := saved.validateNext(); err != nil {
		return err
	}
	if name == w.Name {
		return nil
	}
	saved.Version++
	update := g.ifUnchanged(*w, kit.Set(dynamo.Update(g.table("tgw"), w.key(), ""), map[string]any{"version": saved.Version, "name": name}))
	err := g.transact(ctx, g.release(*w), update, g.claim(w.OwnerID, name, w.ID))
	if err != nil {
		return w.refused("renaming", err, nil, w.conflict(err), ErrNameTaken)
	}
	*w = saved
	return nil
}

// Delete deletes a gateway that was read, if nobody has saved it since, and
// releases its name.
func (g *Gateways) Delete(ctx context.Context, w *Gateway) error {
	if err := w.validate(); err != nil {
		return err
	}
	err := g.transact(ctx, g.release(*w),
		g.ifUnchanged(*w, dynamo.Delete(g.table("tgw"), w.key())),
		dynamo.Put(g.table("tgw_id"), idKey(*w).With(item.Number("created_at", fmt.Sprint(w.CreatedAt)), expiry(g.now()))))
	if err != nil {
		return w.refused("deleting", err, nil, w.conflict(err))
	}
	return nil
}

// Change reads a gateway, has change applied to it, and saves it; when somebody
// else was first, once more from the start. change may be called several times,
// each time with another Gateway; its error ends it.
func (g *Gateways) Change(ctx context.Context, ownerID, id string, change func(*Gateway) error) (Gateway, error) {
	for {
		w, found, err := g.Gateway(ctx, ownerID, id)
		if err != nil {
			return w, err
		}
		if !found {
			return w, fmt.Errorf("gateway %s of %s: %w", id, ownerID, ErrNotFound)
		}
		if err := change(&w); err != nil {
			return w, err
		}
		if err := g.SaveUpdate(ctx, &w); !errors.Is(err, ErrVersionConflict) {
			return w, err
		}
	}
}

// ifUnchanged restricts op to the gateway that was read. The version alone does
// not distinguish it from one re-created under its ID.
func (g *Gateways) ifUnchanged(w Gateway, op dynamo.Op) dynamo.Op {
	return kit.Same(op, w.item(), "version", "created_at", "name")
}

// transact does release beside the others, or leaves it out when the name turns
// out to be another gateway's. release is the first of the operations.
func (g *Gateways) transact(ctx context.Context, release dynamo.Op, ops ...dynamo.Op) error {
	err := g.store.Transact(ctx, append([]dynamo.Op{release}, ops...)...)
	if refused, ok := errors.AsType[*dynamo.ConditionError](err); ok && slices.Equal(refused.Failed, []int{0}) {
		free := dynamo.Check(release.Table, release.Key, "tgw_id <> :id").Value(":id", release.Values[":id"])
		return g.store.Transact(ctx, append([]dynamo.Op{free}, ops...)...)
	}
	return err
}

// refused returns the error of a failed write. For conditions, it is the error at
// the index of the first failed one.
func (w *Gateway) refused(doing string, err error, at ...error) error {
	if refused, ok := errors.AsType[*dynamo.ConditionError](err); ok {
		err = ErrVersionConflict // what else did not hold has changed meanwhile
		if i := refused.Failed[0]; i < len(at) && at[i] != nil {
			err = at[i]
		}
	}
	return fmt.Errorf("%s gateway %s of %s: %w", doing, w.ID, w.OwnerID, err)
}

// conflict returns ErrVersionConflict. If only the Name differs from the item that
// was read, the error says that it was changed by hand.
func (w *Gateway) conflict(err error) error {
	refused, ok := errors.AsType[*dynamo.ConditionError](err)
	if !ok {
		return err
	}
	for _, found := range refused.Items {
		version, has := kit.Number(found, "version")
		created, _ := kit.Number(found, "created_at")
		if has && version == w.Version && created == w.CreatedAt && kit.Text(found, "name") != w.Name {
			return sluice.Permanent(fmt.Errorf("its name is %q and not %q: want Rename to change it", kit.Text(found, "name"), w.Name))
		}
	}
	return ErrVersionConflict
}

func (w *Gateway) validateNext() error {
	if w.Version >= lastVersion {
		return sluice.Permanent(fmt.Errorf("gateway %s of %s: Version is %d, and there is none after %d", w.ID, w.OwnerID, w.Version, lastVersion))
	}
	return w.validate()
}

// idKey is the key of the tombstone of a deleted gateway's ID.
func idKey(w Gateway) sluice.Item { return item.Of(item.String("id", w.OwnerID+"#"+w.ID)) }
