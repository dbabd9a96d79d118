package state

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

// OwnerTimeout is how long an owner counts as living, in the stores of one
// process, after its last claim or heartbeat.
const OwnerTimeout = 10 * time.Second

// The functions of this file are the rules that the stores share; they are
// public for those who write another store.

// Compare orders positions of one shard: sequence numbers as numbers (leading
// zeros do not count, the longer is the larger), a finished one after all
// others.
func (p Position) Compare(o Position) int {
	if p.Finished != o.Finished {
		if p.Finished {
			return 1
		}
		return -1
	}
	a, b := strings.TrimLeft(p.Sequence, "0"), strings.TrimLeft(o.Sequence, "0")
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}

// Claimed returns s as its new owner holds it. parent is what is stored of its
// parent, the zero Shard when nothing is.
func (s Shard) Claimed(parent Shard, owner string) Shard {
	s.Owner = owner
	s.Epoch = max(s.Epoch, parent.Epoch) + 1
	if parent.ID != "" {
		s.Parent = parent.ID
	}
	return s
}

// Check returns [ErrLeaseLost] when s is not held under l.
func (s Shard) Check(l Lease) error {
	if s.Owner == "" || s.Owner != l.Owner || s.Epoch != l.Epoch {
		return fmt.Errorf("%w: shard %s is at epoch %d of owner %q, the lease is of epoch %d of owner %q",
			ErrLeaseLost, l.ShardID, s.Epoch, s.Owner, l.Epoch, l.Owner)
	}
	return nil
}

// Advanced returns s at the position of c, or [ErrLeaseLost] or [ErrRegress].
// A finishing checkpoint without a sequence number keeps the stored one.
func (s Shard) Advanced(c Checkpoint) (Shard, error) {
	if err := s.Check(c.Lease); err != nil {
		return s, err
	}
	p := c.Position
	if err := p.validate(); err != nil {
		return s, fmt.Errorf("checkpoint of shard %s: %w", c.Lease.ShardID, err)
	}
	if p.Finished && p.Sequence == "" {
		p.Sequence = s.Position.Sequence
	}
	if p.Compare(s.Position) < 0 {
		return s, fmt.Errorf("%w: shard %s is settled to %v, the checkpoint says %v",
			ErrRegress, c.Lease.ShardID, s.Position, p)
	}
	s.Position = p
	return s, nil
}

// Forgettable reports whether s is finished and none of the living has it.
func (s Shard) Forgettable(living *Presence) bool {
	return s.Position.Finished && (s.Owner == "" || !living.Living(s.Owner))
}

// String returns the sequence number, "the beginning", or that the shard is
// finished.
func (p Position) String() string {
	switch {
	case p.Finished:
		return strings.TrimSpace(p.Sequence + " (finished)")
	case p.Sequence == "":
		return "the beginning"
	}
	return p.Sequence
}

func (p Position) validate() error {
	if len(p.Sequence) > 40 || strings.Trim(p.Sequence, "0123456789") != "" {
		return fmt.Errorf("%.60q is not a sequence number: 1 to 40 decimal digits", p.Sequence)
	}
	return nil
}

// Validate says what is wrong with a start that is about to be stored.
func (s Start) Validate() error {
	switch {
	case s.Position == "TRIM_HORIZON":
		return nil
	case s.Position != "LATEST":
		return fmt.Errorf("start position %q is unknown: TRIM_HORIZON or LATEST", s.Position)
	case s.At.IsZero():
		return errors.New("start position LATEST needs the time of the start")
	}
	return nil
}

// Validate says which part of the stream's name is missing.
func (s Stream) Validate() error {
	if s.ARN == "" {
		return errors.Join(ValidateApplication(s.Application), errors.New("the stream's ARN is empty"))
	}
	return ValidateApplication(s.Application)
}

// ValidateApplication says whether an application's name is missing.
func ValidateApplication(app string) error {
	if app == "" {
		return errors.New("the application's name is empty: every application needs one, so that two can share a store")
	}
	return nil
}

// ValidateLetter says whether a letter's application or id is missing.
func ValidateLetter(app, id string) error {
	if app == "" || id == "" {
		return fmt.Errorf("dead letter %q of application %q: neither may be empty", id, app)
	}
	return nil
}

// ValidateValue says what is wrong with a value that is about to be stored, or
// with its application or name.
func ValidateValue(app, name string, data []byte) error {
	if app == "" || name == "" {
		return fmt.Errorf("value %q of application %q: neither may be empty", name, app)
	}
	if len(data) > MaxValue {
		return fmt.Errorf("value %q of application %q has %d bytes: at most %d are kept", name, app, len(data), MaxValue)
	}
	return nil
}

// Presence is who was heard of within [OwnerTimeout]. The zero value is ready;
// its methods are safe for concurrent use.
type Presence struct {
	mu   sync.Mutex
	seen map[string]time.Time
}

// Seen says that owner lives now.
func (p *Presence) Seen(owner string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen == nil {
		p.seen = make(map[string]time.Time)
	}
	p.seen[owner] = time.Now()
}

// Living reports whether owner was heard of.
func (p *Presence) Living(owner string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, ok := p.seen[owner]
	return ok && time.Since(at) < OwnerTimeout
}

// Forget forgets every owner, as the end of their process does.
func (p *Presence) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = nil
}
