package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/spf13/pflag"

	"github.com/sluicehq/sluice/examples/internal/kit"
	"github.com/sluicehq/sluice/examples/manhunt"
)

const showUsage = `show search SEARCH
show contact DOMAIN CONTACT
show contacts DOMAIN
show searches CONTACT [--status STATUS] [--before TIME | --after TIME]`

// show answers what users ask of the table. Of what may be long it shows a page, and
// the cursor of the next one. Pages are in the order of ids; within one, attempts and
// methods are in the order in which they are tried.
func show(ctx context.Context, c *call) error {
	var q manhunt.SearchQuery
	fs := pflag.NewFlagSet("show", pflag.ContinueOnError)
	fs.IntVar(&q.Limit, "limit", 100, "rows of a page: attempts, methods, contacts or searches")
	fs.StringVar(&q.Cursor, "cursor", "", "the next page: what the one before has as next")
	fs.StringVar(&q.Status, "status", "", "searches that are active, canceled, successful or failed")
	fs.StringVar(&q.Before, "before", "", "searches that started before this time: 2019-12-31T20:00:00Z, or the beginning of one such as 2019-12-31")
	fs.StringVar(&q.After, "after", "", "searches that started after this time; after 2019-12-31 is from that day on")
	c.Usage = showUsage
	if ok, err := c.parse(fs, 2, 3); !ok {
		return err
	}
	want := map[string]int{"search": 1, "contact": 2, "contacts": 1, "searches": 1}
	what, of := c.Args[0], c.Args[1:]
	switch {
	case want[what] != len(of):
		return kit.Usage("want %s", showUsage)
	case q.Limit < 1 || q.Limit > 1000:
		return kit.Usage("--limit is %d, want 1 to 1000", q.Limit)
	case what != "searches" && (q.Status != "" || q.Before != "" || q.After != ""):
		return kit.Usage("--status, --before and --after are of show searches")
	}
	if err := q.Validate(); err != nil {
		return kit.Usage("--%v", err)
	}
	table, err := c.open(ctx)
	if err != nil {
		return err
	}
	shown, err := read(ctx, table, what, of, q)
	if err != nil {
		return err
	}
	e := json.NewEncoder(c.Out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(shown)
}

// read returns the data to show.
func read(ctx context.Context, table *manhunt.Table, what string, of []string, q manhunt.SearchQuery) (any, error) {
	switch what {
	case "search":
		s, found, err := table.Search(ctx, of[0])
		if err != nil || !found {
			return nil, missing(err, "there is no search %s", of[0])
		}
		attempts, next, err := table.Attempts(ctx, of[0], q.Page)
		slices.SortFunc(attempts, func(a, b manhunt.Attempt) int {
			return cmp.Or(cmp.Compare(a.Round, b.Round), cmp.Compare(a.Step, b.Step))
		})
		return struct {
			manhunt.Search
			Attempts []manhunt.Attempt `json:"attempts"`
			Next     string            `json:"next,omitempty"`
		}{s, attempts, next}, err
	case "contact":
		contact, found, err := table.Contact(ctx, of[0], of[1])
		if err != nil || !found {
			return nil, missing(err, "domain %s has no contact %s", of[0], of[1])
		}
		methods, next, err := table.Methods(ctx, of[0], of[1], q.Page)
		slices.SortFunc(methods, func(a, b manhunt.Method) int {
			return cmp.Or(cmp.Compare(a.Order, b.Order), cmp.Compare(a.ID, b.ID))
		})
		return struct {
			manhunt.Contact
			Methods []manhunt.Method `json:"methods"`
			Next    string           `json:"next,omitempty"`
		}{contact, methods, next}, err
	case "contacts":
		contacts, next, err := table.Contacts(ctx, of[0], q.Page)
		return struct {
			Contacts []manhunt.Contact `json:"contacts"`
			Next     string            `json:"next,omitempty"`
		}{contacts, next}, err
	}
	q.ContactID = of[0]
	searches, next, err := table.Searches(ctx, q)
	return struct {
		Searches []manhunt.Search `json:"searches"`
		Next     string           `json:"next,omitempty"`
	}{searches, next}, err
}

// missing is err, or that something is not there.
func missing(err error, format string, args ...any) error {
	if err != nil {
		return err
	}
	return fmt.Errorf(format, args...)
}
