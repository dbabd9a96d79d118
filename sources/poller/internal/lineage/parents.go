package lineage

import (
	"maps"
	"slices"
)

// A parent that no listing shows was usually trimmed. But listings can show children
// long before their parents, and reading the child first breaks the order of its
// items. So the poller asks the service for the parent by id before it begins the
// child.

// Verdict is the service's answer about a parent that no listing shows.
type Verdict uint8

const (
	Unanswered Verdict = iota // ask again
	Exists                    // the parent is read before its children
	Over                      // the parent is trimmed: the children may be read
	Lost                      // the parent is trimmed, and the children halt at the gap
)

// orphan reports whether n waits for an unknown parent.
func (f *Forest) orphan(n *node) bool {
	return n.phase == waiting && n.Parent != "" && f.nodes[n.Parent] == nil && f.blocked(n)
}

// UnlistedParents returns the parents to ask the service for.
func (f *Forest) UnlistedParents() []string {
	ids := make(map[string]bool)
	for _, n := range f.nodes {
		if f.orphan(n) && n.orphaned >= Confirmations {
			ids[n.Parent] = true
		}
	}
	return slices.Sorted(maps.Keys(ids))
}

// Answered takes the service's answer about a parent. It returns the children that
// halt because of the answer.
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
