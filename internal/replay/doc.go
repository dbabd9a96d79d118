// Package replay passes records of files to the routes of a Matcher: NDJSON,
// Lambda events, on-failure records of an event source mapping and dead letters,
// in any mixture and number, also from a pipe.
//
// [Run] reads one input from front to back. One value is a line, or a JSON value
// over several lines if the following lines do not begin with { or [ in their
// first column, as in pretty-printed JSON. An unreadable value is reported with
// its line and does not stop the others. A truncated file has one at its end.
//
// Records of one item run in the order of the input. Dead letters run for their
// route alone, separate from all others. A failing record is retried a few times
// and then parked in Options.Flow.DeadLetter, and the replay continues. The
// position is the offset up to which everything is handled or parked; another
// replay continues there.
package replay
