package manhunt

import (
	"context"
	"fmt"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/handlers/cascade"
)

// children deletes the items in a deleted parent's partition, while the parent
// does not exist again. A contact's methods and a search's attempts are few, so no
// queue is needed.
func (a *app) children(entityType string) (*cascade.Cascade, error) {
	return cascade.New(cascade.Config{
		Table: a.d.Table, Key: []string{"PK", "SK"},
		Children: []cascade.Child{{
			Table: a.d.Table, Key: []string{"PK", "SK"},
			Partition:  cascade.Attr{Name: "PK", From: "PK"},
			Exclude:    func(row sluice.Item) bool { return attribute(row, "entityType") != entityType },
			Attributes: []string{"entityType"},
		}},
		Get: a.d.Store.Get, Query: a.d.Store.Query, Delete: a.d.Store.DeleteGuarded,
		Threshold: cascade.Unlimited,
		Logger:    a.d.Logger,
	})
}

// failSearches ends the searches for a contact that was deleted, when next has
// deleted its methods. A search that the index does not show yet fails by
// itself, at its next step: both make the same change, once.
func (a *app) failSearches(ctx context.Context, rec *sluice.Record, next sluice.Handler) error {
	id := attribute(rec.Keys, "PK")
	if err := next(ctx, rec); err != nil { // also when the contact exists again
		return err
	}
	items, err := a.table.query(ctx, index("GSI2", Active+"#"+id))
	if err != nil {
		return fmt.Errorf("reading the active searches of contact %s: %w", Named(rec.Keys), err)
	}
	e := Ending{By: manhuntItself, At: causedAt(ctx), Why: contactNotFound}
	for _, it := range items {
		// The index lags behind the table, which alone says what a row is.
		it, err := a.table.get(ctx, attribute(it, "PK"), "search", "search")
		if err != nil {
			return err
		}
		if attribute(it, "contactId") != id {
			continue
		}
		if _, err := a.table.end(ctx, attribute(it, "PK"), id, Failed, e); err != nil {
			return err
		}
	}
	return nil
}
