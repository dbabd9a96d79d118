package poller

import (
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/sluicehq/sluice/sources/poller/internal/lineage"
)

// A table's streams are its generations. This file detects the end of
// one. join.go begins one, and follow.go decides when.

// sureAfter is the number of listings in a row that must agree that a replaced
// stream is empty or deleted. That takes three seconds. Afterwards nothing reads
// the stream again.
const sureAfter = 4

// ending detects the end of a replaced stream. Only run's goroutine uses it.
type ending struct {
	quiet   int // listings in a row with all shards settled and none new
	denials int // listings in a row that the service refused: stream unknown
	round   int // incremented by events that a running listing cannot show
}

// concluded notes what a full listing says about the end.
func (s *stream) concluded(f found, fresh int) {
	switch {
	case f.parent != "":
		if fresh > 0 {
			s.stirred()
		}
	case f.err == nil:
		s.denials = 0
		if fresh == 0 && f.round == s.round && s.isReplaced() && s.forest.Settled() && s.forest.Agrees(f.shards) {
			s.quiet++
		} else {
			s.quiet = 0
		}
	case classify(f.err) == notFound:
		s.denials++
	}
	if s.isReplaced() && s.denials >= sureAfter {
		s.forest.StreamDenied()
	}
}

// stirred discards the evidence of earlier listings about the end.
func (s *stream) stirred() {
	s.quiet = 0
	s.round++
}

// drained reports whether a replaced stream is over: all its shards are settled to
// their end and stored as such, or none was ever known.
func (s *stream) drained() bool {
	return s.running == 0 && s.looking == 0 && !s.asking && s.isReplaced() && s.forest.Settled() &&
		(s.quiet >= sureAfter || s.denials >= sureAfter)
}

// confirming reports whether another listing may soon confirm the end.
func (s *stream) confirming() bool {
	return s.isReplaced() && s.denials < sureAfter && (s.denials > 0 || s.forest.Settled())
}

// replace notes that a later stream replaced this one.
func (s *stream) replace() {
	s.mu.Lock()
	s.replaced = true
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *stream) isReplaced() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.replaced
}

func (s *stream) isHalted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.halted
}

// ailing reports whether the stream seems to have come to its end.
func (s *stream) ailing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status == types.StreamStatusDisabled || s.status == types.StreamStatusDisabling || classify(s.lists.err) == notFound
}

// waitsFor returns the longest wait of a stream for the one before. An old stream,
// such as after hours of downtime, waits for a tenth of the time that its first
// records have left. So it starts in time even if the process restarts again and
// again and waits anew each time.
func (p *Poller) waitsFor(arn string) time.Duration {
	created := createdAt(arn)
	if created.IsZero() {
		return lastChance
	}
	age := p.clock.now().Sub(created)
	return max(patience-age, min(lastChance, (lineage.Retention-age)/10), 0)
}

// heard notes a good response about the stream's shards.
func (s *stream) heard() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heardAt = time.Now()
}

func (s *stream) listed(status types.StreamStatus) {
	s.mu.Lock()
	s.lists.err, s.status = nil, status
	s.mu.Unlock()
	s.ring()
}

func (s *stream) troubled(err error) {
	s.mu.Lock()
	s.lists.note(err)
	s.mu.Unlock()
	s.ring()
}

// ring tells the follower that the stream seems to have ended.
func (s *stream) ring() {
	if s.ailing() {
		select {
		case s.bell <- struct{}{}:
		default: // already rung, or no follower
		}
	}
}

// trouble returns why the stream makes the poller unready, or "".
func (s *stream) trouble(staleAfter, listedAfter time.Duration) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := classify(s.lists.err)
	switch {
	case s.broke.err != nil:
		return fmt.Sprintf("table %s: reading stream %s failed at %s and begins again by itself: %v", s.table, s.id.ARN, s.broke.since.Format(time.RFC3339), brief(s.broke.err))
	case s.asks.err != nil && (classify(s.asks.err) == refused || time.Since(s.asks.since) > staleAfter):
		return fmt.Sprintf("table %s: %v on %s", s.table, s.asks.err, s.id.ARN)
	case s.replaced && k == notFound:
		return ""
	case s.lists.err == nil && time.Since(s.heardAt) > listedAfter:
		return fmt.Sprintf("table %s: the shards of stream %s were not listed since %s: see what else is not ready, and restart when it does not go on", s.table, s.id.ARN, s.heardAt.Format(time.RFC3339))
	case s.replaced && s.lists.err == nil:
		return ""
	case s.lists.err != nil && (k == refused || k == notFound || time.Since(s.lists.since) > staleAfter):
		return fmt.Sprintf("table %s: shards cannot be listed: %v on %s", s.table, s.lists.err, s.id.ARN)
	case s.status == types.StreamStatusDisabled || s.status == types.StreamStatusDisabling:
		why := ""
		if s.bell == nil {
			why = "; it was named by its ARN, and no later stream of the table is looked for"
		}
		return fmt.Sprintf("table %s: stream %s is %s: nothing new will arrive%s", s.table, s.id.ARN, s.status, why)
	}
	return ""
}
