package projection

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sluicehq/sluice/item"
)

// node selects the written attributes of one map: the item itself, or the value at
// a path. It passes through lists.
type node struct {
	all     bool // unnamed attributes are written
	names   names
	kids    []kid // one per name
	renames []renamed
	targets int // distinct names among renames
}

// kid is one attribute of a map.
type kid struct {
	drop    bool
	all     bool  // the value is written, whatever its type
	node    *node // for maps in the value; nil: write them whole
	rename  int   // index in the parent's renames, or -1
	target  int   // of a rename to this name, or -1
	flatten int   // index in Options.Flatten, or -1
}

// renamed is an attribute written under another name.
type renamed struct {
	kid    int
	quoted []byte // the other name
	text   []byte
	target int
}

// rule is one option about a path. A dot in a path may belong to a name, so a rule
// is applied in every way to split it.
type rule struct {
	kind  ruleKind
	path  string // the rest of the path
	index int    // of the option
	to    string
}

type ruleKind uint8

const (
	include ruleKind = iota
	exclude
	rename
	flatten
)

// maxPath limits the dots of a path; each doubles the ways to split it.
const maxPath = 10

func checkPath(path string) error {
	switch {
	case path == "":
		return errors.New("no attribute is named")
	case strings.Count(path, ".") > maxPath:
		return fmt.Errorf("%q has more than %d dots", path, maxPath)
	case strings.HasPrefix(path, ".") || strings.HasSuffix(path, ".") || strings.Contains(path, ".."):
		return fmt.Errorf("%q has a dot that separates nothing", path)
	}
	return nil
}

// compiler compiles rules to nodes, and notes which rules have an effect.
type compiler struct {
	flats   []*node // of the maps of Options.Flatten
	renames []bool  // of Options.Rename
}

// compile returns the node of a map for its rules. all: unnamed attributes are
// written.
func (c *compiler) compile(rules []rule, all bool) *node {
	n := &node{all: all}
	type here struct{ last, deeper []rule }
	var at []here
	for _, r := range rules {
		for i := range len(r.path) + 1 {
			if i < len(r.path) && r.path[i] != '.' {
				continue
			}
			k := n.names.add(r.path[:i])
			if k == len(at) {
				at = append(at, here{})
			}
			if i == len(r.path) {
				at[k].last = append(at[k].last, r)
			} else {
				rest := r
				rest.path = r.path[i+1:]
				at[k].deeper = append(at[k].deeper, rest)
			}
		}
	}
	for _, h := range at {
		k := kid{all: all, rename: -1, target: -1, flatten: -1}
		for _, r := range h.last {
			switch r.kind {
			case include:
				k.all = true
			case exclude:
				k.drop = true
			case rename:
				k.rename = r.index
			case flatten:
				k.flatten = r.index
			}
		}
		if !k.all && !slices.ContainsFunc(h.deeper, func(r rule) bool { return r.kind == include }) {
			k.drop = true // no part of it was selected
		}
		if len(h.deeper) > 0 && !k.drop {
			k.node = c.compile(h.deeper, k.all)
		}
		if k.flatten >= 0 && !k.drop {
			c.flats[k.flatten] = cmp.Or(k.node, &node{all: true})
		}
		if k.rename >= 0 && !k.drop {
			c.renames[k.rename] = true
		}
		n.kids = append(n.kids, k)
	}
	n.addRenames(rules)
	return n
}

// addRenames adds renames in the order of the options.
func (n *node) addRenames(rules []rule) {
	type of struct {
		rule
		kid int
	}
	var all []of
	for i, k := range n.kids {
		if k.rename >= 0 && !k.drop {
			for _, r := range rules {
				if r.kind == rename && r.index == k.rename {
					all = append(all, of{r, i})
				}
			}
		}
		n.kids[i].rename = -1
	}
	slices.SortFunc(all, func(a, b of) int { return a.index - b.index })
	var targets []string
	for i, r := range all {
		t := slices.Index(targets, r.to)
		if t < 0 {
			t = len(targets)
			targets = append(targets, r.to)
		}
		n.kids[r.kid].rename = i
		n.renames = append(n.renames, renamed{r.kid, item.AppendString(nil, r.to), []byte(r.to), t})
	}
	for t, to := range targets {
		i := n.names.add(to)
		if i == len(n.kids) {
			n.kids = append(n.kids, kid{drop: !n.all, all: n.all, rename: -1, flatten: -1})
		}
		n.kids[i].target = t
	}
	n.targets = len(targets)
}

// takes reports whether a value of kind is written.
func (k *kid) takes(kind item.Kind) bool {
	return !k.drop && (k.all || kind == item.M || kind == item.L)
}

// names is a set of names. It is fast for a few and acceptable for many.
type names struct {
	list    []string
	lengths uint64 // one bit per length in use; the last is for all longer names
	at      map[string]int
}

const manyNames = 12

// add returns the index of name, and adds it if missing.
func (n *names) add(name string) int {
	if i := slices.Index(n.list, name); i >= 0 {
		return i
	}
	if n.at == nil {
		n.at = make(map[string]int)
	}
	n.at[name] = len(n.list)
	n.list = append(n.list, name)
	n.lengths |= 1 << min(len(name), 63)
	return len(n.list) - 1
}

// find returns the index of name, or -1.
func (n *names) find(name []byte) int {
	if n.lengths>>min(len(name), 63)&1 == 0 {
		return -1
	}
	if len(n.list) > manyNames {
		if i, ok := n.at[string(name)]; ok {
			return i
		}
		return -1
	}
	for i, s := range n.list {
		if s == string(name) {
			return i
		}
	}
	return -1
}
