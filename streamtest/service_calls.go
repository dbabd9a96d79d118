package streamtest

import (
	"slices"
	"time"

	"github.com/sluicehq/sluice"
)

// Call is one call of the API, seen by the service.
type Call struct {
	Op        string    // such as GetRecords
	Time      time.Time // by the service's clock
	Table     string
	StreamARN string
	Shard     string // of a DescribeStream call: the shard of its ShardFilter
	// Iterator is the ShardIteratorType of a GetShardIterator call, or the type
	// of a DescribeStream call's ShardFilter.
	Iterator string
	Sequence sluice.Sequence // of a GetShardIterator call
	Error    string          // type of the error response
	Records  int             // in the response
}

const keptCalls = 100_000

type calls struct {
	n    int // total number
	kept []Call
	told []func(Call)
}

func (l *calls) add(c Call) (nth int) {
	if len(l.kept) >= 2*keptCalls {
		l.kept = slices.Delete(l.kept, 0, keptCalls)
	}
	l.kept = append(l.kept, c)
	l.n++
	return l.n
}

// Calls returns the calls so far, oldest first; at most the newest 100,000.
func (s *Service) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := s.calls.kept
	return slices.Clone(kept[max(0, len(kept)-keptCalls):])
}

// OnCall makes the service call f with every later call, after its response is
// decided and before it is sent. f runs on the goroutine of that call,
// concurrently with other calls, and may use the service and its tables.
func (s *Service) OnCall(f func(Call)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls.told = append(slices.Clip(s.calls.told), f)
}
