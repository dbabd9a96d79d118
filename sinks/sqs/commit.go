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
	s := sending{open: slices.Clone(entries), behind: map[string]error{}}
	for refusals := 0; ; {
		round := s.round(q.fifo)
		if len(round) == 0 {
			return errorsOf(entries)
		}
		q.request(ctx, url, round)
		refused := false
		for _, e := range round {
			if e.tries++; e.again && e.tries < q.opt.Attempts {
				refused = true
				continue
			}
			s.end(e)
		}
		if !refused {
			continue
		}
		refusals++
		if !backoff.Within(ctx, backoff.Full(q.opt.Backoff, q.opt.Backoff<<10, refusals)) {
			for _, e := range slices.Clone(s.open) {
				if e.err == nil {
					e.err = s.overtaking(e)
				}
				if e.err == nil { // the first of its group
					e.err = fmt.Errorf("not sent: the time ran out: %w", context.DeadlineExceeded)
				}
				s.end(e)
			}
			return errorsOf(entries)
		}
	}
}

func errorsOf(entries []*entry) []error {
	errs := make([]error, len(entries))
	for i, e := range entries {
		errs[i] = e.err
	}
	return errs
}

// sending is the state of one commit.
type sending struct {
	open   []*entry // in order
	behind map[string]error
}

// end settles an entry with its error. In a FIFO queue a temporary failure also
// fails the later entries of its group: sent first, they would overtake it. A
// permanent failure does not.
func (s *sending) end(e *entry) {
	s.open = slices.DeleteFunc(s.open, func(o *entry) bool { return o == e })
	if e.err == nil || e.group == "" || sluice.IsPermanent(e.err) || s.behind[e.group] != nil {
		return
	}
	s.behind[e.group] = e.err
	if e.behind != nil {
		e.behind[e.group] = e.err
	}
}

// overtaking returns why e may not be sent: an earlier message of its group failed.
func (s *sending) overtaking(e *entry) error {
	first := s.behind[e.group]
	if first == nil {
		first = e.behind[e.group]
	}
	if first == nil {
		return nil
	}
	return fmt.Errorf("not sent, as it would overtake an earlier message of group %s, which failed: %w", keyhash.Text(e.group), first)
}

// round returns the entries of the next request: all open ones. For a FIFO queue
// it returns the first of each group, because SQS may accept a later entry and
// refuse an earlier one.
func (s *sending) round(fifo bool) []*entry {
	if !fifo {
		return slices.Clone(s.open)
	}
	var round []*entry
	seen := map[string]bool{}
	for _, e := range slices.Clone(s.open) {
		if err := s.overtaking(e); err != nil {
			e.err = err
			s.end(e)
			continue
		}
		if !seen[e.group] {
			seen[e.group] = true
			round = append(round, e)
		}
	}
	return round
}
