package manhunt

import (
	"context"
	"fmt"
	"slices"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/dynamo"
)

// Contact is someone who can be reached.
type Contact struct {
	ID       string `dynamodbav:"PK"`
	DomainID string `dynamodbav:"GSI1PK"`
	Name     string `dynamodbav:"GSI1SK"`
}

// Method is one way of reaching a contact.
type Method struct {
	ContactID   string `dynamodbav:"PK"`
	ID          string `dynamodbav:"SK"`
	DomainID    string `dynamodbav:"domainId"`
	Type        string `dynamodbav:"type"`
	Destination string `dynamodbav:"destination"`
	Order       int64  `dynamodbav:"order"`
	WaitSeconds int64  `dynamodbav:"waitSeconds"`
	Enabled     bool   `dynamodbav:"enabled"`
}

// Search looks for one contact. Status is active, canceled, successful or
// failed.
type Search struct {
	ID         string         `dynamodbav:"PK"`
	ContactID  string         `dynamodbav:"contactId"`
	DomainID   string         `dynamodbav:"domainId"`
	Status     string         `dynamodbav:"status"`
	Started    string         `dynamodbav:"GSI1SK"` // RFC 3339
	Resolution string         `dynamodbav:"resolution"`
	Round      int64          `dynamodbav:"round"` // how often it was reopened
	Metadata   map[string]any `dynamodbav:"metadata"`
}

// Attempt is a method that a search tried, or is about to.
type Attempt struct {
	SearchID  string `dynamodbav:"PK"`
	ID        string `dynamodbav:"SK"`
	ContactID string `dynamodbav:"contactId"`
	DomainID  string `dynamodbav:"domainId"`
	Round     int64  `dynamodbav:"round"`
	Step      int64  `dynamodbav:"step"`
	Method    struct {
		ID    string `dynamodbav:"methodId"`
		Type  string `dynamodbav:"type"`
		Order int64  `dynamodbav:"order"`
	} `dynamodbav:"method"`
	Attempted string `dynamodbav:"attemptedDatetime"` // RFC 3339; "" before
	Outcome   string `dynamodbav:"outcome"`           // contacted, failed or skipped
	Response  string `dynamodbav:"response"`
}

// Search returns a search; false when there is none.
func (t *Table) Search(ctx context.Context, id string) (s Search, found bool, err error) {
	it, err := t.get(ctx, id, "search", "search")
	if err != nil || !it.Exists() {
		return s, false, err
	}
	return s, true, decode(it, &s)
}

// SearchWithAttempts returns a search and its attempts, by their ids; false
// when there is no such search.
func (t *Table) SearchWithAttempts(ctx context.Context, id string) (s Search, attempts []Attempt, found bool, err error) {
	items, err := t.partition(ctx, id)
	if err != nil {
		return s, nil, false, err
	}
	if s, found, err = first[Search](items, "search"); err != nil || !found {
		return s, nil, false, err
	}
	attempts, err = all[Attempt](items, "searchAttempt")
	return s, attempts, true, err
}

// Contact returns a contact of a domain; false when there is none.
func (t *Table) Contact(ctx context.Context, domainID, id string) (c Contact, found bool, err error) {
	it, err := t.get(ctx, id, "contact", "contact")
	if err != nil || !isContact(it, domainID) {
		return c, false, err
	}
	return c, true, decode(it, &c)
}

// ContactWithMethods returns a contact of a domain and its methods, by their
// ids; false when there is no such contact.
func (t *Table) ContactWithMethods(ctx context.Context, domainID, id string) (c Contact, methods []Method, found bool, err error) {
	items, err := t.partition(ctx, id)
	if err != nil {
		return c, nil, false, err
	}
	i := slices.IndexFunc(items, func(it sluice.Item) bool { return isContact(it, domainID) })
	if i < 0 {
		return c, nil, false, nil
	}
	if err := decode(items[i], &c); err != nil {
		return c, nil, false, err
	}
	methods, err = all[Method](items, "contactMethod")
	return c, methods, true, err
}

// isContact reports whether an item is a contact of the domain: one of another
// domain behaves as missing.
func isContact(it sluice.Item, domainID string) bool {
	return attribute(it, "entityType") == "contact" && attribute(it, "SK") == "contact" && domainID != "" && attribute(it, "GSI1PK") == domainID
}

// Contacts returns the contacts of a domain by name. Like all that follow it
// reads an index, which lags behind the table.
func (t *Table) Contacts(ctx context.Context, domainID string) ([]Contact, error) {
	return typed[Contact](ctx, t, "contact", index("GSI1", domainID))
}

// Searches returns all searches of a contact, the oldest first.
func (t *Table) Searches(ctx context.Context, contactID string) ([]Search, error) {
	return typed[Search](ctx, t, "search", index("GSI1", contactID))
}

// SearchesBefore returns the searches of a contact that started before date,
// an RFC 3339 time or the beginning of one.
func (t *Table) SearchesBefore(ctx context.Context, contactID, date string) ([]Search, error) {
	return typed[Search](ctx, t, "search", before(index("GSI1", contactID), date))
}

// SearchesAfter returns the searches of a contact that started after date.
func (t *Table) SearchesAfter(ctx context.Context, contactID, date string) ([]Search, error) {
	return typed[Search](ctx, t, "search", after(index("GSI1", contactID), date))
}

// SearchesIn returns the searches of a contact that have the status, the
// oldest first.
func (t *Table) SearchesIn(ctx context.Context, status, contactID string) ([]Search, error) {
	return typed[Search](ctx, t, "search", index("GSI2", status+"#"+contactID))
}

// SearchesInBefore is SearchesIn for those that started before date.
func (t *Table) SearchesInBefore(ctx context.Context, status, contactID, date string) ([]Search, error) {
	return typed[Search](ctx, t, "search", before(index("GSI2", status+"#"+contactID), date))
}

// SearchesInAfter is SearchesIn for those that started after date.
func (t *Table) SearchesInAfter(ctx context.Context, status, contactID, date string) ([]Search, error) {
	return typed[Search](ctx, t, "search", after(index("GSI2", status+"#"+contactID), date))
}

func typed[T any](ctx context.Context, t *Table, entityType string, q dynamo.Query) ([]T, error) {
	items, err := t.query(ctx, q)
	if err != nil {
		return nil, err
	}
	return all[T](items, entityType)
}

// all decodes the items of one type.
func all[T any](items []sluice.Item, entityType string) ([]T, error) {
	var out []T
	for _, it := range items {
		if attribute(it, "entityType") != entityType {
			continue
		}
		var v T
		if err := decode(it, &v); err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

func first[T any](items []sluice.Item, entityType string) (v T, found bool, err error) {
	for _, it := range items {
		if attribute(it, "entityType") == entityType {
			return v, true, decode(it, &v)
		}
	}
	return v, false, nil
}

func decode(it sluice.Item, into any) error {
	if err := it.Decode(into); err != nil {
		return fmt.Errorf("%s %s: %w", attribute(it, "entityType"), attribute(it, "PK"), err)
	}
	return nil
}
