package dynamostate

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"github.com/sluicehq/sluice/internal/rows"
	"github.com/sluicehq/sluice/state"
)

// A member's row is its mailbox, too. Whoever writes to it causes the refusal of the
// member's next heartbeat, which shows the row: so a mailbox is read without a request.
// Any such write says that there is news of members.

const (
	// offerFor is how long an offered shard counts as one of the receiver's.
	offerFor = 15 * time.Second
	// tellWithin bounds telling others, which holds up a claim.
	tellWithin = 500 * time.Millisecond
)

// offer is a shard that another owner will soon release for an own member.
type offer struct {
	to string
	at time.Time
}

// receive reads the mailbox of an own member.
func (m *members) receive(o *ownMember, have storedMember) {
	others := m.watch(o.app)
	others.stale.Store(true)
	others.heard.Add(1)
	if len(have.Offers) > 0 {
		defer m.vacate()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for arn, ids := range have.Offers {
		for _, id := range ids {
			m.offered[shardKey(state.Stream{Application: o.app, ARN: arn}, id)] = offer{o.row.Sort, time.Now()}
		}
	}
}

// offers returns how many shards were offered to owner, and the place of k among them, in
// the order of their release: 0 is the first, -1 says that it was not offered. The zero
// key asks for the number alone.
func (m *members) offers(owner string, k rows.Key) (all, place int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f, ok := m.offered[k]; k.Sort != "" && (!ok || f.to != owner || time.Since(f.at) > offerFor) {
		return 0, -1
	}
	maps.DeleteFunc(m.offered, func(_ rows.Key, f offer) bool { return time.Since(f.at) > offerFor })
	for other, f := range m.offered {
		if f.to == owner {
			all++
			if other.Sort < k.Sort {
				place++
			}
		}
	}
	return all, place
}

// took ends the offer of a shard.
func (m *members) took(k rows.Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.offered, k)
}

// shards returns how many shards an own member has, or was offered.
func (m *members) shards(app, owner string) int {
	all, _ := m.offers(owner, rows.Key{})
	return all + m.load(app, owner).shards
}

// errBusy says that a member wrote its heartbeat whenever others wrote to its mailbox.
var errBusy = errors.New("dynamostate: a member's row changes all the time")

// post writes to the mailbox of another member, which must live. Its sighting is locked.
func (m *members) post(ctx context.Context, s *sighting, letter func(storedMember) map[string]types.AttributeValue) error {
	for range 5 {
		row, err := m.rows.Write(ctx, s.row, letter(s.stored))
		posted := err == nil
		if err != nil {
			row, err = changed(ctx, err)
		}
		if err != nil {
			return err
		}
		if s.saw(row); posted || s.dead() || s.err != nil {
			return s.err
		}
	}
	return errBusy
}

// postOffers offers shards of one application.
func (m *members) postOffers(ctx context.Context, s *sighting, leases []state.Lease) error {
	return m.post(ctx, s, func(have storedMember) map[string]types.AttributeValue {
		all := make(map[string][]string)
		for arn, ids := range have.Offers {
			all[arn] = append(all[arn], ids...)
		}
		for _, l := range leases {
			all[l.Stream.ARN] = append(all[l.Stream.ARN], l.ShardID)
		}
		v, err := attributevalue.Marshal(all)
		if err != nil {
			panic(err) // of texts
		}
		return map[string]types.AttributeValue{"offers": v}
	})
}

// tell has all living members list the members anew, if there is news. It is an effort:
// who is not told lists within listEvery. o is locked.
func (m *members) tell(ctx context.Context, o *others) {
	if !o.news {
		return
	}
	o.news = false
	ctx, cancel := context.WithTimeout(ctx, tellWithin)
	defer cancel()
	m.postAll(ctx, o)
}

// postAll writes to the mailboxes of all other living members. It returns the names of
// those that it could not write to, or whose rows it does not understand. o is locked.
func (m *members) postAll(ctx context.Context, o *others) (deaf []string) {
	var mu sync.Mutex
	var g errgroup.Group
	g.SetLimit(atOnce)
	for name, s := range o.seen {
		if s.dead() || s.watched >= silentAfter || m.isOwn(s.row.Key) {
			continue
		}
		g.Go(func() error {
			err := s.err
			if err == nil {
				err = m.post(ctx, s, func(storedMember) map[string]types.AttributeValue { return nil })
			}
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				deaf = append(deaf, name)
			}
			return nil
		})
	}
	_ = g.Wait()
	slices.Sort(deaf)
	return deaf
}

// Announce has every living worker of an application count News up with its next
// heartbeat: something was written that it should read. The cost is a write for each.
// deaf names the workers that could not be told.
func (s *Store) Announce(ctx context.Context, app string) (deaf []string, err error) {
	m := &s.members
	o := m.watch(app)
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := m.list(ctx, o, app); err != nil {
		return nil, err
	}
	return m.postAll(ctx, o), nil
}

// News counts what this Store's workers of an application have heard of: each
// Announce of another Store, and more. It makes no request. A worker counts up after
// its first claim, too: what was announced before may have missed it.
func (s *Store) News(app string) uint64 { return s.members.watch(app).heard.Load() }

// joined lists the members after an own one has joined, and tells them.
func (m *members) joined(ctx context.Context, app string) {
	o := m.watch(app)
	o.heard.Add(1)
	o.mu.Lock()
	defer o.mu.Unlock()
	if m.list(ctx, o, app) == nil {
		o.news = true
		m.tell(ctx, o)
	}
}

func (m *members) isOwn(k rows.Key) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.own[k] != nil
}
