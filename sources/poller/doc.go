// Package poller reads DynamoDB streams in a long-running process and passes their
// records to the routes of a sluice.Matcher.
//
// A [Poller] reads several streams. Of each, a discovery lists the shards
// (discover.go) and a forest says which may be read: a child only when its
// parent is settled to its end (internal/lineage). Each shard that is read has a
// worker (worker.go): it claims the shard in the store, so that nobody else
// reads it; a reader (reader.go) fetches its pages, one ahead of the flow,
// at a pace that follows what comes (pace.go); a flow.Flow runs the routes;
// and one checkpointer for all shards (internal/checkpoints) stores how far each flow
// has settled, never further.
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
// and NotReady reports the current ones.
package poller
