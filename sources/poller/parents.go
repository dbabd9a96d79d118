package poller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/sluicehq/sluice"
)

// An unlisted parent was usually trimmed. But listings can show children long
// before their parents, and reading such a child first breaks the order of its
// items. So the poller asks the service for the parent by its id before it begins
// the child.

// lateListings is the number of listings in a row that may lack a shard that the
// service knows. A listing would show the shard's own parent; without one it is
// read after that many listings.
const lateListings = 5

// verdict is the service's answer about an unlisted parent.
type verdict uint8

const (
	unanswered verdict = iota // ask again
	there                     // to be read before its children
	over                      // gone, and its children may start
	lost                      // gone, with a gap at which its children halt
)

// orphaned reports whether n waits for an unknown parent.
func (f *forest) orphaned(n *node) bool {
	return n.phase == waiting && n.parent != "" && f.nodes[n.parent] == nil && !n.stored && !n.parentOver
}

// doubted returns the parents to ask the service for.
func (f *forest) doubted() []string {
	ids := make(map[string]bool)
	for _, n := range f.nodes {
		if f.orphaned(n) && n.orphan >= confirmations {
			ids[n.parent] = true
		}
	}
	return slices.Sorted(maps.Keys(ids))
}

// answered applies the service's verdict on a parent, and returns its children
// that halt.
func (f *forest) answered(id string, v verdict) (halting []*node) {
	if v == there {
		n := f.node(id)
		n.closed, n.unlisted = true, true // it has a child
		return nil
	}
	for _, n := range f.nodes {
		if n.parent != id || !f.orphaned(n) {
			continue
		}
		switch v {
		case over:
			n.parentOver = true
		case lost:
			halting = append(halting, n)
		}
	}
	return halting
}

// answers are the verdicts on parents.
type answers struct {
	verdicts map[string]verdict
	err      error // of an unanswered request
}

// ask asks for unlisted parents in the background.
func (s *stream) ask(ctx context.Context, finds chan<- found) {
	parents := s.forest.doubted()
	if len(parents) == 0 {
		s.asked(nil)
	}
	if len(parents) == 0 || s.asking || ctx.Err() != nil {
		return
	}
	s.asking = true
	s.children.Go(func() {
		a := answers{verdicts: make(map[string]verdict)}
		var mu sync.Mutex
		var wg sync.WaitGroup
		slots := make(chan struct{}, startCalls)
		for _, id := range parents {
			slots <- struct{}{}
			wg.Go(func() {
				defer func() { <-slots }()
				v := unanswered
				err := recovered(func() (err error) {
					v, err = s.askFor(ctx, id)
					return err
				})
				mu.Lock()
				defer mu.Unlock()
				a.verdicts[id] = v
				if err != nil {
					a.err = fmt.Errorf("shard %s, which other shards wait for, is in no listing, and asking for it fails: %w", id, err)
				}
			})
		}
		wg.Wait()
		finds <- found{asked: &a}
	})
}

// askFor asks for one shard. If a shard that the application must read is gone,
// that is a gap, and durable before askFor returns.
func (s *stream) askFor(ctx context.Context, id string) (verdict, error) {
	var err error
	for range 1 + confirmations {
		call, cancel := context.WithTimeout(ctx, s.p.o.CallTimeout)
		_, err = s.api.GetShardIterator(call, &dynamodbstreams.GetShardIteratorInput{
			StreamArn: &s.id.ARN, ShardId: &id, ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
		})
		cancel()
		if err == nil {
			return there, nil
		}
		if classify(err) != invalid { // else the service may no longer accept such an id
			break
		}
	}
	shard := Shard{Table: s.table, StreamARN: s.id.ARN, ID: id}
	switch k := classify(err); {
	case ctx.Err() != nil:
		return unanswered, nil
	case k != notFound && k != trimmed && k != invalid:
		s.p.failed(shard, getIterator, err, k, 0)
		return unanswered, err
	case !beginningOf(id, "", s.start).ours(s.p.clock.now()):
		return over, nil
	}
	g := &sluice.Gap{Table: shard.Table, StreamARN: shard.StreamARN, ShardID: shard.ID, Gone: true, Found: time.Now()}
	if err := s.p.foundGap(ctx, g); err != nil {
		return unanswered, nil
	}
	if s.p.o.Gaps == Halt {
		return lost, nil
	}
	return over, nil
}

// heed applies the answers to the forest.
func (s *stream) heed(a *answers) {
	s.asking = false
	for id, v := range a.verdicts {
		if v == there {
			s.soon = soon
		}
		for _, n := range s.forest.answered(id, v) {
			s.halt(n)
			s.p.ended(Shard{Table: s.table, StreamARN: s.id.ARN, ID: n.id}, EndHalted, errLostParent)
		}
	}
	s.asked(a.err)
	s.review()
}

// asked notes the result of asking for parents.
func (s *stream) asked(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.askErr == nil {
		s.askSince = time.Now()
	}
	s.askErr = err
}

var errLostParent = errors.New("its parent was trimmed before it was read")
