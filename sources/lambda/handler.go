package lambda

import (
	"bytes"
	"cmp"
	"context"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/routed"
	"github.com/sluicehq/sluice/internal/wire"
)

// handler is safe for concurrent use.
type handler struct {
	matcher sluice.Matcher
	group   *flow.Group
	o       Options
	left    leftovers
	warm    atomic.Bool
}

// NewHandler returns the Handler of a function that runs the routes of m. It is
// safe for concurrent use. NewHandler panics if m is nil, if m has no route, which
// would settle every batch unseen, or if an option is out of range.
func NewHandler(m sluice.Matcher, o Options) lambda.Handler {
	if m == nil {
		panic("lambda: NewHandler without a router")
	}
	if len(m.Routes()) == 0 {
		panic("lambda: there is no route: nothing would be handled")
	}
	if err := o.validate(); err != nil {
		panic(err.Error())
	}
	return &handler{matcher: m, group: flow.NewGroup(m), o: o.withDefaults()}
}

// Invoke handles one event and returns its response. An error means that the whole
// batch failed and must be sent again. Invoke does not keep payload.
func (h *handler) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	start := time.Now()
	inv := Invocation{Cold: !h.warm.Swap(true)}
	if lc, ok := lambdacontext.FromContext(ctx); ok {
		inv.RequestID = lc.AwsRequestID
	}
	inv.Deadline, _ = ctx.Deadline()
	answer, err := h.invoke(ctx, payload, &inv)
	inv.Err = err
	inv.Took = time.Since(start)
	h.log(&inv)
	if h.o.Invoked != nil {
		h.o.Invoked(inv)
	}
	return answer, err
}

func (h *handler) invoke(ctx context.Context, payload []byte, inv *Invocation) ([]byte, error) {
	if err := h.left.wait(atMostHalf(ctx, h.o.StuckWait)); err != nil {
		return nil, err
	}
	if wire.OfQueue(payload) {
		return h.invokeQueue(ctx, payload, inv)
	}
	// The runtime reuses payload's memory after Invoke; a handler that still
	// runs reads the copy.
	page, err := sluice.DecodeEvent(bytes.Clone(payload))
	if err != nil {
		return nil, err
	}
	b := batchOf(payload, page)
	inv.Records, inv.Pipe = len(page.Records), b.pipe
	if len(page.Records) > 0 {
		var c counts
		o := h.flowOptions(ctx, inv, &c)
		o.Concurrency, o.Order, o.ParkItem = h.o.Concurrency, h.o.Order, h.o.ParkItem
		inv.Settled, inv.Stopped = h.run(ctx, page.Records, o)
		inv.Failed, inv.Parked = int(c.failed.Load()), int(c.parked.Load())
	}
	answer, from, err := b.answer(inv.Settled)
	inv.From = from
	return answer, err
}

// flowOptions are what all flows of an invocation have in common. They count in c.
func (h *handler) flowOptions(ctx context.Context, inv *Invocation, c *counts) flow.Options {
	margin := h.o.Margin
	if d, ok := ctx.Deadline(); ok { // the same for all flows, even late ones
		margin = atMostHalf(ctx, cmp.Or(margin, max(time.Second, time.Until(d)/10)))
	}
	return flow.Options{
		WindowBytes: math.MaxInt64,
		Policy:      flow.Stop,
		DeadLetter:  h.o.DeadLetter,
		MaxAge:      h.o.MaxAge,
		Margin:      margin,
		StuckAfter:  h.o.StuckAfter,
		Group:       h.group,
		Hooks:       h.flowHooks(inv.RequestID, c),
		Logger:      h.o.Logger,
	}
}

// run runs recs through a flow. It returns the number of settled records from the
// first on, and the reason if that is not all.
func (h *handler) run(ctx context.Context, recs []sluice.Record, o flow.Options) (int, error) {
	o.Window, o.MaxAhead = len(recs), len(recs)
	f := flow.Open(ctx, h.matcher, o)
	_, submitErr := f.Submit(ctx, recs...)
	// The flow itself keeps ctx's deadline. A deadline for Close would cancel
	// handlers at another time.
	settled, err := f.Close(context.WithoutCancel(ctx))
	h.left.add(f)
	return int(settled), cmp.Or(err, submitErr)
}

// atMostHalf limits d to half of the remaining time of ctx. A margin of all the
// time would start nothing at every invocation.
func atMostHalf(ctx context.Context, d time.Duration) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return max(min(d, time.Until(deadline)/2), 0)
	}
	return d
}

// counts are written by hooks. A handler that still runs calls them even after its
// invocation.
type counts struct{ failed, parked, unrouted atomic.Int64 }

func (h *handler) flowHooks(requestID string, c *counts) flow.Hooks {
	hooks := h.o.FlowHooks
	handled := hooks.Handled
	hooks.Handled = func(ctx context.Context, rec *sluice.Record, route *sluice.Route, r flow.Result, took time.Duration, err error) {
		switch r {
		case flow.Stopped:
			c.failed.Add(1)
			if route == nil {
				c.unrouted.Add(1)
			}
			h.logFailure(ctx, requestID, rec, route, err)
		case flow.Parked: // the flow logs it
			c.parked.Add(1)
		}
		if handled != nil {
			handled(ctx, rec, route, r, took, err)
		}
	}
	return hooks
}

func (h *handler) logFailure(ctx context.Context, requestID string, rec *sluice.Record, route *sluice.Route, err error) {
	h.o.Logger.ErrorContext(ctx, "record failed", "request", requestID, "table", rec.Table, "shard", rec.ShardID, "sequence", string(rec.Sequence),
		"event", rec.EventID, "route", routed.Name(route), "error", err)
}

func (h *handler) log(inv *Invocation) {
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
