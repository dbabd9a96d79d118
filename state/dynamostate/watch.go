package dynamostate

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice/internal/rows"
)

// A Store learns of other owners by reading their rows. If each worker of a large
// fleet often read all others, the reads would grow with the square of the workers.
// So the owners of an application form a ring, in the order of their names. A Store
// often looks at the next owner after each of its own. It lists the others now and
// then, and looks more closely at an owner that seems silent.
const (
	lookNext     = 1250 * time.Millisecond // between two looks at the next owner
	lookDoubtful = 450 * time.Millisecond  // at an owner that has not written since the last look
	listEvery    = 10 * time.Second        // between two lists of all owners
	// maxLook is how much of the time between two looks counts as watching, so
	// that owners have time to write after a pause of the observer or the table.
	maxLook = lookNext
)

// lock is a mutex that is held during requests. It is a channel, so that virtual time
// passes for those that wait for it.
type lock chan struct{}

func newLock() lock { return make(lock, 1) }

func (l lock) Lock()   { l <- struct{}{} }
func (l lock) Unlock() { <-l }

// others are the owners of one application, as this Store saw them.
type others struct {
	stale atomic.Bool   // somebody has news: list them soon
	heard atomic.Uint64 // see News

	mu     lock // held during a request
	listed time.Time
	failed time.Time            // last failure of a look
	err    error                // of it
	seen   map[string]*sighting // by name
	next   map[string]bool      // those to look at often
	changes
}

// sighting is the last look at an owner. All times are of the observer's monotonic
// clock: clocks of two machines are never compared.
type sighting struct {
	row     rows.Row
	stored  storedMember
	watched time.Duration // without a heartbeat
	first   time.Time     // when the row was read first
	looked  time.Time     // when the row was read last
	err     error         // the row cannot be understood: its owner lives
}

// dead reports whether the owner can never live again under this row.
func (s *sighting) dead() bool { return s.err == nil && (!s.row.Exists() || s.stored.Fenced) }

// doubtful reports whether the owner should have written a heartbeat meanwhile. Two looks
// may be so close that it had no time to.
func (s *sighting) doubtful() bool { return s.watched >= lookNext }

func (s *sighting) saw(row rows.Row) {
	now, before := time.Now(), s.stored
	if s.first.IsZero() {
		s.first = now
	}
	wrote := row.Token != s.row.Token
	s.row = row
	s.stored, s.err = decode[storedMember](row)
	// Others write to the row, too: only the owner counts its heartbeats.
	if wrote && (s.err != nil || s.stored.Store != before.Store || s.stored.Beats != before.Beats) {
		s.watched = 0
	} else {
		s.watched += min(now.Sub(s.looked), maxLook)
	}
	s.looked = now
}

// living reports whether owner lives. It is silent after silentAfter without a
// heartbeat while this Store watched it. To take its shards, fence it: then it cannot
// live again.
func (m *members) living(ctx context.Context, app, owner string, fence bool) (bool, error) {
	o := m.watch(app)
	o.mu.Lock()
	defer o.mu.Unlock()
	defer m.tell(ctx, o)
	s, err := m.look(ctx, o, app, owner)
	for err == nil {
		switch {
		case s.err != nil:
			return true, s.err
		case s.dead():
			return false, nil
		case s.watched < silentAfter:
			return true, nil
		case !fence:
			return false, nil
		}
		err = m.fence(ctx, o, s)
		m.compare(o, m.names(app))
	}
	return true, err
}

// fence fences the owner of a row as it was seen, or sees the row as it is.
func (m *members) fence(ctx context.Context, o *others, s *sighting) error {
	row, err := m.rows.Write(ctx, s.row, encode(s.stored.fence()))
	o.news = o.news || err == nil
	if err != nil {
		row, err = changed(ctx, err)
	}
	if err == nil {
		s.saw(row)
	}
	return err
}

// released returns how many shards an owner had released when this Store looked at
// it last. It reports false if the owner does not live, or was not looked at.
func (m *members) released(app, owner string) (uint64, bool) {
	o := m.watch(app)
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.seen[owner]
	if s == nil || s.dead() {
		return 0, false
	}
	return s.stored.Released, true
}

func (m *members) watch(app string) *others {
	m.mu.Lock()
	defer m.mu.Unlock()
	o := m.others[app]
	if o == nil {
		o = &others{mu: newLock(), seen: make(map[string]*sighting)}
		m.others[app] = o
	}
	return o
}

