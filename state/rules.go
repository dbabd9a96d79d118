package state

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/sluicehq/sluice/internal/staterules"
)

// The functions of this file are rules that all stores share. They are exported
// for authors of other stores.

// Compare compares positions of one shard: sequence numbers as numbers (without
// leading zeros, longer is larger). A finished position is after all others.
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

// Claimed returns s with its new owner and epoch. parent is its stored parent, or
// the zero Shard.
func (s Shard) Claimed(parent Shard, owner string) Shard {
	s.Owner = owner
	s.Epoch = max(s.Epoch, parent.Epoch) + 1
	if parent.ID != "" {
		s.Parent = parent.ID
	}
	return s
}

// Check returns [ErrLeaseLost] if l does not hold s.
func (s Shard) Check(l Lease) error {
	if s.Owner == "" || s.Owner != l.Owner || s.Epoch != l.Epoch {
		return fmt.Errorf("%w: shard %s is at epoch %d of owner %q, the lease is of epoch %d of owner %q",
			ErrLeaseLost, l.ShardID, s.Epoch, s.Owner, l.Epoch, l.Owner)
	}
	return nil
}

// Advanced returns s at the position of c, or [ErrLeaseLost] or [ErrRegress]. A
// finishing checkpoint without a sequence number keeps the stored one.
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
	if p.Finished {
		p.Ahead = ""
	}
	if p.Compare(s.Position) < 0 {
		return s, fmt.Errorf("%w: shard %s is settled to %v, the checkpoint says %v",
			ErrRegress, c.Lease.ShardID, s.Position, p)
	}
	s.Position = p
	return s, nil
}

// Forgettable reports whether s is finished and no living owner has it.
func (s Shard) Forgettable(living func(owner string) bool) bool {
	return s.Position.Finished && (s.Owner == "" || !living(s.Owner))
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
	if len(p.Ahead) > staterules.MaxAhead || strings.Trim(p.Ahead, "0123456789 ") != "" {
		return fmt.Errorf("what is settled ahead, %.60q with %d bytes: up to %d bytes of sequence numbers are kept", p.Ahead, len(p.Ahead), staterules.MaxAhead)
	}
	return nil
}

// Validate checks a start before it is stored.
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

// Validate reports a missing part of the stream's name.
func (s Stream) Validate() error {
	if s.ARN == "" {
		return errors.Join(staterules.Application(s.Application), errors.New("the stream's ARN is empty"))
	}
	return staterules.Application(s.Application)
}
