package projection

import (
	"bytes"
	"time"

	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/item"
)

// body is the compiled options of a projection's documents. It does not change.
type body struct {
	root     *node
	flatten  []Flatten
	flats    []*node  // of the maps to flatten
	prefixes [][]byte // of flatten, escaped for a JSON string
	first    []Field
	last     []Field
	reserved names
}

// writer writes one document at a time. It is reused.
type writer struct {
	*body
	out     []byte
	stash   []item.Value // renamed values of the open maps
	taken   []bool       // whether the targets of renames are taken
	flat    []item.Value // by the index of Options.Flatten
	seen    seen         // fields of the document, if a later field may have the same name
	count   bool         // count dropped fields
	dropped []string

	// like is another document. At the first difference, writing stops.
	like   []byte
	same   int // bytes of out that equal like
	differ bool
}

// plain writes values. It sorts sets, so that equal items make equal documents.
var plain = item.JSON{SortedSets: true}

// write writes the document of an item to out.
func (w *writer) write(from source) error {
	w.out = append(w.out[:0], '{')
	w.stash, w.taken, w.dropped = w.stash[:0], w.taken[:0], w.dropped[:0]
	w.same, w.differ = 0, false
	if len(w.flatten) > 0 {
		w.flat = append(w.flat[:0], make([]item.Value, len(w.flatten))...)
		w.seen.reset()
	}
	if err := w.fields(w.first, from); err != nil {
		return err
	}
	w.members(w.root, from.image, level{top: true})
	w.flattened()
	if err := w.fields(w.last, from); err != nil {
		return err
	}
	w.out = append(w.out, '}')
	w.compare()
	return nil
}

// mark adds the mark of an Exact write to the finished document. Comparisons of
// documents ignore marks.
func (w *writer) mark(op document.Op, deleted time.Time) {
	if op.Fence != document.Exact {
		return
	}
	w.out = w.out[:len(w.out)-1]
	if w.out[len(w.out)-1] != '{' {
		w.out = append(w.out, ',')
	}
	w.out = append(item.AppendString(w.out, op.MarkField), `:{"sequence":"`...)
	w.out = append(append(w.out, op.Sequence...), '"')
	if !deleted.IsZero() {
		w.out = append(w.out, `,"deleted":"`...)
		w.out = append(deleted.UTC().AppendFormat(w.out, time.RFC3339), '"')
	}
	w.out = append(w.out, "}}"...)
}

// fields writes the projection's own fields.
func (w *writer) fields(fields []Field, from source) error {
	for i := range fields {
		if w.differ {
			return nil
		}
		var err error
		if w.out, err = fields[i].append(w.out, from); err != nil {
			return err
		}
		w.compare()
	}
	return nil
}

// compare compares the text since its last call with like.
func (w *writer) compare() {
	if w.like == nil || w.differ {
		return
	}
	n := len(w.out)
	w.differ = n > len(w.like) || !bytes.Equal(w.out[w.same:n], w.like[w.same:n])
	w.same = n
}

// level is the place of a map's attributes in the document.
type level struct {
	top    bool   // among the fields of the document itself
	prefix string // of the field names
	quoted []byte // the prefix, escaped for a JSON string
	list   bool   // below an element of a list
}

// members writes the attributes of a map, except those to be flattened, which
// follow later.
func (w *writer) members(n *node, it item.Item, at level) {
	stash, taken := len(w.stash), len(w.taken)
	for range n.renames {
		w.stash = append(w.stash, item.Value{})
	}
	for range n.targets {
		w.taken = append(w.taken, false)
	}
	for a := it.Walk(); a.Next(); {
		name, kind := a.Name(), a.Kind()
		text := name.Text()
		i := n.names.find(text)
		if i < 0 {
			if n.all && w.begin(at, name, text) {
				w.out = a.AppendJSON(w.out, plain)
				if !w.goOn(at) {
					return
				}
			}
			continue
		}
		k := &n.kids[i]
		switch {
		case !k.takes(kind):
		case k.flatten >= 0 && !at.list && kind == item.M && w.flat[k.flatten].Kind() == item.Invalid:
			w.flat[k.flatten] = a.Value()
		case k.rename >= 0:
			w.stash[stash+k.rename] = a.Value()
		default:
			if k.target >= 0 {
				w.taken[taken+k.target] = true
			}
			if w.begin(at, name, text) {
				w.value(k, a.Value(), at.list)
				if !w.goOn(at) {
					return
				}
			}
		}
	}
	for i := range n.renames {
		r, v := &n.renames[i], w.stash[stash+i]
		switch {
		case v.Kind() == item.Invalid:
		case w.taken[taken+r.target]:
			w.drop(at, r.text)
		default:
			w.taken[taken+r.target] = true
			if w.begin(at, r.quoted, r.text) {
				w.value(&n.kids[r.kid], v, at.list)
				if !w.goOn(at) {
					return
				}
			}
		}
	}
	w.stash, w.taken = w.stash[:stash], w.taken[:taken]
}

// flattened writes the fields of the flattened maps in the order of the options. A
// map found inside another comes after it.
func (w *writer) flattened() {
	for again := true; again; {
		again = false
		for i := range w.flatten {
			v := w.flat[i]
			if v.Kind() != item.M || w.differ {
				continue
			}
			w.flat[i] = item.Value{}
			n := w.flats[i]
			w.members(n, v.Map(), level{top: true, prefix: w.flatten[i].Prefix, quoted: w.prefixes[i]})
			again = true
		}
	}
}

// begin writes the name of a field, unless the document already has that name.
func (w *writer) begin(at level, quoted, text []byte) bool {
	if at.top {
		if w.isReserved(at.prefix, text) || len(w.flatten) > 0 && !w.seen.add(at.prefix, text) {
			w.drop(at, text)
			return false
		}
	}
	if w.out[len(w.out)-1] != '{' {
		w.out = append(w.out, ',')
	}
	if len(at.quoted) > 0 {
		w.out = append(append(append(w.out, '"'), at.quoted...), quoted[1:]...)
	} else {
		w.out = append(w.out, quoted...)
	}
	w.out = append(w.out, ':')
	return true
}

// goOn reports whether the caller needs more fields.
func (w *writer) goOn(at level) bool {
	if !at.top || w.like == nil {
		return true
	}
	w.compare()
	return !w.differ
}

// isReserved reports whether one of the projection's own fields has the name.
func (w *writer) isReserved(prefix string, text []byte) bool {
	if prefix == "" {
		return w.reserved.find(text) >= 0
	}
	var buf [64]byte
	return w.reserved.find(append(append(buf[:0], prefix...), text...)) >= 0
}

// value writes the part of a value that k selects.
func (w *writer) value(k *kid, v item.Value, list bool) {
	if k.node == nil {
		w.out = v.AppendJSON(w.out, plain)
		return
	}
	switch v.Kind() {
	case item.M:
		w.out = append(w.out, '{')
		w.members(k.node, v.Map(), level{list: list})
		w.out = append(w.out, '}')
	case item.L:
		w.out = append(w.out, '[')
		for e := range v.List() {
			if !k.takes(e.Kind()) {
				continue
			}
			if w.out[len(w.out)-1] != '[' {
				w.out = append(w.out, ',')
			}
			w.value(k, e, true)
		}
		w.out = append(w.out, ']')
	default:
		w.out = v.AppendJSON(w.out, plain)
	}
}

// drop notes that another field replaced a field.
func (w *writer) drop(at level, text []byte) {
	if w.count {
		w.dropped = append(w.dropped, at.prefix+string(text))
	}
}
