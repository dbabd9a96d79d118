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

// alone waits until nobody else redrives or purges, so that an item's entries
// stay in order.
func (b *Box) alone(ctx context.Context) (release func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case b.redrive <- struct{}{}:
		return func() { <-b.redrive }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for another redrive or purge to end: %w", ctx.Err())
	}
}

// unread is an entry that cannot be read: a newer program's, or a damaged one.
type unread struct {
	id       string
	err      error
	stream   string // empty when that cannot be told either
	sequence sluice.Sequence
}

// newUnread tells of l what every version says at the same place.
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

// mayPrecede reports whether u may be of an earlier change of rec's item. Nobody
// knows its item; a table and a position it has where they can be told.
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

// mostNamed is how many entries that cannot be read are named: after a step back
// to an older version it may be all.
const mostNamed = 3

// behind has e wait for those that cannot be read and may come before it, the
// first few of which it names.
func (o *Outcome) behind(all []unread, e *Entry) {
	rec := e.Record()
	if !rec.Keys.Exists() { // such as a message, which comes behind none
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

// scanned is what is there when a redrive of all begins.
type scanned struct {
	ids    map[string][]string // by stream, in their order
	unread []unread            // in the order of their ids
}

// scan notes which entries there are. Its error is the store's.
func (b *Box) scan(ctx context.Context) (*scanned, error) {
	s := &scanned{ids: make(map[string][]string)}
	for after := ""; ; {
		letters, err := b.letters.ListLetters(ctx, b.app, after, page)
		if err != nil {
			return nil, err
		}
		if len(letters) == 0 {
			return s, nil
		}
		for _, l := range letters {
			after = l.ID
			e, err := Parse(l.Data)
			if err != nil {
				s.unread = append(s.unread, newUnread(l, err))
				continue
			}
			s.ids[e.StreamARN] = append(s.ids[e.StreamARN], l.ID)
		}
	}
}

// errs says which entries cannot be read, and why.
func (s *scanned) errs() (errs []error) {
	for _, u := range s.unread {
		errs = append(errs, u.err)
	}
	return errs
}

// inOrder returns the ids; of one table the oldest stream comes first.
func (s *scanned) inOrder() (ids []string) {
	for _, stream := range slices.Sorted(maps.Keys(s.ids)) {
		ids = append(ids, s.ids[stream]...)
	}
	return ids
}

// waits is the outcome of e when it has to wait: for entries of its item that
// stay, and for those that cannot be read and may come before it.
func (s *scanned) waits(stays parkedItems, e *Entry) Outcome {
	o := Outcome{ID: e.ID, Result: Waiting, Earlier: stays.before(e)}
	o.behind(s.unread, e)
	return o
}

// parkedItems are the entries that stay, by item, in their order.
type parkedItems map[heldItem][]heldEntry

func (p parkedItems) add(e *Entry) {
	if rec := e.Record(); rec.Keys.Exists() { // else nobody knows which item it is
		it := itemOf(rec)
		p[it] = append(p[it], heldEntry{id: e.ID, route: e.Route})
	}
}

// before returns those that e has to wait for. An entry for all routes holds
// each of them, and waits for each.
func (p parkedItems) before(e *Entry) (ids []string) {
	for _, h := range p[itemOf(e.Record())] {
		if h.route == e.Route || h.route == "" || e.Route == "" {
			ids = append(ids, h.id)
		}
	}
	return ids
}
