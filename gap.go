package sluice

import (
	"fmt"
	"strings"
	"time"
)

// Gap is a range of one shard that the stream gave up before it was read:
// whatever was in it is lost to the application. Nobody can tell how many
// records that were. A gap is named by its stream, its shard and After.
type Gap struct {
	Table     string
	StreamARN string
	ShardID   string
	After     Sequence // the last record read before the gap; empty when it begins with the shard
	Before    Sequence // the first record found behind it; empty until there is one
	Gone      bool     // the rest of the shard is lost, because the shard is
	Found     time.Time
}

// String says which records of which shard are lost.
func (g Gap) String() string {
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
