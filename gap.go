package sluice

import (
	"fmt"
	"strings"
	"time"
)

// Gap is a range of a shard that the stream dropped before Sluice read it. Its
// records are lost, and their number is unknown. Without ShardID, a Gap is a whole
// stream that was never read. With Next, it is the time between two streams of a
// table. Stream, shard, After and Next identify a Gap.
type Gap struct {
	Table     string
	StreamARN string
	ShardID   string
	After     Sequence // last record read before the gap; empty if the gap begins with the shard
	Before    Sequence // first record after the gap; empty until Sluice reads one
	Gone      bool     // the shard no longer exists, and its rest is lost
	Next      string   // ARN of the table's next stream
	Found     time.Time
}

// String names the lost records and their shard.
func (g Gap) String() string {
	switch {
	case g.Next != "":
		return fmt.Sprintf("table %s: stream %s was replaced by %s: what was written to the table between them is in neither", g.Table, g.StreamARN, g.Next)
	case g.ShardID == "":
		return fmt.Sprintf("table %s: stream %s was not read", g.Table, g.StreamARN)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "table %s shard %s: ", g.Table, g.ShardID)
	switch {
	case g.Gone && g.After == "":
		b.WriteString("all records")
	case g.Gone:
		fmt.Fprintf(&b, "all records after %s", g.After)
	case g.After == "":
		b.WriteString("the first records")
	default:
		fmt.Fprintf(&b, "records after %s", g.After)
	}
	if g.Before != "" {
		fmt.Fprintf(&b, " and before %s", g.Before)
	}
	b.WriteString(" were trimmed before they were read")
	return b.String()
}
