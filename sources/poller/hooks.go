package poller

import (
	"time"

	"github.com/sluicehq/sluice"
)

// Shard identifies a shard.
type Shard struct {
	Table     string
	StreamARN string
	ID        string
}

// Hooks observe a poller. They run on the goroutine of the event and may be nil.
// They must be fast, must not block, and may run concurrently.
type Hooks struct {
	// Polled is called after every GetRecords call.
	Polled func(Poll)
	// ShardStarted is called when reading of a shard begins or resumes. after
	// is its stored position; empty at its beginning.
	ShardStarted func(s Shard, after sluice.Sequence)
	// ShardEnded is called when reading of a shard ends.
	ShardEnded func(Shard, End)
	// Lineage is called when the lineage changed, and without shards when its
	// stream is no longer read.
	Lineage func(Lineage)
	// Checkpointed is called after each write of positions. err is the first
	// failure.
	Checkpointed func(shards int, took time.Duration, err error)
	// Lag is called every CheckpointEvery for each shard that is being read.
	Lag func(Shard, time.Duration)
	// Dropped is called when the poller skipped records created before a start
	// at LATEST.
	Dropped func(s Shard, records int)
	// Gap is called once a gap is durable: records were trimmed before they
	// were read, or a table has a new stream. It is called again only if the
	// gap was acknowledged meanwhile, or now reaches the end of its shard.
	Gap func(sluice.Gap)
	// OpenGaps is called when the number of a table's unacknowledged gaps
	// changed. It starts at 0.
	OpenGaps func(table string, gaps int)
	// Memory is called every CheckpointEvery. pinned is the bytes that pages take
	// or reserve, limit is Options.MaxMemory, and waiting is the number of shards
	// that wait for room for a page.
	Memory func(pinned, limit int64, waiting int)
	// Failed is called when a call to the service or the store failed. If the
	// call was not about a shard, s has only its stream.
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

// End is the reason why reading of a shard ended.
type End string

const (
	EndFinished End = "finished"   // closed and settled to its end
	EndStopped  End = "stopped"    // Run is ending; the position is stored
	EndLost     End = "lease lost" // another owner has it
	EndMoved    End = "moved"      // released for another worker, which has fewer shards
	EndGone     End = "gone"       // the service no longer knows it
	EndHalted   End = "halted"     // at a gap
	EndFailed   End = "failed"     // by an error; it starts again

	notBegun End = "" // not claimed
)

// Lineage counts the shards of a stream by progress, as this poller knows them.
type Lineage struct {
	Table     string
	StreamARN string
	Reading   int
	Waiting   int // for a parent to be settled, for another owner, or for a retry
	Finished  int // settled to their end
	Halted    int // at a gap
}
