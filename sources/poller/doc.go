// Package poller reads DynamoDB streams in a long-running process and hands
// their records to the routes of a sluice.Matcher.
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
// A table can be given a new stream: a follower (follow.go) asks for it and
// begins it behind the old one (generation.go), over restarts too (restore.go).
//
// So a record is handled at least once, and of one item in the order of its
// changes, whatever ends the process. What lies behind the stored position is
// handled again: after a crash the work of Options.CheckpointEvery, and after an
// orderly stop too what was settled past a record that still waits for a retry.
//
// Run works with three contexts that end one after another: ctx ends the
// reading, a second one ends the flows and their handlers a little before
// Options.Grace is over, a third the last writes when it is over.
//
// Nothing the service answers ends a running Poller: errors.go sorts what can
// go wrong, and Health says what is.
package poller
