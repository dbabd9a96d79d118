package projection

import (
	"fmt"
	"math"
	"strconv"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/document"
	"github.com/sluicehq/sluice/item"
)

// Version says which of two states of an item is the later one; the package
// comment compares its kinds.
type Version struct {
	kind        versionKind
	path        string
	f           func(sluice.Item) (int64, error)
	generations *generations // of bySequence
}

type versionKind uint8

const (
	noVersion versionKind = iota
	byAttribute
	bySequence
	byFunc
	unversioned
)

// ByAttribute takes the version from a number that the item's writers raise with
// every write: an integer of 0 or more. A deletion's is that of the old image
// plus 1. An item that is made again goes on above that, at its last number plus
// 2: at plus 1 its document is taken for the deleted one's, and is not written.
func ByAttribute(path string) Version { return Version{kind: byAttribute, path: path} }

// BySequence goes by the record's stream and sequence number, which stand in the
// document ([Options.Mark]). What a backfill reads comes before all records. What
// is redriven or replayed takes the item as it is now ([Options.Current]).
func BySequence() Version { return Version{kind: bySequence, generations: &generations{}} }

// ByFunc takes the version from f, which is given the new image, or the old one
// of a removed item, whose deletion has the version plus 1. f must depend on
// nothing else and be safe for concurrent use. Its error, and a number below 0,
// are permanent failures of the record.
func ByFunc(f func(image sluice.Item) (int64, error)) Version {
	return Version{kind: byFunc, f: f}
}

// Unversioned has none: the last writer wins. Only the order in which a source
// delivers the changes of an item keeps an older state from standing.
func Unversioned() Version { return Version{kind: unversioned} }

// String names the kind of v.
func (v Version) String() string {
	switch v.kind {
	case byAttribute:
		return fmt.Sprintf("ByAttribute(%q)", v.path)
	case bySequence:
		return "BySequence()"
	case byFunc:
		return "ByFunc(…)"
	case unversioned:
		return "Unversioned()"
	}
	return "none"
}

// fence is what keeps a write from taking a document back.
type fence struct {
	kind     document.Fence
	version  int64
	sequence string // of document.Exact
}

// of returns the fence of what rec writes.
func (v Version) of(rec *sluice.Record) (fence, error) {
	switch v.kind {
	case unversioned:
		return fence{kind: document.NoFence}, nil
	case bySequence:
		return v.generations.fence(rec)
	}
	image, which := rec.New, "new"
	if rec.EventName == sluice.Remove {
		image, which = rec.Old, "old"
	}
	if !image.Exists() {
		return fence{}, fmt.Errorf("the version is taken from the %s image, without which the record came: %s", which, viewRemedy)
	}
	n, err := v.ofImage(image)
	if err != nil {
		return fence{}, fmt.Errorf("the version of the document: %w", err)
	}
	if rec.EventName == sluice.Remove {
		if n == math.MaxInt64 {
			return fence{}, fmt.Errorf("the version of the document: it is %d, and there is none after it for the deletion", n)
		}
		n++
	}
	return fence{kind: document.Newer, version: n}, nil
}

func (v Version) ofImage(image sluice.Item) (int64, error) {
	if v.kind == byFunc {
		n, err := v.f(image)
		if err == nil && n < 0 {
			err = fmt.Errorf("Version says %d, want 0 or more", n)
		}
		return n, err
	}
	value, ok := image.Lookup(v.path)
	if !ok {
		return 0, fmt.Errorf("the item has no attribute %q", v.path)
	}
	if value.Kind() != item.N {
		return 0, fmt.Errorf("attribute %q is of type %v, want N", v.path, value.Kind())
	}
	n, ok := value.Int64()
	if !ok { // written with an exponent or a point, as few do
		text, _ := value.AppendText(nil)
		var err error
		n, err = strconv.ParseInt(string(text), 10, 64)
		ok = err == nil
	}
	if !ok || n < 0 {
		return 0, fmt.Errorf("attribute %q is %s, want an integer from 0 to %d", v.path, value.Text(), int64(math.MaxInt64))
	}
	return n, nil
}
