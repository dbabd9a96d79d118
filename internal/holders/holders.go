// Package holders describes, for people, the workers that share a state and their shards.
package holders

import (
	"context"
	"time"
)

// Lister is a state that several processes share.
type Lister interface {
	// Workers lists the workers of an application, ordered by name: those that live,
	// those that ended in the last days, and all that have a shard.
	Workers(ctx context.Context, app string) ([]Worker, error)
}

// Worker is an owner of shards.
type Worker struct {
	Name   string
	State  State
	Ended  time.Time // when it was fenced, by the clock of who did it; zero if unknown
	Shards []Held    // ordered by stream and id; those of a fenced worker wait for a claim
}

// State says whether a worker lives.
type State string

const (
	Living State = "living" // it wrote a heartbeat while it was watched
	Silent State = "silent" // it wrote none: others may claim its shards
	Fenced State = "fenced" // it never lives again under its name
)

// Held is a shard that a worker has. Both times are by the clock of their writer, and
// zero if none is stored.
type Held struct {
	StreamARN string
	ShardID   string
	Claimed   time.Time // when the worker got it
	Moved     time.Time // when its position changed last, maybe under another worker
}
