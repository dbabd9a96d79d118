// Package state stores what must survive a restart: the start of each stream, the
// position and owner of each shard, dead letters, and small values such as the
// progress of a backfill.
package state

import (
	"context"
	"errors"
	"time"
)

// Stream identifies a stream of an application. Applications share a store without
// affecting each other. A recreated table has another ARN, and so another state.
type Stream struct {
	Application string
	ARN         string
}

// Start is where the first reading of a stream began.
type Start struct {
	Position string    // "TRIM_HORIZON" or "LATEST"
	At       time.Time // time of the start; LATEST: older records are dropped; TRIM_HORIZON: zero if every record of the stream must be read
}

// Position is how far a shard is settled. The zero Position is its beginning.
type Position struct {
	Sequence string // of the last settled record; empty if none
	Finished bool   // the shard is closed and settled to its end
	// Ahead says that records after Sequence are settled, too: "N A B C" are sequence
	// numbers, separated by spaces, and of the records up to N only A, B and C, in
	// ascending order, are not settled. It stays true when Sequence moves. Empty: nothing is
	// known. It has at most 12 KB.
	Ahead string
}

// Shard is a stored shard.
type Shard struct {
	ID       string
	Parent   string // shard id; empty if none was known
	Position Position
	Owner    string // empty when released
	Epoch    uint64 // incremented by every claim
}

// Lease is a claim on a shard, valid until the next claim.
type Lease struct {
	Stream  Stream
	ShardID string
	Owner   string
	Epoch   uint64
}

// Checkpoint is a position to store under a lease.
type Checkpoint struct {
	Lease    Lease
	Position Position
}

var (
	// ErrNoStart: the stream has no stored start, and none was given.
	ErrNoStart = errors.New("no stored position and no start given")
	// ErrLeaseLost: another owner or epoch has the shard; stop its flow.
	ErrLeaseLost = errors.New("lease lost")
	// ErrHeld: a living owner has the shard.
	ErrHeld = errors.New("shard is held by another owner")
	// ErrDeadly: several owners ended soon after they claimed the shard, which now
	// waits. A record of it may end its reader.
	ErrDeadly = errors.New("shard ends its workers")
	// ErrFenced: another owner found this one silent. Its leases are lost; go on
	// under a new name.
	ErrFenced = errors.New("owner is fenced")
	// ErrRegress: the position is before the stored one.
	ErrRegress = errors.New("position is before the stored one")
)

// Store keeps positions and leases. All methods are safe for concurrent use. A
// method's effect is durable when it returns nil. Package state/statetest has the
// conformance suite that every implementation must pass.
type Store interface {
	// Start returns the stored start of the stream. If there is none, it stores
	// want and returns it. If want is also zero, it returns ErrNoStart.
	Start(ctx context.Context, s Stream, want Start) (Start, error)

	// Streams lists the streams of application app with a stored start or
	// shard, ordered by ARN.
	Streams(ctx context.Context, app string) ([]Stream, error)

	// Shards lists the stored shards of the stream.
	Shards(ctx context.Context, s Stream) ([]Shard, error)

	// Finish stores unread shards as finished, because they were closed before
	// a start at LATEST. It does not change a stored shard.
	Finish(ctx context.Context, s Stream, shardIDs ...string) error

	// Claim makes owner the shard's owner under a new epoch and returns the
	// shard. The epoch is greater than the shard's last and than its parent's.
	// If parent is empty, the stored parent counts. The position does not
	// change. It returns ErrHeld if another living owner has the shard; a store that
	// several processes share may return ErrDeadly. An
	// owner lives for some time after each claim and heartbeat, but not longer
	// than its process if the store belongs to one process.
	Claim(ctx context.Context, s Stream, shardID, parent, owner string) (Shard, error)

	// Checkpoint stores positions, in one transaction if possible. It returns
	// one error per checkpoint, or nil when all are stored. Each checkpoint
	// needs the lease's owner and epoch (ErrLeaseLost) and must not go back
	// (ErrRegress). A failed checkpoint does not affect the others. A finishing
	// position without a sequence number keeps the stored one.
	Checkpoint(ctx context.Context, cs []Checkpoint) []error

	// Release releases the shard. It returns ErrLeaseLost if the lease was
	// lost.
	Release(ctx context.Context, l Lease) error

	// Forget deletes shards that are finished and that no living owner has. It
	// skips the others and keeps the stream's start. A deleted shard that is
	// claimed later starts from its beginning.
	Forget(ctx context.Context, s Stream, shardIDs ...string) error

	// Heartbeat notes that owner lives. It returns ErrFenced if another owner
	// claimed a shard of this one after it was silent: a fenced owner never
	// lives again.
	//
	// A store that several processes share may have three more methods. Who wraps such
	// a store must pass them on.
	//
	//	SilentAfter() time.Duration
	//
	// is how long an owner must be silent before another may fence it. A poller then
	// starts no handler without a heartbeat that is young enough.
	//
	//	Moves(ctx context.Context, owner string, leaving bool, work func(state.Lease) float64) ([]state.Lease, error)
	//
	// returns the leases that owner should release soon, because other owners have
	// fewer shards, or less work, and wait for these. work is how many changes and KiB
	// a second a shard has. A poller asks before its first claim, then again
	// and again, and with leaving when it stops: then others learn that they may have
	// all its shards.
	//
	//	Vacant() <-chan struct{}
	//
	// returns a channel that is closed once another owner has ended or offers a shard. A
	// poller then claims at once what it waits for.
	Heartbeat(ctx context.Context, owner string) error

	Close() error
}

