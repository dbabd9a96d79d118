package deadletter

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/sluicehq/sluice"
)

// held knows which items have entries.
type held struct {
	mu     sync.RWMutex
	loaded bool
	items  map[heldItem][]heldEntry
	ids    map[string]heldItem
	unread map[string]unread // by id
}

// heldItem is an item of a table, in any of its streams.
type heldItem struct {
	table string // ARN
	keys  uint64 // hash
}

type heldEntry struct {
	id, route, stream string
	sequence          sluice.Sequence
}

// before reports whether the entry is of an earlier change than rec, of the same
// item. Streams of one table differ in their creation time, the end of the ARN.
// Sequence numbers order the changes of one stream.
func (e *heldEntry) before(rec *sluice.Record) bool {
	if e.stream != rec.StreamARN {
		return e.stream < rec.StreamARN
	}
	return e.sequence.Compare(rec.Sequence) < 0
}

// isLoaded reports whether the held items are loaded.
func (h *held) isLoaded() bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.loaded
}

// forget forgets all entries: the next load reads them.
func (h *held) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.loaded, h.items, h.ids, h.unread = false, nil, nil, nil
}

// setLoaded notes that all stored entries were added, except the given unreadable
// ones.
func (h *held) setLoaded(all []unread) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.unread = make(map[string]unread)
	for _, u := range all {
		h.unread[u.id] = u
	}
	h.loaded = true
}

func (h *held) add(id string, l label) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !l.keys.Exists() { // its item is unknown
		return
	}
	if _, ok := h.ids[id]; ok {
		return
	}
	if h.ids == nil {
		h.ids, h.items = make(map[string]heldItem), make(map[heldItem][]heldEntry)
	}
	it := heldItem{tableOf(l.stream), l.keys.Hash()}
	h.ids[id] = it
	h.items[it] = append(h.items[it], heldEntry{id, l.route, l.stream, l.sequence})
}

func (h *held) remove(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.unread, id)
	it, ok := h.ids[id]
	if !ok {
		return
	}
	delete(h.ids, id)
	rest := slices.DeleteFunc(h.items[it], func(e heldEntry) bool { return e.id == id })
	if len(rest) == 0 {
		delete(h.items, it)
	} else {
		h.items[it] = rest
	}
}

// replaced notes that this program wrote the entry id, so it is readable.
func (h *held) replaced(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.unread, id)
}

// unreadable returns the unreadable entries, ordered by id.
func (h *held) unreadable() (all []unread) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for _, id := range slices.Sorted(maps.Keys(h.unread)) {
		all = append(all, h.unread[id])
	}
	return all
}

// holds considers only entries before rec. A record that is read again after a
// restart is not held by its own entry.
func (h *held) holds(rec *sluice.Record, route string) bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if len(h.items) == 0 {
		return false
	}
	return slices.ContainsFunc(h.items[itemOf(rec)], func(e heldEntry) bool {
		return (e.route == route || e.route == "") && e.before(rec)
	})
}

// earlier returns the ids of entries for earlier changes of rec's item and the
// same route, in order. An entry for all routes comes behind those of every route.
func (h *held) earlier(rec *sluice.Record, route string) (ids []string) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if !rec.Keys.Exists() {
		return nil
	}
	var before []heldEntry
	for _, e := range h.items[itemOf(rec)] {
		if e.before(rec) {
			before = append(before, e)
		}
	}
	slices.SortFunc(before, func(a, b heldEntry) int {
		return cmp.Or(strings.Compare(a.stream, b.stream), strings.Compare(a.id, b.id))
	})
	for _, e := range slices.Backward(before) {
		if e.route == route || e.route == "" || route == "" {
			ids = append(ids, e.id)
		}
		if e.route == "" {
			route = ""
		}
	}
	slices.Reverse(ids)
	return ids
}

func itemOf(rec *sluice.Record) heldItem {
	return heldItem{tableOf(rec.StreamARN), rec.Keys.Hash()}
}

// tableOf returns the ARN of a stream's table.
func tableOf(streamARN string) string {
	table, _, _ := strings.Cut(streamARN, "/stream/")
	return table
}
