package projection

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/metrics"
)

// Options say where the documents of a kind of items are, and what they contain. A
// field without a stated default is required. A path names an attribute (`name`),
// one in maps (`address.city`), or the one in every map of a list. A name may
// contain a dot. Paths name attributes of the item, not fields of the document.
type Options struct {
	Index string // template of the name of an index or alias
	ID    string // template of the document's id

	// MaxIndices limits the different names that Handle makes from Index,
	// counted in memory since New (default 100). A record for a further name
	// fails permanently and writes nothing. A fixed Index has no limit.
	MaxIndices int

	// Routing is the template of the value whose hash selects the OpenSearch
	// shard (default "": the id).
	Routing string

	// HashLongIDs replaces ids above OpenSearch's 512 bytes by their SHA-256.
	// Without it their records fail permanently.
	HashLongIDs bool

	Version Version // ByAttribute, BySequence, ByFunc or Unversioned

	// Mark is the field of a document with its change, for BySequence only
	// (default DefaultMark). It is a [document.Mark]: map it as an object with
	// sequence as keyword and deleted as date.
	Mark string

	// Current reads the current item of a record consistently: the absent Item
	// if it does not exist. Store.Current of sinks/dynamodb implements it.
	// BySequence needs it with ForgetDeleted, and for these records and
	// documents: redriven or replayed records, records more than a day old, and
	// documents that differ from a backfill. With Current the other versions
	// write no document for a redriven record whose item is gone or has no
	// document there. ByAttribute and ByFunc use it to detect a counter that
	// began anew; see Lost.
	Current func(ctx context.Context, rec *sluice.Record) (sluice.Item, error)

	// ForgetDeleted makes BySequence delete the document of a deleted item.
	// Otherwise it leaves a tombstone: a document with its mark and the fields
	// of Tombstone. OpenSearch forgets deletions after index.gc_deletes, and
	// when a node restarts: a record that comes again later restores the
	// document.
	ForgetDeleted bool

	// UnfencedBackfill accepts backfill records although Version is
	// Unversioned. An item that changes during its read may then keep the older
	// state.
	UnfencedBackfill bool

	Include []string  // paths to write (default: all)
	Exclude []string  // paths not to write, also within Include
	Rename  []Rename  // attributes with another name in the document
	Flatten []Flatten // maps whose fields become fields of the document
	First   []Field   // the projection's own fields, before those of the item
	Last    []Field   // and after them

	// Tombstone is the fields of a document that replaces a deleted one, such
	// as [Constant]("deleted", true) (default: none; the document is deleted,
	// but see ForgetDeleted).
	Tombstone []Field

	// Only selects the items with documents (default: all). It must depend only
	// on the item. If a change makes Only refuse the item, its document is
	// deleted. An option of the route cannot do that: a route that refuses the
	// change leaves the document. An error fails the record permanently.
	Only func(it sluice.Item) (bool, error)

	// WriteUnchanged also writes documents that a modification did not change.
	WriteUnchanged bool

	// Lost is called when a document does not show a change because the
	// change's version is not above the document's. BySequence loses no change.
	Lost func(rec *sluice.Record, why Loss)

	// Dropped is called when a document lacks an attribute because another
	// field has its name.
	Dropped func(table, field string)

	Metrics metrics.Meter // of changes and documents (default: none)
}

// Rename writes the attribute at From as To, in the same map. An attribute named
// To wins over it. Of several Renames to one name, the first whose attribute
// exists wins.
type Rename struct {
	From string // a path
	To   string // a name, not a path
}

// Flatten writes the fields of the map at Path among those of the document, with
// Prefix before their names. A value that is not a map stays as it is. A field of
// the document without Flatten wins over them; of several Flattens the first wins.
type Flatten struct {
	Path   string
	Prefix string
}

var markName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// defaultMaxIndices limits the index names made from items.
const defaultMaxIndices = 100

// DefaultMark is the default field of marks.
const DefaultMark = "sluice"

