package dynamo

import (
	"strconv"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/item"
)

// Unit is a write that has its effect once, however often it is asked for: all
// of it is one transaction with the Put of its marker. When the marker is there
// already, so is the effect, and nothing is written.
//
// Many Units share one transaction: markers beside each other, and the Adds to
// one item as one. An Op or Add of one Unit that fails takes no other with it.
type Unit struct {
	Marker Marker
	Adds   []Add
	Ops    []Op // with conditions of their own; one that does not hold fails the Unit with a [*ConditionError] (indexes into Ops)
}

// Marker is an item that is there when a Unit was applied. Its table may have a
// sort key; but Units whose markers share a partition key go one after another,
// so that a partition of its own for each marker is faster.
type Marker struct {
	Table string
	Item  sluice.Item
	Key   string // name of its partition key attribute
}

// NewMarker is a marker in a table of its own, with the key "pk" (S) and its
// expiry in the attribute "ttl" (N, seconds), which is the table's time to live.
// A record that is handled again later than that has its effect again: a stream
// keeps records for 24 h, so that the marker is to outlive them; 72 h are usual.
func NewMarker(table, id string, expires time.Time) Marker {
	return Marker{Table: table, Key: "pk", Item: item.Of(item.String("pk", id), item.Number("ttl", decimal(expires.Unix())))}
}

// Add adds to numbers of an item. Absent ones count from 0.
type Add struct {
	Table string
	Key   sluice.Item
	By    map[string]int64 // by attribute, top-level

	// Create makes the item where there is none. Without it an Add to an item
	// that is not there is dropped, and the rest of its Unit is applied: a late
	// −1 does not bring back what was deleted.
	Create bool

	// Else is written in the place of an Add that is dropped (default: nothing).
	// It has a Key, and no condition.
	Else Op
}

// Applied says what a Unit did.
type Applied struct {
	Before  bool  // it was applied before: nothing was written now
	Dropped []int // indexes of the Adds whose item is not there
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }
