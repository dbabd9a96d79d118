package lineage

import (
	"strconv"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/state"
)

// Retention is how long a stream holds a record.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Streams.html
const Retention = 24 * time.Hour

// latest is the Position of a state.Start.
const latest = "LATEST"

// early is subtracted from the retention before records count as possibly trimmed:
// clocks differ, and a read takes time.
const early = time.Hour

// Beginning describes a shard's first records. A shard without a position is read
// from its first record; TRIM_HORIZON would skip trimmed records silently.
type Beginning struct {
	created time.Time       // of the shard; zero if its id does not tell
	from    time.Time       // the application reads records written from then on; zero: all
	First   sluice.Sequence // of the shard, read or not; empty if no listing had it
}

// BeginningOf returns the Beginning of a shard. start is that of its stream.
func BeginningOf(shardID string, first sluice.Sequence, start state.Start) Beginning {
	return Beginning{created: ShardCreated(shardID), from: oursFrom(start), First: first}
}

// ShardCreated returns the time in a shard's id, such as
// shardId-00000001414576573621-f55eea83, or the zero time.
func ShardCreated(id string) time.Time {
	rest, ok := strings.CutPrefix(id, "shardId-")
	digits, _, ok2 := strings.Cut(rest, "-")
	ms, err := strconv.ParseInt(digits, 10, 64)
	if !ok || !ok2 || len(digits) != 20 || err != nil || ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// oursFrom returns the time of the first record that the application must read. A
// start at TRIM_HORIZON takes the records of that moment. Records nearly a day old
// may have been trimmed before anybody could read them.
func oursFrom(start state.Start) time.Time {
	switch {
	case start.At.IsZero():
		return time.Time{}
	case start.Position == latest:
		return start.At
	}
	return start.At.Add(early - Retention)
}

// Ours reports whether the application lost records if the shard's first records are
// trimmed by now.
func (b Beginning) Ours(now time.Time) bool {
	if b.created.Before(b.from) { // the first records are not the application's; the later ones last a day
		return b.from.Before(now.Add(-Retention))
	}
	return true
}

// Doubtful reports whether records of the application may be trimmed by now.
func (b Beginning) Doubtful(now time.Time) bool {
	return b.Ours(now) && b.created.Before(now.Add(early-Retention))
}

// Whole reports whether the shard is too young for trimmed records.
func (b Beginning) Whole(now time.Time) bool {
	return !b.created.IsZero() && b.created.After(now.Add(early-Retention))
}
