package dynamostate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice/internal/rows"
	"github.com/sluicehq/sluice/state"
)

const (
	// silentAfter is how long an owner may write no heartbeat. It is more than the
	// time between two heartbeats and a stall of 2.5 s.
	silentAfter = 3750 * time.Millisecond
	// beatWithin bounds a heartbeat, so that a hung request leaves time for the next.
	// It is long, because a cut-off write leaves the row's token unknown.
	beatWithin = 2 * time.Second
	// joinWithin bounds the heartbeat of a claim, which holds up the owner's own.
	joinWithin = time.Second
	// keepFenced is how long a dead member's row is kept for people to read.
	keepFenced = 7 * 24 * time.Hour
	// leaveWithin bounds Close.
	leaveWithin = 5 * time.Second
)

var errSlow = errors.New("dynamostate: the table is slow: an earlier heartbeat was made, whose response was lost")

var errClosed = errors.New("dynamostate: the store is closed")

const expiresName = "expires"

// storedMember is an owner. It lives while its row is written again and again. A number
// that can fall is written when it is 0, too: a row keeps what a write leaves out.
type storedMember struct {
	Store  string `dynamodbav:"store"` // the id of the Store that joined last under this name
	Beats  uint64 `dynamodbav:"beats"`
	Fenced bool   `dynamodbav:"fenced"` // no beat counts any more
	// Released counts the shards that the owner has released unfinished. Others look at
	// its shards again when the number changes.
	Released uint64 `dynamodbav:"released,omitempty"`
	Takes    bool   `dynamodbav:"takes"`  // shards that others offer
	Shards   int    `dynamodbav:"shards"` // that it has, or was offered
	Work     int    `dynamodbav:"work"`   // of the shards that it has; see Moves
	// Offers are shards that others will soon release for the owner, by stream. Its
	// next heartbeat takes them out.
	Offers map[string][]string `dynamodbav:"offers"`
	Config string              `dynamodbav:"config,omitempty"` // see Publish
	// Expires is for the time to live of the table: seconds since 1970.
	Expires int64 `dynamodbav:"expires,omitempty"` // expiresName
}

// members are the owners of this Store, and what it saw of others. Its methods are
// safe for concurrent use.
type members struct {
	rows   rows.Table
	store  string                        // unique id of this Store
	load   func(app, owner string) load  // of an own member
	takes  atomic.Bool                   // own members take shards that others offer
	vacant atomic.Pointer[chan struct{}] // see Vacant
	near   bool                          // look often at each owner that a claim asks about

	config atomic.Value // string; see Publish

	mu      sync.Mutex
	closed  bool
	own     map[rows.Key]*ownMember
	others  map[string]*others // by application
	offered map[rows.Key]offer // shards, to own members
}

type ownMember struct {
	app string

	mu     lock // held during a request
	stored storedMember
	row    rows.Row
	left   bool      // by Close
	sent   time.Time // sending of the last write that was made: nobody fences before silentAfter
	failed time.Time // last failure of a claim's heartbeat
	err    error     // of it

	released atomic.Uint64 // shards
	beats    atomic.Uint64 // of stored
}

func memberKey(app, owner string) rows.Key { return rows.Key{Partition: membersOf(app), Sort: owner} }

// join stores an owner of this Store before its first claim. Before a later one it
// makes sure that the owner is not fenced.
func (m *members) join(ctx context.Context, app, owner string) error {
	k := memberKey(app, owner)
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return errClosed
	}
	o := m.own[k]
	if o == nil {
		o = &ownMember{mu: newLock(), app: app, row: rows.Row{Key: k}}
		m.own[k] = o
	}
	m.mu.Unlock()

	o.mu.Lock()
	defer o.mu.Unlock()
	if o.left {
		return errClosed
	}
	if o.stored.Store != "" {
		if time.Since(o.sent) < silentAfter/2 {
			return o.fenced()
		}
		if o.err != nil && time.Since(o.failed) < lookDoubtful { // other claims have tried
			return o.err
		}
		ctx, cancel := context.WithTimeout(ctx, joinWithin)
		defer cancel()
		o.err = m.write(ctx, o)
		o.failed = time.Now()
		return o.err
	}
	row, err := m.rows.Get(ctx, k)
	for err == nil {
		have, err := decode[storedMember](row)
		if err != nil {
			return err
		}
		switch {
		case row.Exists() && have.Store == m.store: // an earlier join, whose response was lost
			o.stored, o.row = have, row
			return m.write(ctx, o)
		case row.Exists() && have.Fenced:
			return fmt.Errorf("%w: the name %s was used before", state.ErrFenced, owner)
		}
		next, sent := storedMember{Store: m.store, Takes: m.takes.Load(), Config: m.published()}, time.Now()
		if row.Exists() {
			// An earlier process of that name, or a second one. Once it is fenced,
			// its shards are free for all. This process needs another name.
			next = have.fence()
		}
		written, err := m.rows.Write(ctx, row, encode(next))
		if err != nil {
			if row, err = changed(ctx, err); err != nil {
				return err
			}
			continue
		}
		if row = written; next.Store == m.store {
			o.stored, o.row, o.sent = next, row, sent
			m.joined(ctx, app)
			return nil
		}
	}
	return err
}

