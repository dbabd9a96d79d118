package sluice

import (
	"fmt"
	"strings"
	"time"
)

// Gap is a range of one shard that the stream gave up before it was read:
// whatever was in it is lost to the application. Nobody can tell how many
// records that were. Without a shard it is a stream of which nothing was read;
// or, with Next, what was written to a table between its streams. A gap is
// named by its stream, its shard, After and Next.
type Gap struct {
	Table     string
	StreamARN string
	ShardID   string
	After     Sequence // the last record read before the gap; empty when it begins with the shard
	Before    Sequence // the first record found behind it; empty until there is one
	Gone      bool     // the rest of the shard is lost, because the shard is
	Next      string   // ARN of the table's stream behind this one
	Found     time.Time
}

// String says which records of which shard are lost.
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