func (o Options) validate() error {
	var errs []error
	bad := func(field string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", field, err))
		}
	}
	index, err := ParseTemplate(o.Index)
	bad("Index", err)
	if err == nil && len(index.parts) == 0 {
		if fault := indexFault(index.tail); fault != "" {
			bad("Index", fmt.Errorf("%q %s", index.tail, fault))
		}
	}
	if o.MaxIndices < 0 {
		bad("MaxIndices", fmt.Errorf("%d: want 0 (%d) or above", o.MaxIndices, defaultMaxIndices))
	}
	_, err = parseID(o.ID)
	bad("ID", err)
	_, err = ParseTemplate(o.Routing)
	bad("Routing", err)
	bad("Version", o.Version.validate())
	for i, path := range o.Include {
		bad(fmt.Sprintf("Include[%d]", i), checkPath(path))
	}
	for i, path := range o.Exclude {
		bad(fmt.Sprintf("Exclude[%d]", i), checkPath(path))
	}
	own := append(slices.Clone(o.First), o.Last...)
	if o.Version.kind == bySequence {
		if !markName.MatchString(o.Mark) {
			bad("Mark", fmt.Errorf("%q: want a name of letters, digits, '_' and '-'", o.Mark))
		}
		for _, f := range slices.Concat(own, o.Tombstone) {
			if f.name == o.Mark {
				bad("Mark", fmt.Errorf("a field of First, Last or Tombstone is called %q, too", o.Mark))
			}
		}
		if o.ForgetDeleted && len(o.Tombstone) > 0 {
			bad("ForgetDeleted", errors.New("documents cannot be deleted and leave a Tombstone"))
		}
	}
	bad("First and Last", checkFields(own))
	bad("Tombstone", checkFields(o.Tombstone))
	for i, r := range o.Rename {
		bad(fmt.Sprintf("Rename[%d].From", i), checkPath(r.From))
		if r.To == "" {
			bad(fmt.Sprintf("Rename[%d].To", i), errors.New("it is missing"))
		}
		if slices.ContainsFunc(o.Rename[:i], func(other Rename) bool { return other.From == r.From }) {
			bad(fmt.Sprintf("Rename[%d].From", i), fmt.Errorf("%q is renamed twice", r.From))
		}
	}
	for i, f := range o.Flatten {
		bad(fmt.Sprintf("Flatten[%d].Path", i), checkPath(f.Path))
		if slices.ContainsFunc(o.Flatten[:i], func(other Flatten) bool { return other.Path == f.Path }) {
			bad(fmt.Sprintf("Flatten[%d].Path", i), fmt.Errorf("%q is flattened twice", f.Path))
		}
		if slices.ContainsFunc(o.Rename, func(r Rename) bool { return r.From == f.Path }) {
			bad(fmt.Sprintf("Flatten[%d].Path", i), fmt.Errorf("%q is renamed, too", f.Path))
		}
	}
	return errors.Join(errs...)
}

func (v Version) validate() error {
	switch {
	case v.kind == noVersion:
		return errors.New("it is missing; want ByAttribute, BySequence, ByFunc or Unversioned")
	case v.kind == byAttribute && v.path == "":
		return errors.New("ByAttribute names no attribute")
	case v.unit != 0 && unitNames[v.unit] == "":
		return fmt.Errorf("ByEpoch has the unit %v, want %v, %v or %v", v.unit, time.Second, time.Millisecond, time.Microsecond)
	case v.counter != "" && v.kind != byAttribute:
		return fmt.Errorf("%v.Then: want ByAttribute or ByEpoch before it", v)
	case v.kind == byFunc && v.f == nil:
		return errors.New("ByFunc has no function")
	}
	return nil
}

// checkFields looks for missing and duplicate names.
func checkFields(fields []Field) error {
	var errs []error
	for i, f := range fields {
		switch {
		case f.value == nil:
			errs = append(errs, errors.New("the zero Field; want Constant, Copy, Text or Computed"))
		case f.name == "":
			errs = append(errs, errors.New("a field has no name"))
		case f.err != nil:
			errs = append(errs, fmt.Errorf("field %q: %w", f.name, f.err))
		case slices.ContainsFunc(fields[:i], func(other Field) bool { return other.name == f.name }):
			errs = append(errs, fmt.Errorf("two fields are called %q", f.name))
		}
	}
	return errors.Join(errs...)
}

// body compiles the part of valid options that concerns documents.
func (o Options) body() (*body, error) {
	b := &body{flatten: o.Flatten, first: o.First, last: o.Last}
	var rules []rule
	for _, path := range o.Include {
		rules = append(rules, rule{kind: include, path: path})
	}
	for _, path := range o.Exclude {
		rules = append(rules, rule{kind: exclude, path: path})
	}
	for i, r := range o.Rename {
		rules = append(rules, rule{kind: rename, path: r.From, index: i, to: r.To})
	}
	for i, f := range o.Flatten {
		rules = append(rules, rule{kind: flatten, path: f.Path, index: i})
		quoted := item.AppendString(nil, f.Prefix)
		b.prefixes = append(b.prefixes, quoted[1:len(quoted)-1])
	}
	c := compiler{flats: make([]*node, len(o.Flatten)), renames: make([]bool, len(o.Rename))}
	b.root, b.flats = c.compile(rules, len(o.Include) == 0), c.flats
	for _, f := range slices.Concat(o.First, o.Last) {
		b.reserved.add(f.name)
	}
	if o.Version.kind == bySequence {
		b.reserved.add(o.Mark)
	}
	var errs []error
	for i, n := range c.flats {
		if n == nil {
			errs = append(errs, fmt.Errorf("Flatten[%d].Path: %q is excluded, or not included", i, o.Flatten[i].Path))
		}
	}
	for i, ok := range c.renames {
		if !ok {
			errs = append(errs, fmt.Errorf("Rename[%d].From: %q is excluded, or not included", i, o.Rename[i].From))
		}
	}
	for _, r := range b.root.renames {
		if b.reserved.find(r.text) >= 0 {
			errs = append(errs, fmt.Errorf("Rename: a field of First or Last, or the Mark, is called %q, too", r.text))
		}
	}
	return b, errors.Join(errs...)
}

// viewRemedy is advice for a missing image.
const viewRemedy = "set the table's StreamViewType to NEW_AND_OLD_IMAGES, and say router.NeedsBoth() where the route is registered, so that it is noticed at the start"