// look returns the sighting of an owner, and reads its row when it is time to. After a
// failure it pauses.
func (m *members) look(ctx context.Context, o *others, app, owner string) (*sighting, error) {
	if o.err != nil && time.Since(o.failed) < lookDoubtful {
		return nil, o.err
	}
	s, err := m.lookNow(ctx, o, app, owner)
	if o.err = err; err != nil {
		o.failed = time.Now()
		if ctx.Err() != nil { // the caller's failure
			o.err = nil
		}
	}
	return s, err
}

func (m *members) lookNow(ctx context.Context, o *others, app, owner string) (*sighting, error) {
	if s := o.seen[owner]; s == nil || o.old(listEvery) {
		if err := m.list(ctx, o, app); err != nil {
			return nil, err
		}
	}
	s := o.seen[owner]
	if s == nil { // it has no row
		s = &sighting{row: rows.Row{Key: memberKey(app, owner)}}
		o.seen[owner] = s
	}
	every := listEvery
	switch {
	case !s.row.Exists(): // a new owner may have that name by now
		every = 0
	case s.doubtful() && s.watched < silentAfter: // the last look is just when it is silent
		every = min(lookDoubtful, silentAfter-s.watched)
	case s.doubtful():
		every = lookDoubtful
	case o.next[owner], s.dead(), m.near:
		every = lookNext
	}
	if time.Since(s.looked) < every {
		return s, nil
	}
	row, err := m.rows.Get(ctx, s.row.Key)
	if err == nil {
		s.saw(row)
	}
	return s, err
}

// Vacant returns a channel that is closed once a claim of another owner's shard has a
// chance: its owner has ended, or offers it to one of this Store.
func (s *Store) Vacant() <-chan struct{} { return *s.members.vacant.Load() }

func (m *members) vacate() {
	next := make(chan struct{})
	close(*m.vacant.Swap(&next))
}

// compare notes who came and who ended since the last list.
func (m *members) compare(o *others, own map[string]bool) {
	if o.compare(own) {
		m.vacate()
	}
}

// list looks at all owners, and finds the next ones. It fences silent owners: nobody
// asks about an owner without a shard.
func (m *members) list(ctx context.Context, o *others, app string) (err error) {
	stale := o.stale.Swap(false)
	defer func() {
		if err != nil && stale {
			o.stale.Store(true)
		}
	}()
	seen := make(map[string]*sighting)
	for row, err := range m.rows.List(ctx, membersOf(app), "", 0) {
		if err != nil {
			return err
		}
		s := o.seen[row.Sort]
		if s == nil {
			s = new(sighting)
		}
		s.saw(row)
		seen[row.Sort] = s
	}
	own := m.names(app)
	for name, s := range seen {
		if !own[name] && s.err == nil && !s.dead() && s.watched >= silentAfter {
			if err := m.fence(ctx, o, s); err != nil {
				return err
			}
		}
	}
	o.seen, o.listed = seen, time.Now()
	m.compare(o, own)
	o.next = nextOf(seen, own)
	return nil
}

// old reports whether the owners were listed longer than d ago, or somebody has news.
func (o *others) old(d time.Duration) bool { return o.stale.Load() || time.Since(o.listed) >= d }

// names returns the own owners of an application.
func (m *members) names(app string) map[string]bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	names := make(map[string]bool)
	for k := range m.own {
		if k.Partition == membersOf(app) {
			names[k.Sort] = true
		}
	}
	return names
}

// nextOf returns each own owner, and the living owner that follows it in the ring of
// names; also the following ones if that one seems silent. A Store without an own
// owner looks at everybody.
func nextOf(seen map[string]*sighting, own map[string]bool) map[string]bool {
	var ring []string
	for name, s := range seen {
		if own[name] || !s.dead() {
			ring = append(ring, name)
		}
	}
	slices.Sort(ring)
	next := make(map[string]bool)
	for i, name := range ring {
		if own[name] || len(own) == 0 {
			next[name] = true
		}
		if !own[name] {
			continue
		}
		for j := range ring {
			after := ring[(i+1+j)%len(ring)]
			if own[after] {
				continue
			}
			next[after] = true
			if !seen[after].doubtful() {
				break
			}
		}
	}
	return next
}
