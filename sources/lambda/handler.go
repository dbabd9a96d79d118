package lambda

import (
	"bytes"
	"context"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/flow"
)

// Handler is a lambda.Handler of aws-lambda-go. It is safe for concurrent use.
type Handler struct {
	matcher sluice.Matcher
	needs   []need
	group   *flow.Group
	o       Options
	left    leftovers
	warm    atomic.Bool
}

// NewHandler returns a Handler that runs the routes of m. It panics when m is
// nil or an option is out of its range.
func NewHandler(m sluice.Matcher, o Options) *Handler {
	if m == nil {
		panic("lambda: NewHandler without a router")
	}
	if err := o.validate(); err != nil {
		panic(err.Error())
	}
	return &Handler{matcher: m, needs: needsOf(m), group: flow.NewGroup(m), o: o.withDefaults()}
}

// Invoke handles one event and returns its answer. An error means that the
// whole batch has failed and is to be sent again. The payload is not kept.
func (h *Handler) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	start := time.Now()
	inv := Invocation{Cold: !h.warm.Swap(true)}
	if lc, ok := lambdacontext.FromContext(ctx); ok {
		inv.RequestID = lc.AwsRequestID
	}
	answer, err := h.invoke(ctx, payload, &inv)
	inv.Err = err
	inv.Took = time.Since(start)
	h.log(&inv)
	if h.o.Hooks.Invoked != nil {
		h.o.Hooks.Invoked(inv)
	}
	return answer, err
}

func (h *Handler) invoke(ctx context.Context, payload []byte, inv *Invocation) ([]byte, error) {
	t := timesOf(ctx, h.o.Margin)
	if err := h.left.wait(ctx, t.limit(h.o.StuckWait)); err != nil {
		return nil, err
	}
	// The runtime reuses payload's memory after Invoke; a handler that is still
	// running then reads the copy.
	page, err := sluice.DecodeEvent(bytes.Clone(payload))
	if err != nil {
		return nil, err
	}
	b := batchOf(payload, page)
	inv.Records, inv.Pipe = len(page.Records), b.pipe
	if err := checkViews(h.needs, page.Records); err != nil {
		return nil, err
	}
	if len(page.Records) > 0 {
		inv.Settled, inv.Stopped = h.run(ctx, t, page.Records, inv)
	}
	answer, from, err := b.answer(inv.Settled)
	inv.From = from
	return answer, err
}

// run takes recs through a flow and returns how many from the first are
// settled and, when that is not all, why.
func (h *Handler) run(ctx context.Context, t times, recs []sluice.Record, inv *Invocation) (int, error) {
	var c counts
	runCtx, cancel := t.until(ctx, t.cancel)
	defer cancel()
	f := flow.Open(runCtx, h.matcher, flow.Options{
		Concurrency: h.o.Concurrency,
		Window:      len(recs),
		WindowBytes: math.MaxInt64,
		MaxAhead:    len(recs),
		Order:       h.o.Order,
		Policy:      flow.Stop,
		DeadLetter:  h.o.DeadLetter,
		ParkItem:    h.o.ParkItem,
		MaxAge:      h.o.MaxAge,
		Margin:      t.margin / 2, // before the end of runCtx, itself half a margin before the deadline
		StuckAfter:  h.o.StuckAfter,
		Group:       h.group,
		Hooks:       h.flowHooks(inv.RequestID, &c),
		Logger:      h.o.Logger,
	})
	_, submitErr := f.Submit(runCtx, recs...)
	closeCtx, cancelClose := t.until(ctx, t.answer)
	defer cancelClose()
	settled, err := f.Close(closeCtx)
	h.left.add(f)
	inv.Failed, inv.Parked = int(c.failed.Load()), int(c.parked.Load())
	if err == nil {
		err = submitErr
	}
	return int(settled), err
}

// counts are written by hooks, which a handler left running calls even after
// its invocation.
type counts struct{ failed, parked atomic.Int64 }

func (h *Handler) flowHooks(requestID string, c *counts) flow.Hooks {
	hooks := h.o.FlowHooks
	handled := hooks.Handled
	hooks.Handled = func(rec *sluice.Record, route *sluice.Route, r flow.Result, took time.Duration, err error) {
		switch r {
		case flow.Stopped:
			c.failed.Add(1)
			h.logRecord("record failed", requestID, rec, route, err)
		case flow.Parked:
			c.parked.Add(1)
			h.logRecord("record parked", requestID, rec, route, err)
		}
		if handled != nil {
			handled(rec, route, r, took, err)
		}
	}
	return hooks
}

func (h *Handler) logRecord(msg, requestID string, rec *sluice.Record, route *sluice.Route, err error) {
	name := ""
	if route != nil {
		name = route.Name
	}
	h.o.Logger.Error(msg, "request", requestID, "table", rec.Table, "sequence", rec.Sequence,
		"event", rec.EventID, "route", name, "error", err)
}

func (h *Handler) log(inv *Invocation) {
	if inv.Err == nil && inv.Settled == inv.Records {
		return
	}
	level, msg, err := slog.LevelWarn, "batch stopped: the rest comes again", inv.Stopped
	if inv.Err != nil {
		level, msg, err = slog.LevelError, "batch failed: all of it comes again", inv.Err
	}
	h.o.Logger.Log(context.Background(), level, msg, "request", inv.RequestID,
		"records", inv.Records, "settled", inv.Settled, "failed", inv.Failed, "from", inv.From, "error", err)
}
