package projection

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/document"
	"github.com/sluicehq/sluice/item"
)

const (
	maxID    = 512 // bytes, of OpenSearch
	maxIndex = 255 // bytes, of OpenSearch

	// hashed begins the ids that are hashes. An id that begins so by itself is
	// hashed, too, so that none can pass for the hash of another.
	hashed = "sha256:"
)

// place is where the documents of a projection are.
type place struct {
	index, id, routing template
	hash               bool // ids that are too long
}

// find returns where the document of an item is. buf is memory for it.
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
	all := string(buf) // one string for the three
	ref = document.Ref{Index: all[id:index], ID: all[:id], Routing: all[index:]}
	if len(p.index.parts) == 0 {
		ref.Index = p.index.tail
	} else if fault := indexFault(ref.Index); fault != "" {
		return ref, buf, fmt.Errorf("the index of the document: template %q: %q %s", p.index.source, ref.Index, fault)
	}
	return ref, buf, nil
}

// besides returns the path of an attribute besides the item's keys that has a
// say in where its document is; "" when there is none.
func (p *place) besides(keys item.Item) string {
	for _, t := range [...]*template{&p.id, &p.index, &p.routing} {
		for i := range t.parts {
			if _, ok := keys.Lookup(t.parts[i].path); !ok {
				return t.parts[i].path
			}
		}
	}
	return ""
}

// indexFault says what OpenSearch would refuse in the name of an index.
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

// permanent is the failure of rec, which no other try can mend.
func permanent(rec *sluice.Record, err error) error {
	return sluice.Permanent(fmt.Errorf("projection: %s of table %s: %w", rec.EventName, rec.Table, err))
}
