// Package holders describes, for people, the workers that share a state and their shards.
package holders

import (
	"context"
	"time"

	"github.com/sluicehq/sluice/state"
)

// Fleet is a state that several processes share.
type Fleet interface {
	state.Values
	// Publish sets the fingerprint of this process's configuration.
	Publish(config string)
	// Workers lists the workers of an application, ordered by name: those that live,
	// those that ended in the last days, and all that have a shard.
	Workers(ctx context.Context, app string) ([]Worker, error)
}

// Worker is an owner of shards.
type Worker struct {
	Name   string
	State  State
	Config string    // fingerprint of its configuration; empty if it published none
	Ended  time.Time // when it was fenced, by the clock of who did it; zero if unknown
	Shards []Held    // ordered by stream and id; those of a fenced worker wait for a claim
	Jobs   []string  // other work that it has claimed, such as segments of a backfill
	Report *Report   // nil: not known; see [List]
}

// State says whether a worker lives.
type State string

const (
	Living State = "living" // it wrote a heartbeat while it was watched
	Silent State = "silent" // it wrote none: others may claim its shards
	Fenced State = "fenced" // it never lives again under its name
)

// Differ says what it means when living workers have several configurations.
const Differ = "each handles its shards by its own. Finish the deployment, or give each configuration an application name of its own"

// Others returns the living workers that published another configuration.
func Others(all []Worker, config string) (others []Worker) {
	for _, w := range all {
		if w.State == Living && w.Config != "" && w.Config != config {
			others = append(others, w)
		}
	}
	return others
}

// Held is a shard that a worker has. Both times are by the clock of their writer, and
// zero if none is stored.
type Held struct {
	StreamARN string
	ShardID   string
	Claimed   time.Time // when the worker got it
	Moved     time.Time // when its position changed last, maybe under another worker
}
