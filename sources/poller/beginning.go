package poller

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/state"
)

// early is a margin before the end of the retention. Within it the first records
// of a shard may be lost: clocks differ, and a read takes time.
const early = time.Hour

var errUntold = errors.New("whether the shard still has its first records cannot be told")

// beginning describes the first records of a shard. A shard without a position is
// read from them. TRIM_HORIZON would skip lost records silently.
type beginning struct {
	created time.Time       // creation of the shard; zero when its id has no time
	from    time.Time       // the application reads records from this time on; zero: all records
	first   sluice.Sequence // first sequence number of the shard, even if trimmed; empty if unknown
}

func beginningOf(shardID string, first sluice.Sequence, start state.Start) beginning {
	return beginning{created: shardCreated(shardID), from: oursFrom(start), first: first}
}

// shardCreated returns the time in a shard's id, as in
// shardId-00000001414576573621-f55eea83, or the zero time.
func shardCreated(id string) time.Time {
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
	case start.Position == Latest:
		return start.At
	}
	return start.At.Add(early - retention)
}

// ours reports whether a trim of the shard's first records up to now loses records
// that the application must read.
func (b beginning) ours(now time.Time) bool {
	if b.created.Before(b.from) { // older records come first; those of the application follow, and are lost after a day
		return b.from.Before(now.Add(-retention))
	}
	return true
}

// doubtful reports whether records of the application may be trimmed by now.
func (b beginning) doubtful(now time.Time) bool {
	return b.ours(now) && b.created.Before(now.Add(early-retention))
}

// whole reports whether the shard is too young to have lost a record: DynamoDB
// Streams keeps each for 24 hours.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Streams.html
func (b beginning) whole(now time.Time) bool {
	return !b.created.IsZero() && b.created.After(now.Add(early-retention))
}
