package lambda

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/parallel"
	"github.com/sluicehq/sluice/internal/wire"
)

const defaultConcurrency = 64

// invokeQueue handles an event of a queue. Its response names every unsettled
// message, and in a FIFO queue all later ones of its group.
func (h *handler) invokeQueue(ctx context.Context, payload []byte, inv *Invocation) ([]byte, error) {
	recs, err := wire.Messages(payload)
	if err != nil {
		return nil, err
	}
	inv.Queue, inv.Records = true, len(recs)
	for i := range recs {
		if recs[i].EventID == "" {
			return nil, fmt.Errorf("message %d of %d (queue %q) has no messageId to report it by: the whole batch fails", i+1, len(recs), recs[i].Table)
		}
	}
	lanes := lanesOf(recs)
	rests := make([][]string, len(lanes)) // ids of unsettled messages
	errs := make([]error, len(lanes))
	var c counts
	o := h.flowOptions(ctx, inv, &c)
	o.Concurrency, o.Order = 1, flow.ByShard
	parallel.Do(len(lanes), cmp.Or(h.o.Concurrency, defaultConcurrency), func(i int) {
		rests[i], errs[i] = h.runLane(ctx, lanes[i], o)
	})
	failures := slices.Concat(rests...)
	inv.Settled = len(recs) - len(failures)
	inv.Failed, inv.Parked = int(c.failed.Load()), int(c.parked.Load())
	inv.Stopped = cmp.Or(errs...)
	if lost := int(c.unrouted.Load()); lost > 0 && lost == inv.Failed && inv.Settled == 0 {
		// Without ReportBatchItemFailures a response would lose all of them. In
		// a FIFO queue only the first message of each group was tried.
		return nil, fmt.Errorf("no message of queue %q has a route: is it the right queue? The first: %w", recs[0].Table, inv.Stopped)
	}
	slices.Sort(failures)
	failures = slices.Compact(failures) // a batch may have a message twice
	if len(failures) > 0 {
		inv.From = failures[0]
	}
	return answerOf(nil, failures), nil
}

// lanesOf groups messages that run in order: those of one group of a FIFO queue.
// In a standard queue each message runs alone, even a duplicate.
func lanesOf(recs []sluice.Record) (lanes [][]sluice.Record) {
	if len(recs) == 0 || !strings.HasSuffix(recs[0].StreamARN, ".fifo") {
		for i := range recs {
			lanes = append(lanes, recs[i:i+1:i+1])
		}
		return lanes
	}
	of := map[string]int{}
	for i := range recs {
		m, _ := recs[i].Message()
		at, ok := of[m.GroupID]
		if !ok {
			at = len(lanes)
			of[m.GroupID] = at
			lanes = append(lanes, nil)
		}
		lanes[at] = append(lanes[at], recs[i])
	}
	return lanes
}

// runLane runs a lane through its own flow and returns the ids of unsettled
// messages.
func (h *handler) runLane(ctx context.Context, lane []sluice.Record, o flow.Options) (rest []string, err error) {
	ids := make([]string, len(lane)) // the flow owns the records
	for i := range lane {
		ids[i] = lane[i].EventID
	}
	n, err := h.run(ctx, lane, o)
	if rest = ids[n:]; len(rest) > 0 && err == nil {
		err = errors.New("not started")
	}
	return rest, err
}
