// Package poller reads DynamoDB streams in a long-running process and passes their
// records to the routes of a sluice.Matcher.
//
// A [Poller] reads several streams. For each, a discovery lists the shards
// (discover.go). A forest decides which shards may be read: a child only after its
// parent is settled to its end (lineage.go). Each shard has a worker (worker.go).
// The worker claims the shard in the store, so that no other process reads it. A
// reader (reader.go) fetches pages, one ahead of the flow, at an adaptive pace
// (pace.go). A flow.Flow runs the routes. One checkpointer for all shards
// (checkpoint.go) stores the watermark of each flow, never more.
//
// A table can get a new stream. A follower (follow.go) asks for it and begins it
// after the old one (generation.go), even across restarts (restore.go).
//
// A record is handled at least once, and the records of one item in the order of
// its changes, however the process ends. Records past the stored position are
// handled again. After a crash these are the records of Options.CheckpointEvery.
// After an orderly stop too, records settled past a record that waits for a retry
// are handled again.
//
// Run uses three contexts that end one after another. ctx ends the reading. The
// second ends the flows and their handlers shortly before Options.Grace is over.
// The third ends the last writes when it is over.
//
// No response of the service ends a running Poller. errors.go classifies errors,
// and Health reports the current ones.
package poller
