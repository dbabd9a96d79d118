package projection

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/item"
)

// Version says which of two states of an item is the later one; the package
// comment compares its kinds.
type Version struct {
	kind        versionKind
	path        string
	unit        time.Duration // of the number at path, which is a time; 0: it is no time
	counter     string        // path of a pair's second number; "": it is no pair
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

// ByAttribute takes the version from an attribute that the item's writers raise
// with every write: an integer of 0 or more, or a text that is an ISO 8601 time,
// such as 2025-07-04T12:33:21.123Z; one without a zone is UTC. The version of a
// time is its nanoseconds since 1970. A deletion's version is that of the old
// image plus 1. An item that is made again goes on above that, at its last number
// plus 2: at plus 1 its document is taken for the deleted one's, and is not
// written. [Options].Lost tells of changes that a version loses.
func ByAttribute(path string) Version { return Version{kind: byAttribute, path: path} }

// ByEpoch takes the version from a number that is a time: so many seconds,
// milliseconds or microseconds since 1970, as unit says, with or without a
// fraction. Else it is as [ByAttribute] of a time.
func ByEpoch(path string, unit time.Duration) Version {
	return Version{kind: byAttribute, path: path, unit: unit}
}

// Then makes a pair of the version of an attribute, which is when the item was
// made, and a counter that begins anew with each item of the same key. A time is
// taken by its milliseconds; any other number is taken as it is. The counter has
// 20 bits of the version and is up to 1,048,575, the time has the 43 others. Records with numbers beyond
// that fail for good.
func (v Version) Then(counter string) Version {
	v.counter = counter
	return v
}

// counterBits are those of a pair's counter.
const counterBits = 20

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
		text := fmt.Sprintf("ByAttribute(%q)", v.path)
		if v.unit != 0 {
			text = fmt.Sprintf("ByEpoch(%q, %v)", v.path, v.unit)
		}
		if v.counter != "" {
			text += fmt.Sprintf(".Then(%q)", v.counter)
		}
		return text
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
	n, isTime, err := v.number(image, v.path)
	if err != nil || v.counter == "" {
		return n, err
	}
	if isTime {
		n /= int64(time.Millisecond)
	}
	counter, isTime, err := Version{}.number(image, v.counter)
	switch {
	case err != nil:
		return 0, err
	case isTime:
		return 0, fmt.Errorf("attribute %q is of type S, want N: it is a pair's counter", v.counter)
	case n >= 1<<(63-counterBits):
		return 0, fmt.Errorf("attribute %q is %d, and a pair has room for numbers below %d: of a time in microseconds say the unit", v.path, n, int64(1)<<(63-counterBits))
	case counter >= 1<<counterBits:
		return 0, fmt.Errorf("attribute %q is %d, and a pair has room for counters below %d", v.counter, counter, 1<<counterBits)
	}
	return n<<counterBits | counter, nil
}

// number returns what the attribute at path says, and whether that is a time.
func (v Version) number(image sluice.Item, path string) (n int64, isTime bool, err error) {
	value, ok := image.Lookup(path)
	if !ok {
		return 0, false, fmt.Errorf("the item has no attribute %q", path)
	}
	switch kind := value.Kind(); {
	case v.unit != 0 && kind == item.N:
		n, err = epochNanos(value, v.unit)
		isTime = true
	case v.unit == 0 && kind == item.S:
		n, err = nanosOf(value)
		isTime = true
	case kind == item.N:
		n, err = integerOf(value)
	case v.unit != 0:
		err = errors.New("want N, since the version is " + v.String())
	default:
		err = errors.New("want N, or S of a time")
	}
	switch {
	case err != nil && value.Kind() == item.N:
		err = fmt.Errorf("attribute %q is %s, %w", path, value.Text(), err)
	case err != nil: // a text may be anything, and errors are logged
		err = fmt.Errorf("attribute %q is of type %v, %w", path, value.Kind(), err)
	}
	return n, isTime, err
}

func integerOf(value item.Value) (int64, error) {
	n, ok := value.Int64()
	if !ok { // written with an exponent or a point, as few do
		text, _ := value.AppendText(nil)
		var err error
		n, err = strconv.ParseInt(string(text), 10, 64)
		ok = err == nil
	}
	if !ok || n < 0 {
		return 0, fmt.Errorf("want an integer from 0 to %d; of a time with a fraction say the unit", int64(math.MaxInt64))
	}
	return n, nil
}
