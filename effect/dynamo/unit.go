package dynamo

import (
	"strconv"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/item"
)

// Unit is a write that takes effect once, however often it is repeated. One
// transaction writes all of it with its marker. If the marker exists, the effect
// does too, and nothing is written.
//
// Many Units share one transaction: their markers side by side, and the Adds to
// one item combined. A failed Op or Add of one Unit does not affect other Units.
type Unit struct {
	Marker Marker
	Adds   []Add
	Ops    []Op // with their own conditions; a failed condition fails the Unit with a [*ConditionError] (indexes into Ops)
}

// Marker is an item that exists once a Unit was applied. Its table may have a sort
// key. But Units whose markers share a partition key run one after another, so a
// partition per marker is faster.
type Marker struct {
	Table string
	Item  sluice.Item
	Key   string // name of the partition key attribute
}

// NewMarker is a marker in a table with the key "pk" (S) and time to live in the
// attribute "ttl" (N, seconds). A record handled again after the expiry takes
// effect again. A stream keeps records for 24 h, so a marker must last longer; 72
// h are usual.
func NewMarker(table, id string, expires time.Time) Marker {
	return Marker{Table: table, Key: "pk", Item: item.Of(item.String("pk", id), item.Number("ttl", decimal(expires.Unix())))}
}

// Add adds to numbers of an item. Missing numbers count as 0.
type Add struct {
	Table string
	Key   sluice.Item
	By    map[string]int64 // by top-level attribute

	// Create creates a missing item. Without Create, an Add to a missing item
	// is dropped, and the rest of its Unit is applied: a late −1 does not
	// recreate a deleted item.
	Create bool

	// Else is written instead of a dropped Add (default: nothing). It has a Key
	// and no condition.
	Else Op
}

// Applied is the result of a Unit.
type Applied struct {
	Before  bool  // it was applied before, and nothing was written now
	Dropped []int // indexes of Adds whose item does not exist
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }
