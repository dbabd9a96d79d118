// Package replay hands records of files to the routes of a Matcher: NDJSON, Lambda
// events, on-failure records of an event source mapping, dead letters, in any
// mixture and any number, also from a pipe.
//
// [Run] reads one input from front to back. What of it is one value is a line, or
// a JSON value that goes on over lines which begin with neither { nor [ in their
// first column, as a value printed for people does. A value that cannot be read
// is told with its line and does not hinder the others: a file that was cut off
// has one such at its end.
//
// Records of one item run in the order in which they stand; those of dead letters
// run for their route alone, apart from all others. A record whose handler fails
// is tried again some times, and is then parked in Options.Flow.DeadLetter, behind
// which the replay goes on. The position is the offset up to which all is handled
// or parked; another replay goes on there.
package replay
