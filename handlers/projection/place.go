package projection

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/internal/docrules"
	"github.com/sluicehq/sluice/item"
)

const (
	maxID    = 512 // bytes, limit of OpenSearch
	maxIndex = 255 // bytes, limit of OpenSearch

	// hashed is the prefix of hashed ids. An id with this prefix is hashed too,
	// so that it cannot equal the hash of another.
	hashed = "sha256:"
)

// place determines where the documents of a projection are.
type place struct {
	index, id, routing Template
	hash               bool // hash ids that are too long
}

// find returns the place of an item's document. buf is reusable memory.
func (p *place) find(buf []byte, from source) (ref document.Ref, _ []byte, err error) {
	buf, f := p.id.append(buf[:0], from)
	if f.path != "" {
		return ref, buf, fmt.Errorf("the id of the document: %w", f.err(p.id))
	}
	if p.hash && (len(buf) > maxID || bytes.HasPrefix(buf, []byte(hashed))) {
		sum := sha256.Sum256(buf)
		buf = hex.AppendEncode(append(buf[:0], hashed...), sum[:])
	}
	id := len(buf)
	switch {
	case id == 0:
		return ref, buf, fmt.Errorf("the id of the document: template %q: it is empty", p.id.source)
	case id > maxID:
		return ref, buf, fmt.Errorf("the id of the document: template %q: it has %d bytes, OpenSearch takes %d; Options.HashLongIDs writes a hash in its place", p.id.source, id, maxID)
	}
	if len(p.index.parts) > 0 {
		if buf, f = p.index.append(buf, from); f.path != "" {
			return ref, buf, fmt.Errorf("the index of the document: %w", f.err(p.index))
		}
	}
	index := len(buf)
	if buf, f = p.routing.append(buf, from); f.path != "" {
		return ref, buf, fmt.Errorf("the routing of the document: %w", f.err(p.routing))
	}
	all := string(buf) // one string for all three
	ref = document.Ref{Index: all[id:index], ID: all[:id], Routing: all[index:]}
	if len(p.index.parts) == 0 {
		ref.Index = p.index.tail
	} else if fault := madeFault(ref.Index); fault != "" { // fault omits the name, which may contain a key
		return ref, buf, fmt.Errorf("the index of the document: template %q: the name %s", p.index.source, fault)
	}
	return ref, buf, nil
}

// besides returns the path of an attribute outside of the item's keys that
// determines the place of its document; "" if none.
func (p *place) besides(keys item.Item) string {
	for _, t := range [...]*Template{&p.id, &p.index, &p.routing} {
		for i := range t.parts {
			if _, ok := keys.Lookup(t.parts[i].path); !ok {
				return t.parts[i].path
			}
		}
	}
	return ""
}

// indexFault describes why OpenSearch would refuse an index name in Options.
func indexFault(name string) string {
	switch {
	case name == "":
		return "is empty"
	case len(name) > maxIndex:
		return fmt.Sprintf("has %d bytes, OpenSearch takes %d", len(name), maxIndex)
	case name == "." || name == "..":
		return "is no name of an index"
	case strings.IndexByte("-_+", name[0]) >= 0:
		return "begins with '-', '_' or '+'"
	}
	for _, r := range name {
		switch {
		case strings.ContainsRune(`\/*?"<>| ,#:`, r):
			return fmt.Sprintf("has %q in it, which OpenSearch refuses", r)
		case unicode.ToLower(r) != r:
			return fmt.Sprintf("has %q in it, which is not lower case", r)
		}
	}
	return ""
}

// madeFault describes the mistake in an index name made from an item. Writers of
// items must not reach OpenSearch's own indices or the aliases of a reindex.
func madeFault(name string) string {
	if fault := indexFault(name); fault != "" {
		return fault
	}
	switch {
	case name[0] == '.':
		return "begins with '.', as those of OpenSearch's own indices do"
	case strings.HasSuffix(name, docrules.AlsoSuffix), strings.HasSuffix(name, docrules.DeletesSuffix):
		return fmt.Sprintf("ends in %q or %q, as the aliases of a reindex do", docrules.AlsoSuffix, docrules.DeletesSuffix)
	case len(name) > maxIndex-len(docrules.DeletesSuffix): // OpenSearch would refuse its aliases, and indices such as name-000001
		return fmt.Sprintf("has %d bytes; want %d at most", len(name), maxIndex-len(docrules.DeletesSuffix))
	}
	for _, r := range name {
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			return fmt.Sprintf("has %U in it, which cannot be shown", r)
		}
	}
	return ""
}

// indexNames counts the index names that a projection has made from items, so that
// writers of items cannot create indices without limit. A nil *indexNames admits
// all.
type indexNames struct {
	template string
	most     int

	mu   sync.Mutex
	seen map[string]struct{}
}

// admit returns an error if one of ops would exceed the limit of names.
func (n *indexNames) admit(ops []document.Op) error {
	if n == nil {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := range ops {
		if _, ok := n.seen[ops[i].Index]; ok {
			continue
		}
		if len(n.seen) >= n.most {
			return fmt.Errorf("the index of the document: template %q has made %d different names since the start of this process, and no others are allowed: if all of them are right, raise maxIndices, restart and redrive the record", n.template, n.most)
		}
		n.seen[strings.Clone(ops[i].Index)] = struct{}{} // copied, so that the id beside it is not kept
	}
	return nil
}

// permanent is the permanent failure of rec.
func permanent(rec *sluice.Record, err error) error {
	return sluice.Permanent(fmt.Errorf("projection: %s of table %s: %w", rec.EventName, rec.Table, err))
}
