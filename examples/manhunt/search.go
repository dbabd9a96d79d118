package manhunt

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

// NewSearch is a search that is about to be opened.
type NewSearch struct {
	ID, DomainID, ContactID string
	Started                 string      // RFC 3339, in UTC
	Metadata                sluice.Item // what templates may say; may be absent
}

// Item is the search's row.
func (n NewSearch) Item() sluice.Item {
	it := item.Of(
		item.String("entityType", "search"),
		item.String("PK", n.ID),
		item.String("SK", "search"),
		item.String("GSI1PK", n.ContactID),
		item.String("GSI1SK", n.Started),
		item.String("GSI2PK", Active+"#"+n.ContactID),
		item.String("GSI2SK", n.Started),
		item.String("contactId", n.ContactID),
		item.String("domainId", n.DomainID),
		item.String("status", Active),
	)
	if n.Metadata.Exists() {
		it = it.With(item.Map("metadata", n.Metadata))
	}
	return it
}

// Open opens a search; false when there is one with its id, which stays as it is.
func (t *Table) Open(ctx context.Context, n NewSearch) (opened bool, err error) {
	if n.ID == "" || n.DomainID == "" {
		return false, sluice.Permanent(errors.New("opening a search: want an id and a domain"))
	}
	it := n.Item()
	if reason := malformed(it); reason != "" {
		return false, sluice.Permanent(fmt.Errorf("opening a search: %s", reason))
	}
	return t.write(ctx, dynamo.Put(t.name, it).If("attribute_not_exists(#key)").Name("#key", "PK"))
}

// malformed returns why a search is invalid; "" for a valid search or one that is
// over.
func malformed(it sluice.Item) string {
	status := attribute(it, "status")
	if !slices.Contains(statuses, status) {
		return "status is none of active, canceled, successful and failed"
	}
	if status != Active {
		return ""
	}
	if contact, _ := it.Lookup("contactId"); contact.Kind() != item.S || contact.Str() == "" {
		return "contactId is missing, or no text"
	}
	if _, err := time.Parse(time.RFC3339, attribute(it, "GSI1SK")); err != nil {
		return "GSI1SK, when it started, is no time in RFC 3339, such as 2019-12-30T19:32:14Z"
	}
	if round, there := it.Lookup("round"); there {
		if n, ok := round.Int64(); !ok || n < 0 {
			return "round is no whole number from 0"
		}
	}
	return ""
}

// search reads a search for its escalation. One that is malformed is failed, with
// the reason on the item: nobody can be called for it.
func (a *app) search(ctx context.Context, id string) (sluice.Item, error) {
	it, err := a.table.get(ctx, id, "search", "search")
	if err != nil || !it.Exists() {
		return it, err
	}
	reason := malformed(it)
	if reason == "" {
		return it, nil
	}
	op := a.table.ending(id, attribute(it, "contactId"), Failed, Ending{By: manhuntItself, At: causedAt(ctx), Why: badSearch + ": " + reason})
	if _, err := a.table.write(ctx, kit.Same(op, it, "entityType", "status")); err != nil {
		return it, err
	}
	return it, sluice.Permanent(fmt.Errorf("search %s: %s", Named(it), reason))
}
