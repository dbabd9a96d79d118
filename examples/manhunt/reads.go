package manhunt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/item"
)

// Unread are the attributes of a row that are of a wrong type, and why each could not
// be read. Their fields are empty.
type Unread map[string]string

// Contact is someone who can be reached.
type Contact struct {
	ID       string `dynamodbav:"PK" json:"id"`
	DomainID string `dynamodbav:"GSI1PK" json:"domainId"`
	Name     string `dynamodbav:"GSI1SK" json:"name"`
}

// Method is one way of reaching a contact.
type Method struct {
	ContactID   string `dynamodbav:"PK" json:"contactId"`
	ID          string `dynamodbav:"SK" json:"id"`
	DomainID    string `dynamodbav:"domainId" json:"domainId"`
	Type        string `dynamodbav:"type" json:"type"`
	Name        string `dynamodbav:"name" json:"name,omitempty"`
	Destination string `dynamodbav:"destination" json:"destination"`
	Order       int64  `dynamodbav:"order" json:"order"`
	WaitSeconds int64  `dynamodbav:"waitSeconds" json:"waitSeconds"`
	Enabled     bool   `dynamodbav:"enabled" json:"enabled"`
	Unread      Unread `dynamodbav:"unread" json:"unread,omitempty"`
}

// Search looks for one contact. Status is active, canceled, successful or
// failed. Times are RFC 3339.
type Search struct {
	ID         string         `dynamodbav:"PK" json:"id"`
	ContactID  string         `dynamodbav:"contactId" json:"contactId"`
	DomainID   string         `dynamodbav:"domainId" json:"domainId"`
	Status     string         `dynamodbav:"status" json:"status"`
	Started    string         `dynamodbav:"GSI1SK" json:"started"`
	Resolution string         `dynamodbav:"resolution" json:"resolution,omitempty"` // the response, or why it ended
	ResolvedBy string         `dynamodbav:"resolvedBy" json:"resolvedBy,omitempty"`
	Resolved   string         `dynamodbav:"resolvedDatetime" json:"resolvedDatetime,omitempty"`
	Round      int64          `dynamodbav:"round" json:"round,omitempty"` // how often it was reopened
	Metadata   map[string]any `dynamodbav:"metadata" json:"metadata,omitempty"`

	// Malformed are the methods that the search passed over, and why, by their ids.
	Malformed map[string]string `dynamodbav:"malformedMethods" json:"malformedMethods,omitempty"`
	Unread    Unread            `dynamodbav:"unread" json:"unread,omitempty"`
}

// Attempt is a method that a search tried, or is about to. Its method is as it was
// then.
type Attempt struct {
	SearchID  string `dynamodbav:"PK" json:"searchId"`
	ID        string `dynamodbav:"SK" json:"id"`
	ContactID string `dynamodbav:"contactId" json:"contactId"`
	DomainID  string `dynamodbav:"domainId" json:"domainId"`
	Round     int64  `dynamodbav:"round" json:"round,omitempty"`
	Step      int64  `dynamodbav:"step" json:"step"`
	Method    struct {
		ID          string `dynamodbav:"methodId" json:"id"`
		Type        string `dynamodbav:"type" json:"type,omitempty"`
		Name        string `dynamodbav:"name" json:"name,omitempty"`
		Destination string `dynamodbav:"destination" json:"destination,omitempty"`
		Order       int64  `dynamodbav:"order" json:"order"`
	} `dynamodbav:"method" json:"method"`
	Attempted   string `dynamodbav:"attemptedDatetime" json:"attemptedDatetime,omitempty"` // RFC 3339; "" before
	Outcome     string `dynamodbav:"outcome" json:"outcome,omitempty"`                     // contacted, failed or skipped
	Error       string `dynamodbav:"error" json:"error,omitempty"`                         // why it was failed or skipped
	Response    string `dynamodbav:"response" json:"response,omitempty"`
	RespondedBy string `dynamodbav:"respondedBy" json:"respondedBy,omitempty"` // "" is the contact
	Responded   string `dynamodbav:"respondedDatetime" json:"respondedDatetime,omitempty"`
	Unread      Unread `dynamodbav:"unread" json:"unread,omitempty"`
}

// Search returns a search; false when there is none.
func (t *Table) Search(ctx context.Context, id string) (s Search, found bool, err error) {
	it, err := t.get(ctx, id, "search", "search")
	if err != nil || !it.Exists() {
		return s, false, err
	}
	s, err = decode[Search](it)
	return s, true, err
}

// SearchWithAttempts returns a search and its attempts, by their ids; false
// when there is no such search. [Table.Attempts] has them by pages.
func (t *Table) SearchWithAttempts(ctx context.Context, id string) (s Search, attempts []Attempt, found bool, err error) {
	items, err := t.partition(ctx, id)
	if err != nil {
		return s, nil, false, err
	}
	searches, err := all[Search](items, "search")
	if err != nil || len(searches) == 0 {
		return s, nil, false, err
	}
	attempts, err = all[Attempt](items, "searchAttempt")
	return searches[0], attempts, true, err
}