// fence returns m as it is when no beat counts any more.
func (m storedMember) fence() storedMember {
	m.Fenced, m.Expires = true, time.Now().Add(keepFenced).Unix()
	return m
}

func (o *ownMember) fenced() error {
	if !o.stored.Fenced {
		return nil
	}
	return fmt.Errorf("%w: %s was silent, and another worker may have its shards", state.ErrFenced, o.row.Sort)
}

// beat writes the row of an own member.
func (m *members) beat(ctx context.Context, o *ownMember) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return m.write(ctx, o)
}

// write does the work of beat under the lock. If a refusal took long, the next call begins with
// the row that the refusal showed: a second write could be cut off.
func (m *members) write(ctx context.Context, o *ownMember) error {
	for begun := time.Now(); ; {
		if err := o.fenced(); err != nil || o.stored.Store == "" {
			return err
		}
		next, sent := o.stored, time.Now()
		next.Beats, next.Released = next.Beats+1, o.released.Load()
		next.Config = m.published()
		next.Takes, next.Shards, next.Offers = m.takes.Load(), m.shards(o.app, o.row.Sort), nil
		next.Work = m.load(o.app, o.row.Sort).work
		row, err := m.rows.Write(ctx, o.row, encode(next))
		if err == nil {
			o.stored, o.row, o.sent = next, row, sent
			o.beats.Store(next.Beats)
			return nil
		}
		if err := m.reread(ctx, o, err); err != nil {
			return err
		}
		if time.Since(begun) > beatWithin/4 {
			return errSlow
		}
	}
}

// SilentAfter returns how long an owner must be silent before another claims its
// shards. The poller starts no handler when its last heartbeat is nearly as old.
func (s *Store) SilentAfter() time.Duration { return silentAfter }

// Heartbeat implements [state.Store]. An owner without a claim has no row.
func (s *Store) Heartbeat(ctx context.Context, owner string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, beatWithin)
	defer cancel()
	own := s.members.of(owner)
	errs := make([]error, len(own))
	var beating sync.WaitGroup
	for i, o := range own {
		beating.Go(func() { errs[i] = s.members.beat(ctx, o) })
	}
	beating.Wait()
	return errors.Join(errs...)
}

// noteReleased counts a released shard of an own member. The next heartbeat tells
// others.
func (m *members) noteReleased(app, owner string) {
	m.mu.Lock()
	o := m.own[memberKey(app, owner)]
	m.mu.Unlock()
	if o != nil {
		o.released.Add(1)
	}
}

// of returns the own members of that name, one for each application.
func (m *members) of(owner string) (all []*ownMember) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for k, o := range m.own {
		if k.Sort == owner {
			all = append(all, o)
		}
	}
	return all
}

// leave fences the owners of this Store.
func (m *members) leave() error {
	ctx, cancel := context.WithTimeout(context.Background(), leaveWithin)
	defer cancel()
	m.mu.Lock()
	own := m.own
	m.own, m.closed = nil, true
	m.mu.Unlock()
	var errs []error
	for _, o := range own {
		errs = append(errs, m.end(ctx, o))
	}
	return errors.Join(errs...)
}

func (m *members) end(ctx context.Context, o *ownMember) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.left = true
	for o.stored.Store != "" && !o.stored.Fenced {
		_, err := m.rows.Write(ctx, o.row, encode(o.stored.fence()))
		if err == nil {
			return nil
		}
		if err := m.reread(ctx, o, err); err != nil {
			return err
		}
	}
	return nil
}

// reread takes the row that a refused write found.
func (m *members) reread(ctx context.Context, o *ownMember, err error) error {
	row, err := changed(ctx, err)
	if err != nil {
		return err
	}
	have, err := decode[storedMember](row)
	if err != nil {
		return err
	}
	// Nobody deletes the row of a living member.
	o.row, o.stored.Fenced = row, have.Fenced || have.Store != m.store
	if !o.stored.Fenced {
		o.stored.Beats = have.Beats // of a write whose response was lost
		m.receive(o, have)
	}
	return nil
}
