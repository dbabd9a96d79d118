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

// Version decides which of two states of an item is later. The package comment
// compares the kinds.
type Version struct {
	kind        versionKind
	path        string
	unit        time.Duration // of the number at path, if it is a time; 0: not a time
	counter     string        // path of a pair's second number; "": not a pair
	f           func(sluice.Item) (int64, error)
	generations *generations // for bySequence
}

type versionKind uint8

const (
	noVersion versionKind = iota
	byAttribute
	bySequence
	byFunc
	unversioned
)

// ByAttribute takes the version from an attribute that writers raise with every
// write. It is an integer of 0 or more, or an ISO 8601 time such as
// 2025-07-04T12:33:21.123Z; without a zone it is UTC. The version of a time is its
// nanoseconds since 1970. A deletion has the version of the old image plus 1. A
// recreated item must continue above that, at its last number plus 2. At plus 1
// its document counts as the deleted one and is not written. [Options].Lost
// reports lost changes.
func ByAttribute(path string) Version { return Version{kind: byAttribute, path: path} }

// ByEpoch takes the version from a number that is a time in seconds, milliseconds
// or microseconds since 1970, by unit, with or without a fraction. Otherwise it
// works like [ByAttribute] with a time.
func ByEpoch(path string, unit time.Duration) Version {
	return Version{kind: byAttribute, path: path, unit: unit}
}

// Then combines the version of an attribute, the creation of the item, with a
// counter that begins anew with each item of the same key. A time counts in
// milliseconds; any other number is unchanged. The counter has 20 bits of the
// version (up to 1,048,575), the time 43. Records with larger numbers fail
// permanently.
func (v Version) Then(counter string) Version {
	v.counter = counter
	return v
}

// counterBits is the size of a pair's counter.
const counterBits = 20

// BySequence orders by the record's stream and sequence number, which the document
// contains ([Options.Mark]). A backfilled item comes before all records. A
// redriven or replayed record writes the current item ([Options.Current]).
func BySequence() Version { return Version{kind: bySequence, generations: &generations{}} }

// ByFunc takes the version from f, which gets the new image. For a removed item it
// gets the old image, and the deletion has its version plus 1. f must depend only
// on the image and be safe for concurrent use. Its error, or a negative number,
// fails the record permanently.
func ByFunc(f func(image sluice.Item) (int64, error)) Version {
	return Version{kind: byFunc, f: f}
}

// Unversioned has no version: the last writer wins. Only the order in which a
// source delivers the changes of an item prevents an older state from staying.
func Unversioned() Version { return Version{kind: unversioned} }

// String returns the kind of v.
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

// fence prevents a write from restoring an older document.
type fence struct {
	kind     document.Fence
	version  int64
	sequence string // for document.Exact
}

// of returns the fence of rec's write.
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

// number returns the number at path, and whether it is a time.
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
	case err != nil: // err omits the text: it may be anything, and errors are logged
		err = fmt.Errorf("attribute %q is of type %v, %w", path, value.Kind(), err)
	}
	return n, isTime, err
}

func integerOf(value item.Value) (int64, error) {
	n, ok := value.Int64()
	if !ok { // written with an exponent or a point, which is rare
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