// Letters keeps dead letters per application, as opaque bytes under an id. Ids
// sort as strings. All methods are safe for concurrent use. A method's effect is
// durable when it returns nil. No method keeps data or shares its result.
type Letters interface {
	// PutLetter stores a letter and replaces one with the same id.
	PutLetter(ctx context.Context, app, id string, data []byte) error
	GetLetter(ctx context.Context, app, id string) (data []byte, ok bool, err error)
	// ListLetters returns up to limit letters whose id is greater than after,
	// ordered by id.
	ListLetters(ctx context.Context, app, after string, limit int) ([]Letter, error)
	// DeleteLetter deletes a letter if it exists.
	DeleteLetter(ctx context.Context, app, id string) error
}

// Letter is one stored dead letter.
type Letter struct {
	ID   string
	Data []byte
}

// Labels adds a label to each letter: a few bytes that identify large letters
// without reading them. It is optional for a store.
type Labels interface {
	Letters
	// PutLabelled is PutLetter with a label. Letter and label become durable
	// together. PutLetter stores a letter without a label.
	PutLabelled(ctx context.Context, app, id string, data, label []byte) error
	// ListLabels is ListLetters with labels instead of letters. A letter
	// without a label has an empty one. Letters of an older program may be
	// missing until LabelLetters has returned.
	ListLabels(ctx context.Context, app, after string, limit int) ([]Letter, error)
	// LabelLetters calls label with each unlabelled letter, ordered by id, and
	// stores the result. If it is empty, the letter stays unlabelled, and the
	// next LabelLetters calls label again.
	LabelLetters(ctx context.Context, app string, label func(id string, data []byte) []byte) error
}

// Values keeps small opaque values per application, under a name. Names sort as
// strings and are independent of letter ids. All methods are safe for concurrent
// use. A method's effect is durable when it returns nil. No method keeps data or
// shares its result.
type Values interface {
	// PutValue stores a value and replaces one with the same name. It refuses
	// more than 64 KiB.
	PutValue(ctx context.Context, app, name string, data []byte) error
	GetValue(ctx context.Context, app, name string) (data []byte, ok bool, err error)
	// ListValues returns the values whose name begins with prefix, ordered by
	// name.
	ListValues(ctx context.Context, app, prefix string) ([]Value, error)
	// DeleteValue deletes a value if it exists.
	DeleteValue(ctx context.Context, app, name string) error
}

// Value is one stored value.
type Value struct {
	Name string
	Data []byte
}
