package lineage

import (
	"maps"
	"slices"
)

// A parent that no listing shows was trimmed, as a rule; but listings can show
// children long before their parents, and a child that is read first breaks
// the order of its items. So before such a child is begun the service is asked
// for the parent by its id.

// Verdict is what the service says of a parent that no listing shows.
type Verdict uint8

const (
	Unanswered Verdict = iota // ask again
	Exists                    // to be read before its children
	Over                      // no more, and its children's turn has come
	Lost                      // no more, and a gap at which to halt
)

// orphan reports whether n waits for a parent of which nothing is known.
func (f *Forest) orphan(n *node) bool {
	return n.phase == waiting && n.Parent != "" && f.nodes[n.Parent] == nil && f.blocked(n)
}

// UnlistedParents returns the parents that the service is to be asked for.
func (f *Forest) UnlistedParents() []string {
	ids := make(map[string]bool)
	for _, n := range f.nodes {
		if f.orphan(n) && n.orphaned >= Confirmations {
			ids[n.Parent] = true
		}
	}
	return slices.Sorted(maps.Keys(ids))
}

// Answered takes what the service said of a parent. It returns the children
// that halt by that.
func (f *Forest) Answered(parent string, v Verdict) (halting []string) {
	if v == Exists {
		n := f.node(parent)
		n.Closed, n.unlisted = true, true // it has a child
		return nil
	}
	for _, n := range f.nodes {
		if n.Parent != parent || !f.orphan(n) {
			continue
		}
		switch v {
		case Over:
			n.parentOver = true
		case Lost:
			n.phase = halted
			halting = append(halting, n.ID)
		}
	}
	return halting
}
