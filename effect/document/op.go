package document

import "fmt"

// Op is one write of a document. It is a value; who takes one does not change
// its Body, and reads it until the call returns at most.
type Op struct {
	Action Action
	Index  string // or an alias
	// IndexTemplate, unless "", is what Index was made from with values of an item.
	// Metrics and error texts show it in place of Index: an item's values must stand
	// in neither, and metrics would have a series for each.
	IndexTemplate string

	ID      string // 1 to 512 bytes
	Routing string // "" is by ID
	Fence   Fence
	Version int64  // 0 and above; only with a Fence
	Body    []byte // of Put: a JSON object, on one line or several

	// Of Exact. The Body has Sequence in its field MarkField, which is a [Mark].
	Sequence  string
	MarkField string
	// ForgetDeleted says that deletions leave no tombstones: what is refused where
	// no document is, was deleted later.
	ForgetDeleted bool

	Revision Revision // of Unchanged

	// Refused, unless nil, is called before the write returns when its Fence
	// refused it: once for each index that refused it. It must be fast and must not
	// block.
	Refused func(Refusal) `json:"-"`
}

// Refusal says why a Fence refused a write.
type Refusal struct {
	// Version is that of what is there or was deleted there; 0 when the service does
	// not say. That of an Exact write stands in Doc.
	Version int64
	// Doc is the document that refused an Exact write, as it was read after the
	// refusal.
	Doc Doc
	// Deleted says that no document refused an Exact write: the index remembers a
	// deletion with a greater version.
	Deleted bool
}

// Revision names one state of a document among all its states. The zero Revision
// is none.
type Revision struct {
	SeqNo       int64
	PrimaryTerm int64 // 1 and above
}

// Action says what an Op does.
type Action uint8

const (
	Put    Action = iota + 1 // writes a document whole, in the place of the one with its ID
	Delete                   // deletes one; that there is none is no error
)

// String returns the name that the bulk API has for it.
func (a Action) String() string {
	switch a {
	case Put:
		return "index"
	case Delete:
		return "delete"
	}
	return fmt.Sprintf("Action(%d)", a)
}

// Fence says which writes are refused because what is there is newer. A write
// that is refused so has succeeded: its effect is there, or a later one.
type Fence uint8

const (
	// NoFence refuses none: the last writer wins.
	NoFence Fence = iota
	// Newer takes what has a greater Version than what is there, or was deleted
	// there not longer than index.gc_deletes ago.
	Newer
	// NewerOrEqual takes an equal Version, too: what is there is written again.
	NewerOrEqual
	// Exact takes what has a greater Sequence than what is there. Version must be
	// such that a greater Sequence never has a smaller one, and its last 6 bits
	// are 0, but in the least of all: it settles most cases with one request. Where it does not, the two
	// Sequences are compared. What is there without a Sequence is older.
	Exact
	// Unchanged takes it if what is there is still at Revision.
	Unchanged
)

// String returns the name that the bulk API has for it, as version_type, and
// words of its own for Exact and Unchanged, for which it has none.
func (f Fence) String() string {
	switch f {
	case NoFence:
		return "internal"
	case Newer:
		return "external"
	case NewerOrEqual:
		return "external_gte"
	case Exact:
		return "exact"
	case Unchanged:
		return "unchanged"
	}
	return fmt.Sprintf("Fence(%d)", f)
}

// Ref names a document.
type Ref struct {
	Index   string
	ID      string
	Routing string // "" is by ID
}

// Ref returns the document that is written.
func (o Op) Ref() Ref { return Ref{o.Index, o.ID, o.Routing} }

// Doc is a document as it was found, or that it was not.
type Doc struct {
	Ref
	Found    bool
	Version  int64
	Revision Revision
	Source   []byte // JSON
}
