package deadletter

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/sluicehq/sluice/state"
)

// All calls f with each entry that the filter selects, ordered by id. An error of
// f ends it. Unreadable entries are skipped and named in the error.
func (b *Box) All(ctx context.Context, filter Filter, f func(Entry) error) error {
	return b.allAfter(ctx, "", filter, f)
}

func (b *Box) allAfter(ctx context.Context, after string, filter Filter, f func(Entry) error) error {
	var errs []error
	for {
		entries, last, err := b.List(ctx, after, page)
		errs = append(errs, err)
		for _, e := range entries {
			if !filter.Matches(&e) {
				continue
			}
			if err := f(e); err != nil {
				return errors.Join(append(errs, err)...)
			}
		}
		if last == "" {
			return errors.Join(errs...)
		}
		after = last
	}
}

// Purge deletes the entries that the filter selects, and their records for good.
// It no longer holds their items. It returns the number of entries; a dry run only
// counts. It keeps unreadable entries and names them in the error: delete them by
// id. It also keeps an entry whose record fails again meanwhile. Deleting a gap
// acknowledges it.
func (b *Box) Purge(ctx context.Context, filter Filter, dryRun bool) (n int, err error) {
	ctx, release, err := b.alone(ctx, dryRun)
	if err != nil {
		return 0, err
	}
	defer release()
	err = b.All(ctx, filter, func(e Entry) error {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		deleted := dryRun
		if !dryRun {
			var err error
			if deleted, err = b.deleteKnown(ctx, &e); err != nil {
				return err
			}
		}
		if deleted {
			n++
		}
		return nil
	})
	return n, err
}

// Count is the number of entries with the same fields.
type Count struct {
	Route string `json:"route"` // empty: all routes, or gaps
	Table string `json:"table"`
	Kind  string `json:"kind"` // record or gap
	N     int    `json:"count"`
}

// headBytes is enough of a letter for Counts: route and table precede the long
// fields.
const headBytes = 2048

// heads is a store that can list the first bytes of letters.
type heads interface {
	ListLetterHeads(ctx context.Context, app, after string, limit, bytes int) ([]state.Letter, error)
}

const headPage = 1000

// heads returns a function that lists the first bytes of letters, or whole letters
// in a store that cannot, and how many to list at a time.
func (b *Box) heads(bytes int) (list lister, limit int) {
	h, ok := b.letters.(heads)
	if !ok {
		return b.letters.ListLetters, page
	}
	return func(ctx context.Context, app, after string, limit int) ([]state.Letter, error) {
		return h.ListLetterHeads(ctx, app, after, limit, bytes)
	}, headPage
}

// Counts counts the entries by table and route, ordered by both. If the store
// allows it, Counts does not read records. The error names unreadable entries.
func (b *Box) Counts(ctx context.Context) ([]Count, error) {
	var errs []error
	counts := make(map[Count]int)
	list, limit := b.heads(headBytes)
	for l, err := range b.each(ctx, list, limit) {
		if err != nil {
			return nil, err
		}
		c, err := countOf(l.Data)
		if err != nil { // longer than usual, or not a letter
			var e Entry
			if e, err = b.Get(ctx, l.ID); err == nil {
				c = Count{Route: e.Route, Table: e.Table, Kind: kindOf(e.Gap != nil)}
			}
		}
		if errors.Is(err, ErrNotFound) { // deleted meanwhile
			continue
		}
		if err != nil {
			errs = append(errs, unreadable(l.ID, err))
			continue
		}
		counts[c]++
	}
	all := make([]Count, 0, len(counts))
	for c, n := range counts {
		c.N = n
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b Count) int {
		return strings.Compare(a.Table+"\x00"+a.Route+"\x00"+a.Kind, b.Table+"\x00"+b.Route+"\x00"+b.Kind)
	})
	return all, errors.Join(errs...)
}

func kindOf(gap bool) string {
	if gap {
		return kindGap
	}
	return "record"
}

// countOf reads the first members of a letter, up to its position, which comes
// after all that it needs.
func countOf(data []byte) (Count, error) {
	head, _, ok := bytes.Cut(data, []byte(`,"position":`)) // in a string, the quotes would be escaped
	if !ok {
		return Count{}, errors.New("not a dead letter: it has no position")
	}
	var s stored
	if err := json.Unmarshal(slices.Concat(head, []byte("}")), &s); err != nil {
		return Count{}, err
	}
	if s.Version < 1 || s.Version > newestVersion {
		return Count{}, errors.New("not a dead letter that can be read")
	}
	return Count{Route: s.Route, Table: s.Table, Kind: kindOf(s.Kind == kindGap)}, nil
}
