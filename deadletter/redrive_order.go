package deadletter

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/state"
)

// alone waits until no other redrive or purge runs, so that an item's entries stay
// in order. The context that it returns ends when another process may begin one.
func (b *Box) alone(ctx context.Context, dryRun bool) (held context.Context, release func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	select {
	case b.redrive <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, fmt.Errorf("waiting for another redrive or purge to end: %w", ctx.Err())
	}
	free := func() { <-b.redrive }
	if b.claim == nil || dryRun {
		return ctx, free, nil
	}
	held, unclaim, err := b.claim(ctx)
	if err != nil {
		free()
		return nil, nil, err
	}
	return held, func() { unclaim(); free() }, nil
}

// unread is an unreadable entry: from a newer program, or damaged.
type unread struct {
	id       string
	err      error
	stream   string // empty if unknown
	sequence sluice.Sequence
}

// newUnread reads the fields that every version has in the same place.
func newUnread(l state.Letter, err error) unread {
	u := unread{id: l.ID, err: unreadable(l.ID, err)}
	var s struct {
		ID       string   `json:"id"`
		Position position `json:"position"`
	}
	if json.Unmarshal(l.Data, &s) == nil && s.ID == l.ID {
		u.stream, u.sequence = s.Position.StreamARN, sluice.Sequence(s.Position.Sequence)
	}
	return u
}

// mayPrecede reports whether u may be of an earlier change of rec's item. Its item
// is unknown; its table and position are known if readable.
func (u *unread) mayPrecede(rec *sluice.Record) bool {
	switch {
	case strings.HasPrefix(u.id, gapPrefix):
		return false
	case u.stream == "":
		return true
	case tableOf(u.stream) != tableOf(rec.StreamARN):
		return false
	}
	e := heldEntry{stream: u.stream, sequence: u.sequence}
	return e.before(rec)
}

// mostNamed limits the unreadable entries that are named. After a downgrade all
// may be unreadable.
const mostNamed = 3

// behind makes e wait for unreadable entries that may precede it, and names the
// first few.
func (o *Outcome) behind(all []unread, e *Entry) {
	rec := e.Record()
	if !rec.Keys.Exists() { // such as a message, which waits for none
		return
	}
	var ids []string
	for i := range all {
		if all[i].mayPrecede(rec) {
			ids = append(ids, all[i].id)
		}
	}
	if len(ids) == 0 {
		return
	}
	named := ids[:min(len(ids), mostNamed)]
	names := strings.Join(named, ", ")
	if more := len(ids) - len(named); more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	o.Earlier = append(o.Earlier, named...)
	o.Note = names + " cannot be read, and may be of an earlier change of its item: read it with the program that wrote it, delete it, or run this one all the same by force"
}

// scanned is the entries at the start of RedriveAll.
type scanned struct {
	ids    map[string][]string // by stream, in order
	unread []unread            // ordered by id
}

// scan lists the entries. Its error is the store's.
func (b *Box) scan(ctx context.Context) (*scanned, error) {
	s := &scanned{ids: make(map[string][]string)}
	for l, err := range b.each(ctx, b.letters.ListLetters, page) {
		if err != nil {
			return nil, err
		}
		e, err := Parse(l.Data)
		if err != nil {
			s.unread = append(s.unread, newUnread(l, err))
			continue
		}
		s.ids[e.StreamARN] = append(s.ids[e.StreamARN], l.ID)
	}
	return s, nil
}

// errs returns the errors of the unreadable entries.
func (s *scanned) errs() (errs []error) {
	for _, u := range s.unread {
		errs = append(errs, u.err)
	}
	return errs
}

// inOrder returns the ids, with the oldest stream of each table first.
func (s *scanned) inOrder() (ids []string) {
	for _, stream := range slices.Sorted(maps.Keys(s.ids)) {
		ids = append(ids, s.ids[stream]...)
	}
	return ids
}

// waits returns the outcome of e if it must wait: for entries of its item that
// stay, or for unreadable entries that may precede it.
func (s *scanned) waits(stays parkedItems, e *Entry) Outcome {
	o := Outcome{ID: e.ID, Result: Waiting, Earlier: stays.before(e)}
	o.behind(s.unread, e)
	return o
}

// parkedItems is the entries that stay, by item, in order.
type parkedItems map[heldItem][]heldEntry

func (p parkedItems) add(e *Entry) {
	if rec := e.Record(); rec.Keys.Exists() { // else its item is unknown
		it := itemOf(rec)
		p[it] = append(p[it], heldEntry{id: e.ID, route: e.Route})
	}
}

// before returns the ids that e must wait for. An entry for all routes blocks, and
// waits for, the entries of every route.
func (p parkedItems) before(e *Entry) (ids []string) {
	for _, h := range p[itemOf(e.Record())] {
		if h.route == e.Route || h.route == "" || e.Route == "" {
			ids = append(ids, h.id)
		}
	}
	return ids
}
