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

// Options say where the documents of a kind of items are, and what is in them.
// Where no default is stated the field is required. Paths name an attribute
// (`name`) or one within maps (`address.city`), and there the one in every map
// of a list; a dot may also stand in a name. They are those of the item, whatever
// its fields are called in the document.
type Options struct {
	Index string // template of the index' name, or that of an alias
	ID    string // template of the document's id

	// MaxIndices is how many different names Handle makes from Index, counted in
	// memory since New (default 100). A record for another name fails for good and
	// writes nothing. A fixed Index has no limit.
	MaxIndices int

	// Routing is the template of the value whose hash picks the shard (default
	// "": the id).
	Routing string

	// HashLongIDs writes the SHA-256 of ids above OpenSearch's 512 bytes in
	// their place. Without it their records fail for good.
	HashLongIDs bool

	Version Version // ByAttribute, BySequence, ByFunc or Unversioned

	// Mark is the field in which a document says which change it shows (default
	// DefaultMark; BySequence alone has it). It is a [document.Mark]: map it as an
	// object with sequence as keyword and deleted as date.
	Mark string

	// Current reads the item that a record is about, consistently: the absent Item
	// when there is none. BySequence needs it for records that are redriven or
	// replayed, or that were made more than a day ago, for documents that a backfill
	// finds different, and with ForgetDeleted; Store.Current of sinks/dynamodb is one.
	// With it the other versions write no document for a redriven record whose item
	// is gone, or has no document there any more; ByAttribute and ByFunc tell whether
	// an item whose document is newer began anew, see Lost.
	Current func(ctx context.Context, rec *sluice.Record) (sluice.Item, error)

	// ForgetDeleted deletes the document of a deleted item BySequence, which
	// otherwise leaves a tombstone: a document of its mark and of the fields of
	// Tombstone. OpenSearch forgets deletions after index.gc_deletes, and with the
	// node: a record that comes again after that brings the document back.
	ForgetDeleted bool

	// UnfencedBackfill takes the records of a backfill although Version is
	// Unversioned: an item that changes while it is being read may then stay in
	// the state before that.
	UnfencedBackfill bool

	Include []string  // paths of what is written (default: all)
	Exclude []string  // paths of what is not, also within Include
	Rename  []Rename  // attributes that have another name in the document
	Flatten []Flatten // maps whose fields stand among those of the document
	First   []Field   // fields of the projection's own, before those of the item
	Last    []Field   // and after them

	// Tombstone are the fields of a document that takes the place of a deleted
	// one, for which [Constant]("deleted", true) will do (default: none; the
	// document is deleted, but see ForgetDeleted).
	Tombstone []Field

	// Only says which items have documents (default: all). It depends on the
	// item alone. One that it does not take any more loses its document with
	// the change that says so, which an option of its route could not see to: a
	// route that does not take the change leaves the document as it was. Its
	// error fails the record for good.
	Only func(it sluice.Item) (bool, error)

	// WriteUnchanged writes the document of an item, too, that was modified
	// without a change of its document.
	WriteUnchanged bool

	// Lost is called when the document of an item does not show a change because
	// the version of the change is not above the document's. BySequence loses none.
	Lost func(rec *sluice.Record, why Loss)

	// Dropped is called when an attribute is left out of a document because
	// another field has its name.
	Dropped func(table, field string)

	Metrics metrics.Meter // of changes and documents (default: none)
}

// Rename has the attribute at From written as To, where it stands. An attribute
// that is called To wins over it, and of several Renames to one name the first
// whose attribute is there.
type Rename struct {
	From string // a path
	To   string // a name, without the path
}

// Flatten has the fields of the map at Path written among those of the document,
// with Prefix before their names. What is no map stays as it is. A field of the
// document that is there without Flatten wins over them, and of several
// Flattens the first.
type Flatten struct {
	Path   string
	Prefix string
}

var markName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// DefaultMaxIndices bounds the names of indices that are made from items.
const DefaultMaxIndices = 100

// DefaultMark is the field of marks unless Options say otherwise.
const DefaultMark = "sluice"

func (o Options) validate() error {
	var errs []error
	bad := func(field string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", field, err))
		}
	}
	index, err := parseTemplate(o.Index)
	bad("Index", err)
	if err == nil && len(index.parts) == 0 {
		if fault := indexFault(index.tail); fault != "" {
			bad("Index", fmt.Errorf("%q %s", index.tail, fault))
		}
	}
	if o.MaxIndices < 0 {
		bad("MaxIndices", fmt.Errorf("%d: want 0 (%d) or above", o.MaxIndices, DefaultMaxIndices))
	}
	_, err = parseID(o.ID)
	bad("ID", err)
	_, err = parseTemplate(o.Routing)
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

// checkFields looks for names that are missing or occur twice.
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

// body makes what o, which is valid otherwise, says about documents.
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

// viewRemedy says what to do when an image is missing.
const viewRemedy = "set the table's StreamViewType to NEW_AND_OLD_IMAGES, and say router.NeedsBoth() where the route is registered, so that it is noticed at the start"
