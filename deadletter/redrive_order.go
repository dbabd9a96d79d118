package deadletter

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
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

// scanned is what is there when a redrive of all begins.
type scanned struct {
	ids        map[string][]string // by stream, in their order
	unreadable []string            // ids, in their order
	errs       []error             // of those
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
				s.unreadable = append(s.unreadable, l.ID)
				s.errs = append(s.errs, unreadable(l.ID, err))
				continue
			}
			s.ids[e.StreamARN] = append(s.ids[e.StreamARN], l.ID)
		}
	}
}

// inOrder returns the ids; of one table the oldest stream comes first.
func (s *scanned) inOrder() (ids []string) {
	for _, stream := range slices.Sorted(maps.Keys(s.ids)) {
		ids = append(ids, s.ids[stream]...)
	}
	return ids
}

// waits is the outcome of e when it has to wait: for entries of its item that
// stay, and for those that cannot be read and come before it, the first few of
// which it names. Nobody knows of which item these are.
func (s *scanned) waits(stays parkedItems, e *Entry) Outcome {
	o := Outcome{ID: e.ID, Result: Waiting, Earlier: stays.before(e)}
	if !e.Record().Keys.Exists() {
		return o
	}
	const most = 3 // that are named: after a step back to an older version it may be all
	n, _ := slices.BinarySearch(s.unreadable, e.ID)
	if n == 0 {
		return o
	}
	named := s.unreadable[:min(n, most)]
	names := strings.Join(named, ", ")
	if n > most {
		names += fmt.Sprintf(" and %d more", n-most)
	}
	o.Earlier = append(o.Earlier, named...)
	o.Note = names + " cannot be read, and may be of an earlier change of its item: read it with the program that wrote it, delete it, or run this one all the same by force"
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
