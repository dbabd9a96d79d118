package poller

import (
	"time"

	"github.com/sluicehq/sluice"
)

// Shard names a shard.
type Shard struct {
	Table     string
	StreamARN string
	ID        string
}

// Hooks are called as things happen, from the goroutine that made them happen;
// nil ones are passed over. They must be fast, must not block, and may be
// called concurrently.
type Hooks struct {
	// Polled is called after every GetRecords call.
	Polled func(Poll)
	// ShardStarted is called when a shard's reading begins or goes on; after
	// is its stored position, empty for its beginning.
	ShardStarted func(s Shard, after sluice.Sequence)
	// ShardEnded is called when a shard's reading ends.
	ShardEnded func(Shard, End)
	// Discovered is called after each listing of a stream's shards.
	Discovered func(Discovery)
	// Lineage is called when it is another than before, and with no shards when
	// its stream is read no more.
	Lineage func(Lineage)
	// Checkpointed is called after each write of positions. err is the first
	// of those that failed.
	Checkpointed func(shards int, took time.Duration, err error)
	// Lag is called for every shard being read, each CheckpointEvery.
	Lag func(Shard, time.Duration)
	// Dropped is called when records created before a start at LATEST were
	// passed over.
	Dropped func(s Shard, records int)
	// Gap is called when records were trimmed before they were read, or a
	// table has a new stream, once the gap is durable; again only when it was
	// acknowledged meanwhile, or reaches to the end of its shard now.
	Gap func(sluice.Gap)
	// OpenGaps is called when the number of a table's gaps that nobody has
	// acknowledged is another than before, which was 0.
	OpenGaps func(table string, gaps int)
	// Memory is called each CheckpointEvery.
	Memory func(Memory)
	// Failed is called when a call to the service or the store failed. The
	// shard is zero but for its stream when the call was not about one.
	Failed func(s Shard, action string, err error, retryIn time.Duration)
}

// Poll is one GetRecords call.
type Poll struct {
	Shard   Shard
	Records int
	Bytes   int // of the body
	Full    bool
	Took    time.Duration
	Err     error
}

// End is why a shard's reading ended.
type End string

const (
	EndFinished End = "finished"   // closed and settled to its end
	EndStopped  End = "stopped"    // Run is ending; the position is stored
	EndLost     End = "lease lost" // another owner has it
	EndGone     End = "gone"       // the service does not know it any more
	EndHalted   End = "halted"     // at a gap
	EndFailed   End = "failed"     // of itself; it is started again

	notBegun End = "" // not claimed
)

// Discovery is one listing of a stream's shards.
type Discovery struct {
	Table     string
	StreamARN string
	Pages     int
	Shards    int // listed
	New       int // seen for the first time
	Took      time.Duration
	Err       error
}

// Lineage is how far the shards of a stream are, as far as this poller knows.
type Lineage struct {
	Table     string
	StreamARN string
	Reading   int
	Waiting   int // for a parent to be settled, for another owner, or for another try
	Finished  int // settled to their end
	Halted    int // at a gap
}
