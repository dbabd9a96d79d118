package sqs

import (
	"context"
	"fmt"
	"slices"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/backoff"
	"github.com/sluicehq/sluice/internal/keyhash"
)

// commit sends entries until each has its result. It repeats only temporary
// refusals.
func (q *Queue) commit(ctx context.Context, entries []*entry) []error {
	url, err := q.lookUp(ctx)
	if err != nil {
		return slices.Repeat([]error{err}, len(entries))
	}
	s := sending{entries: entries, errs: make([]error, len(entries)), open: make([]int, len(entries)), behind: map[string]error{}}
	for i := range entries {
		s.open[i] = i
	}
	tries := make([]int, len(entries))
	for refusals := 0; ; {
		round := s.round(q.fifo)
		if len(round) == 0 {
			return s.errs
		}
		refused := false
		for k, r := range q.request(ctx, url, s.pick(round)) {
			i := round[k]
			tries[i]++
			s.errs[i] = r.err
			if r.again && tries[i] < q.opt.Attempts {
				refused = true
				continue
			}
			s.end(i)
		}
		if !refused {
			continue
		}
		refusals++
		if !backoff.Within(ctx, backoff.Full(q.opt.Backoff, q.opt.Backoff<<10, refusals)) {
			for _, i := range slices.Clone(s.open) {
				if s.errs[i] == nil {
					s.errs[i] = fmt.Errorf("not sent: %w", context.Cause(ctx))
				}
				s.end(i)
			}
			return s.errs
		}
	}
}

// sending is the state of one commit.
type sending struct {
	entries []*entry
	errs    []error // of open entries: the last refusal
	open    []int   // in order
	behind  map[string]error
}

// end settles entry i with its error. In a FIFO queue a temporary failure also
// fails the later entries of its group: sent first, they would overtake it. A
// permanent failure does not.
func (s *sending) end(i int) {
	s.open = slices.DeleteFunc(s.open, func(o int) bool { return o == i })
	e, err := s.entries[i], s.errs[i]
	if err == nil || e.group == "" || sluice.IsPermanent(err) || s.behind[e.group] != nil {
		return
	}
	s.behind[e.group] = err
	if e.behind != nil {
		e.behind[e.group] = err
	}
}

// round returns the entries of the next request: all open ones. For a FIFO queue
// it returns the first of each group, because SQS may accept a later entry and
// refuse an earlier one.
func (s *sending) round(fifo bool) []int {
	if !fifo {
		return slices.Clone(s.open)
	}
	var round []int
	seen := map[string]bool{}
	for _, i := range slices.Clone(s.open) {
		e := s.entries[i]
		first := s.behind[e.group]
		if first == nil {
			first = e.behind[e.group]
		}
		if first != nil {
			s.errs[i] = fmt.Errorf("not sent, as it would overtake an earlier message of group %s, which failed: %w", keyhash.Text(e.group), first)
			s.end(i)
			continue
		}
		if !seen[e.group] {
			seen[e.group] = true
			round = append(round, i)
		}
	}
	return round
}

func (s *sending) pick(round []int) []*entry {
	entries := make([]*entry, len(round))
	for k, i := range round {
		entries[k] = s.entries[i]
	}
	return entries
}
