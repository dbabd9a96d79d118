package writer

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/examples/internal/kit"
	"github.com/sluicehq/sluice/item"
)

// Document is what an API writes and reads.
type Document struct {
	Type       string      // partition key, such as TYPE#Ed-Fi#3.3.1-b#School
	NaturalKey string      // such as NK#schoolId=122
	Info       sluice.Item // the document itself

	// Identity is the natural key under the kind of the document, such as
	// NK#educationOrganizationId=122. The id is its hash, or that of NaturalKey
	// if Identity is empty.
	Identity string

	// What it refers to, descriptors too. What is written down twice is one
	// reference, and one to itself is none. Not read back.
	References []Reference

	OwnerID, StudentID, EdOrgID        string // "" is unset
	SecurityStudentID, SecurityEdOrgID string

	Rev int64 // set by the writer: greater with each update

	was stored
}

// stored is the id that a document was read with. Its Identity is not read back.
type stored struct{ id, naturalKey string }

// Reference names another document.
type Reference struct {
	NaturalKey string // its hash is the id; of a descriptor NK# and its URI
	Type       string // its own, or what it is a kind of
}

// ID is the document's id.
func (d Document) ID() string {
	switch {
	case d.Identity != "":
		return ID(d.Identity)
	case d.was.id != "" && d.was.naturalKey == d.NaturalKey:
		return d.was.id
	}
	return ID(d.NaturalKey)
}

// Resources are the types of documents, by partition key. Of a type that is not
// there nothing needs to be known.
type Resources map[string]Resource

// Resource is what has to be known of a type.
type Resource struct {
	Referenced bool   // others may refer to it
	Supertype  string // partition key of what it is a kind of, under which others may refer to it, too
}

func (r Resources) isSupertype(typ string) bool {
	for _, resource := range r {
		if resource.Supertype == typ {
			return true
		}
	}
	return false
}

// siblings are the other kinds of what typ is a kind of.
func (r Resources) siblings(typ string) []string {
	super := r[typ].Supertype
	if super == "" {
		return nil
	}
	return slices.DeleteFunc(r.kinds(super), func(other string) bool { return other == typ })
}

// kinds are the types whose documents are of a supertype.
func (r Resources) kinds(super string) (types []string) {
	for typ, resource := range r {
		if resource.Supertype == super {
			types = append(types, typ)
		}
	}
	return types
}

// counter is the key of the count that a reference adds to.
func (r Resources) counter(to Reference) sluice.Item {
	if r.isSupertype(to.Type) {
		return key(to.Type, assignPrefix+ID(to.NaturalKey))
	}
	return key(to.Type, guardPrefix+ID(to.NaturalKey))
}

func (d Document) validate(r Resources) error {
	switch {
	case !strings.HasPrefix(d.Type, typePrefix):
		return invalid("Type is %q, want %s…", d.Type, typePrefix)
	case r.isSupertype(d.Type):
		return invalid("Type is %q, of which there are only kinds", d.Type)
	case !strings.HasPrefix(d.NaturalKey, keyPrefix):
		return invalid("NaturalKey is %q, want %s…", d.NaturalKey, keyPrefix)
	case (d.Identity != "") != (r[d.Type].Supertype != ""):
		return invalid("Identity is %q; want one for documents of a type with a supertype, and only for them", d.Identity)
	case d.Identity != "" && !strings.HasPrefix(d.Identity, keyPrefix):
		return invalid("Identity is %q, want %s…", d.Identity, keyPrefix)
	case !d.Info.Exists():
		return invalid("Info is absent, want the document")
	}
	for _, ref := range d.References {
		if !strings.HasPrefix(ref.Type, typePrefix) || !strings.HasPrefix(ref.NaturalKey, keyPrefix) {
			return invalid("a reference to %q of type %q, want %s… and %s…", ref.NaturalKey, ref.Type, keyPrefix, typePrefix)
		}
	}
	return nil
}

func invalid(format string, args ...any) error {
	return &InvalidError{fmt.Sprintf(format, args...)}
}

func (d Document) item() sluice.Item {
	attrs := []item.Attribute{
		item.String("pk", d.Type), item.String("sk", entityPrefix+d.ID()), item.String("naturalKey", d.NaturalKey),
	}
	for _, a := range d.owners() {
		if *a.value != "" {
			attrs = append(attrs, item.String(a.name, *a.value))
		}
	}
	return item.Of(append(attrs, item.Number("rev", strconv.FormatInt(d.Rev, 10)), item.Map("info", d.Info))...)
}

type owner struct {
	name  string
	value *string
}

func (d *Document) owners() []owner {
	return []owner{
		{"ownerId", &d.OwnerID}, {"studentId", &d.StudentID}, {"edOrgId", &d.EdOrgID},
		{"securityStudentId", &d.SecurityStudentID}, {"securityEdOrgId", &d.SecurityEdOrgID},
	}
}

// Read returns the document that an item holds, without Identity and References,
// which the item does not tell.
func Read(it sluice.Item) Document {
	d := Document{Type: kit.Text(it, "pk"), NaturalKey: kit.Text(it, "naturalKey")}
	d.was = stored{EntityID(it), d.NaturalKey}
	for _, a := range d.owners() {
		*a.value = kit.Text(it, a.name)
	}
	if v, ok := it.Lookup("rev"); ok {
		d.Rev, _ = v.Int64()
	}
	if v, ok := it.Lookup("info"); ok {
		d.Info = v.Map()
	}
	return d
}