// Attempts returns a page of a search's attempts, by their ids.
func (t *Table) Attempts(ctx context.Context, searchID string, p Page) (attempts []Attempt, next string, err error) {
	return page[Attempt](ctx, t, "searchAttempt", dynamo.Query{Partition: item.String("PK", searchID)}, p)
}

// Contact returns a contact of a domain; false when there is none.
func (t *Table) Contact(ctx context.Context, domainID, id string) (c Contact, found bool, err error) {
	it, err := t.get(ctx, id, "contact", "contact")
	if err != nil || !isContact(it, domainID) {
		return c, false, err
	}
	c, err = decode[Contact](it)
	return c, true, err
}

// Methods returns a page of the methods of a domain's contact, ordered by id;
// empty if the contact does not exist.
func (t *Table) Methods(ctx context.Context, domainID, contactID string, p Page) (methods []Method, next string, err error) {
	if _, found, err := t.Contact(ctx, domainID, contactID); err != nil || !found {
		return nil, "", err
	}
	return page[Method](ctx, t, "contactMethod", dynamo.Query{Partition: item.String("PK", contactID)}, p)
}

// isContact reports whether an item is a contact of the domain: one of another
// domain behaves as missing.
func isContact(it sluice.Item, domainID string) bool {
	return attribute(it, "entityType") == "contact" && attribute(it, "SK") == "contact" && domainID != "" && attribute(it, "GSI1PK") == domainID
}

// Contacts returns a page of the contacts of a domain, by name. Like Searches it
// reads an index, which lags behind the table.
func (t *Table) Contacts(ctx context.Context, domainID string, p Page) (contacts []Contact, next string, err error) {
	return page[Contact](ctx, t, "contact", index("GSI1", domainID), p)
}

// SearchQuery asks for the searches of a contact.
type SearchQuery struct {
	ContactID string
	Status    string // "" is any

	// Before and After leave out what started at that time or on the other side of
	// it: a time in UTC such as 2019-12-31T20:00:00Z, or the beginning of one such as
	// 2019-12-31. One of them at most.
	Before, After string

	Page
}

// Validate returns the mistakes of a query.
func (q SearchQuery) Validate() error {
	switch {
	case q.Status != "" && !slices.Contains(statuses, q.Status):
		return fmt.Errorf("status %q: want %s", q.Status, strings.Join(statuses, ", "))
	case q.Before != "" && q.After != "":
		return errors.New("before and after: want one of them")
	case !isTime(q.Before):
		return fmt.Errorf("before %q: %s", q.Before, wantTime)
	case !isTime(q.After):
		return fmt.Errorf("after %q: %s", q.After, wantTime)
	}
	return nil
}

const wantTime = "want a time in UTC such as 2019-12-31T20:00:00Z, or the beginning of one such as 2019-12-31"

// isTime reports whether a text is a time comparable with the text GSI1SK; "" is
// no time.
func isTime(text string) bool {
	for _, layout := range []string{"", "2006", "2006-01", time.DateOnly, "2006-01-02T15", "2006-01-02T15:04", "2006-01-02T15:04:05Z"} {
		// Parse alone would take fractions, too.
		if _, err := time.Parse(layout, text); err == nil && len(text) == len(layout) {
			return true
		}
	}
	return false
}

// Searches returns a page of searches, the oldest first.
func (t *Table) Searches(ctx context.Context, q SearchQuery) (found []Search, next string, err error) {
	if err := q.Validate(); err != nil {
		return nil, "", err
	}
	by := index("GSI1", q.ContactID)
	if q.Status != "" {
		by = index("GSI2", q.Status+"#"+q.ContactID)
	}
	switch sort := by.Index + "SK"; {
	case q.Before != "":
		by.Sort = dynamo.Before(item.String(sort, q.Before))
	case q.After != "":
		by.Sort = dynamo.After(item.String(sort, q.After))
	}
	return page[Search](ctx, t, "search", by, q.Page)
}

// all decodes the items of one type.
func all[T any](items []sluice.Item, entityType string) ([]T, error) {
	var out []T
	for _, it := range items {
		if attribute(it, "entityType") != entityType {
			continue
		}
		v, err := decode[T](it)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// decode reads a row. An attribute of a wrong type does not hide the rest of the
// row or other rows: it goes to the attribute unread, with the reason.
func decode[T any](it sluice.Item) (T, error) {
	unread := item.Of()
	for {
		var v T
		err := it.Decode(&v)
		bad, ok := errors.AsType[*item.DecodeError](err)
		if !ok {
			return v, err
		}
		unread = unread.With(item.String(bad.Path, bad.Err.Error()))
		it = without(it, bad.Path).With(item.Map("unread", unread))
	}
}

// without leaves an attribute out, by its path.
func without(it sluice.Item, path string) sluice.Item {
	name, rest, nested := strings.Cut(path, ".")
	if v, _ := it.Lookup(name); nested && v.Kind() == item.M {
		return it.With(item.Map(name, without(v.Map(), rest)))
	}
	return it.Without(name)
}
