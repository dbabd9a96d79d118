package poller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/parallel"
	"github.com/sluicehq/sluice/sources/poller/internal/lineage"
)

// answers are what came of asking for parents.
type answers struct {
	verdicts map[string]lineage.Verdict
	err      error // of an unanswered call
}

// ask asks for unlisted parents in the background.
func (s *stream) ask(ctx context.Context, finds chan<- found) {
	parents := s.forest.UnlistedParents()
	if len(parents) == 0 {
		s.asked(nil)
	}
	if len(parents) == 0 || s.asking || ctx.Err() != nil {
		return
	}
	s.asking = true
	s.children.Go(func() {
		a := answers{verdicts: make(map[string]lineage.Verdict)}
		var mu sync.Mutex
		parallel.Do(len(parents), startCalls, func(i int) {
			id, v := parents[i], lineage.Unanswered
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
		finds <- found{asked: &a}
	})
}

// askFor asks for one shard. When it is no more and was ours to read, that is
// a gap, and durable before it returns.
func (s *stream) askFor(ctx context.Context, id string) (lineage.Verdict, error) {
	var err error
	for range 1 + lineage.Confirmations {
		call, cancel := context.WithTimeout(ctx, s.p.o.CallTimeout)
		_, err = s.api.GetShardIterator(call, &dynamodbstreams.GetShardIteratorInput{
			StreamArn: &s.id.ARN, ShardId: &id, ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
		})
		cancel()
		if err == nil {
			return lineage.Exists, nil
		}
		if classify(err) != invalid { // else the service may no longer accept such an id
			break
		}
	}
	shard := s.shard(id)
	switch k := classify(err); {
	case ctx.Err() != nil:
		return lineage.Unanswered, nil
	case k != notFound && k != trimmed && k != invalid:
		s.p.failed(shard, getIterator, err, k, 0)
		return lineage.Unanswered, err
	case !lineage.BeginningOf(id, "", s.start).Ours(s.p.clock.now()):
		return lineage.Over, nil
	}
	g := &sluice.Gap{Table: shard.Table, StreamARN: shard.StreamARN, ShardID: shard.ID, Gone: true, Found: time.Now()}
	if err := s.p.foundGap(ctx, g); err != nil {
		return lineage.Unanswered, nil
	}
	if s.p.o.Gaps == Halt {
		return lineage.Lost, nil
	}
	return lineage.Over, nil
}

// heed applies the answers to the forest.
func (s *stream) heed(a *answers) {
	s.asking = false
	for id, v := range a.verdicts {
		if v == lineage.Exists {
			s.soon = soon
		}
		for _, child := range s.forest.Answered(id, v) {
			s.halt(s.shard(child))
			s.p.ended(s.shard(child), EndHalted, errLostParent)
		}
	}
	s.asked(a.err)
	s.review()
}

// asked notes the result of asking for parents.
func (s *stream) asked(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asks.note(err)
}

var errLostParent = errors.New("its parent was trimmed before it was read")
