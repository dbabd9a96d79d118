// Package state keeps what must survive a restart: where each stream was
// started, how far each shard is settled, who owns it, the dead letters, and
// small values such as the progress of a backfill.
package state

import (
	"context"
	"errors"
	"time"
)

// Stream names a stream within an application. Applications share a store
// without touching each other; a table that was deleted and created again has
// another ARN, and so another state.
type Stream struct {
	Application string
	ARN         string
}

// Start says where a stream's first reading began.
type Start struct {
	Position string    // "TRIM_HORIZON" or "LATEST"
	At       time.Time // of the start; LATEST: records created before are dropped; TRIM_HORIZON: zero when all that the stream ever held is to be read
}

// Position is how far a shard is settled. The zero Position is its beginning.
type Position struct {
	Sequence string // of the last settled record; empty when none is
	Finished bool   // the shard is closed and settled to its end
}

// Shard is what is stored of one shard.
type Shard struct {
	ID       string
	Parent   string // shard id; empty when it had none that was known
	Position Position
	Owner    string // empty when released
	Epoch    uint64 // raised by every claim
}

// Lease is a claim on a shard, good until somebody claims it after us.
type Lease struct {
	Stream  Stream
	ShardID string
	Owner   string
	Epoch   uint64
}

// Checkpoint is a position to be stored under a lease.
type Checkpoint struct {
	Lease    Lease
	Position Position
}

var (
	// ErrNoStart: nothing is stored for the stream and no start was given.
	ErrNoStart = errors.New("no stored position and no start given")
	// ErrLeaseLost: another owner or epoch holds the shard; stop its flow.
	ErrLeaseLost = errors.New("lease lost")
	// ErrHeld: the shard is owned by a living owner.
	ErrHeld = errors.New("shard is held by another owner")
	// ErrRegress: the position is before the stored one.
	ErrRegress = errors.New("position is before the stored one")
)

// Store keeps positions and leases. All methods are safe for concurrent use;
// each has made its effect durable when it returns nil. Package
// state/statetest holds the conformance suite that every implementation must pass.
type Store interface {
	// Start returns the stored start of the stream. When there is none it
	// stores want and returns it; when want is the zero Start, ErrNoStart.
	Start(ctx context.Context, s Stream, want Start) (Start, error)

	// Streams lists the streams of the application app of which a start or a
	// shard is stored, ordered by ARN.
	Streams(ctx context.Context, app string) ([]Stream, error)

	// Shards lists what is stored of the stream's shards.
	Shards(ctx context.Context, s Stream) ([]Shard, error)

	// Finish stores a shard that nobody read as finished (one that was closed
	// before a start at LATEST). A shard already stored is left as it is.
	Finish(ctx context.Context, s Stream, shardIDs ...string) error

	// Claim makes owner the shard's owner under a new epoch, greater than its
	// last one and than its parent's, and returns what is stored. An empty parent
	// is the stored one, if any. The position is untouched. ErrHeld when another,
	// living owner has it; an owner lives for some time after each claim and
	// heartbeat, and no longer than its process where the store belongs to one
	// process.
	Claim(ctx context.Context, s Stream, shardID, parent, owner string) (Shard, error)

	// Checkpoint stores positions, in one transaction where it can, and
	// returns one error per checkpoint, or nil when all are stored. Each is
	// conditional on the lease's owner and epoch (ErrLeaseLost) and on not
	// going back (ErrRegress); one that fails does not hinder the others. A
	// finishing position without a sequence number keeps the stored one.
	Checkpoint(ctx context.Context, cs []Checkpoint) []error

	// Release gives the shard up. ErrLeaseLost when it was not ours any more.
	Release(ctx context.Context, l Lease) error

	// Forget deletes what is stored of shards that are finished and that no
	// living owner has. It leaves others of them as they are, and their stream's
	// start too. A shard that is claimed later begins anew, as one never stored.
	Forget(ctx context.Context, s Stream, shardIDs ...string) error

	// Heartbeat says that owner lives.
	Heartbeat(ctx context.Context, owner string) error

	Close() error
}

// Letters keeps dead letters as opaque bytes under an id, per application. Ids
// are ordered as strings. All methods are safe for concurrent use; each has
// made its effect durable when it returns nil, and none keeps data or shares
// what it returns.
type Letters interface {
	// PutLetter stores one, in the place of another of the same id.
	PutLetter(ctx context.Context, app, id string, data []byte) error
	GetLetter(ctx context.Context, app, id string) (data []byte, ok bool, err error)
	// ListLetters returns up to limit letters whose id is greater than after,
	// in the order of their ids.
	ListLetters(ctx context.Context, app, after string, limit int) ([]Letter, error)
	// DeleteLetter deletes one, if it is there.
	DeleteLetter(ctx context.Context, app, id string) error
}

// Letter is one stored dead letter.
type Letter struct {
	ID   string
	Data []byte
}

// Labels are letters that have a label each: some bytes by which many large
// letters can be told apart without reading them. Stores can do without: who
// uses labels asks whether the store has them.
type Labels interface {
	Letters
	// PutLabelled is PutLetter with a label, which is durable when the letter is.
	// PutLetter stores a letter without one.
	PutLabelled(ctx context.Context, app, id string, data, label []byte) error
	// ListLabels is ListLetters with the labels in place of the letters; that of a
	// letter without one is empty. Letters of an older program may be missing until
	// LabelLetters has returned.
	ListLabels(ctx context.Context, app, after string, limit int) ([]Letter, error)
	// LabelLetters calls label with each letter that has no label, in the order of
	// ids, and stores what label returns. A letter stays without a label when that
	// is empty, and is the next caller's, too.
	LabelLetters(ctx context.Context, app string, label func(id string, data []byte) []byte) error
}

// Values keeps small opaque values under a name, per application. Names are
// ordered as strings, and have nothing to do with the ids of letters. All
// methods are safe for concurrent use; each has made its effect durable when it
// returns nil, and none keeps data or shares what it returns.
type Values interface {
	// PutValue stores one, in the place of another of the same name. One of more
	// than 64 KiB is refused.
	PutValue(ctx context.Context, app, name string, data []byte) error
	GetValue(ctx context.Context, app, name string) (data []byte, ok bool, err error)
	// ListValues returns the values whose name begins with prefix, in the order
	// of their names.
	ListValues(ctx context.Context, app, prefix string) ([]Value, error)
	// DeleteValue deletes one, if it is there.
	DeleteValue(ctx context.Context, app, name string) error
}

// Value is one stored value.
type Value struct {
	Name string
	Data []byte
}
