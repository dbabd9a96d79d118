package document

import "fmt"

// Op is one write of a document. It is a value. Its receiver does not change Body,
// and reads Body only until the call returns.
type Op struct {
	Action Action
	Index  string // or an alias
	// IndexTemplate, unless "", is the template of an Index made with values of
	// an item. Metrics and error texts show it instead of Index. They must not
	// contain an item's values, and metrics would have a series for each.
	IndexTemplate string

	ID      string // 1 to 512 bytes
	Routing string // "" routes by ID
	Fence   Fence
	Version int64  // 0 or greater; only with a Fence
	Body    []byte // of Put: a JSON object on one or more lines

	// For Exact. Body has Sequence in its field MarkField, which is a [Mark].
	Sequence  string
	MarkField string
	// ForgetDeleted says that deletions leave no tombstones. If a write is
	// refused and no document exists, it was deleted later.
	ForgetDeleted bool

	Revision Revision // for Unchanged

	// Refused, unless nil, is called before the write returns, once for each
	// index whose Fence refused it. It must be fast and must not block.
	Refused func(Refusal) `json:"-"`
}

// Refusal says why a Fence refused a write.
type Refusal struct {
	// Version is the version of the document or its deletion; 0 if the service
	// does not report it. For an Exact write see Doc.
	Version int64
	// Doc is the document that refused an Exact write, read after the refusal.
	Doc Doc
	// Deleted says that no document refused an Exact write, but a remembered
	// deletion with a greater version.
	Deleted bool
}

// Revision identifies one state of a document. The zero Revision is none.
type Revision struct {
	SeqNo       int64
	PrimaryTerm int64 // 1 or greater
}

// Action is the kind of an Op.
type Action uint8

const (
	Put    Action = iota + 1 // writes a whole document; replaces one with the same ID
	Delete                   // deletes a document; a missing one is not an error
)

// String returns the name in the bulk API.
func (a Action) String() string {
	switch a {
	case Put:
		return "index"
	case Delete:
		return "delete"
	}
	return fmt.Sprintf("Action(%d)", a)
}

// Fence says which writes are refused because the index has a newer state. A
// refused write counts as successful: its effect, or a later one, is in the index.
type Fence uint8

const (
	// NoFence refuses no write: the last writer wins.
	NoFence Fence = iota
	// Newer accepts a write with a greater Version than the document, or than a
	// deletion within the last index.gc_deletes.
	Newer
	// NewerOrEqual also accepts an equal Version: it rewrites the document.
	NewerOrEqual
	// Exact accepts a write with a greater Sequence than the document. A
	// greater Sequence must never have a smaller Version. The last 6 bits of
	// Version must be 0, except in the least Version. Then one request usually
	// decides. Otherwise the two Sequences are compared. A document without a
	// Sequence is older.
	Exact
	// Unchanged accepts a write if the document is still at Revision.
	Unchanged
)

// String returns the version_type of the bulk API. Exact and Unchanged have names
// of their own, because the API has none.
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

// Ref identifies a document.
type Ref struct {
	Index   string
	ID      string
	Routing string // "" routes by ID
}

// Ref returns the reference of the written document.
func (o Op) Ref() Ref { return Ref{o.Index, o.ID, o.Routing} }

// Doc is the result of reading a document, found or not.
type Doc struct {
	Ref
	Found    bool
	Version  int64
	Revision Revision
	Source   []byte // JSON
}
