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

// latest is the state.Start of a stream that is read from then on.
const latest = "LATEST"

// early is how long before the retention is over a beginning is looked at with
// suspicion: clocks differ, and reading it takes a moment.
const early = time.Hour

// Beginning is what is known of a shard's first records. Of a shard without a
// position they are to be read; TRIM_HORIZON would pass over a loss of them
// without a word.
type Beginning struct {
	created time.Time       // of the shard; zero when its id does not tell
	from    time.Time       // what was written from then on is ours to read; zero: everything is
	First   sluice.Sequence // of the shard, read or not; empty when no listing said it
}

// BeginningOf returns the beginning of a shard of a stream that was begun at
// start.
func BeginningOf(shardID string, first sluice.Sequence, start state.Start) Beginning {
	return Beginning{created: ShardCreated(shardID), from: oursFrom(start), First: first}
}

// ShardCreated returns the time in a shard's id, as in
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

// Ours reports whether records that were ours are lost when the first records
// of the shard are trimmed by now.
func (b Beginning) Ours(now time.Time) bool {
	if b.created.Before(b.from) { // others came first; those that were ours go after a day
		return b.from.Before(now.Add(-Retention))
	}
	return true
}

// Doubtful reports whether records that were ours may be trimmed by now.
func (b Beginning) Doubtful(now time.Time) bool {
	return b.Ours(now) && b.created.Before(now.Add(early-Retention))
}

// Whole reports whether the shard is too young to have lost a record.
func (b Beginning) Whole(now time.Time) bool {
	return !b.created.IsZero() && b.created.After(now.Add(early-Retention))
}
