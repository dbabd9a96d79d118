package message

import (
	"context"
	"fmt"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/item"
)

// MaxDelay is the longest delay of a message that SQS knows.
const MaxDelay = 15 * time.Minute

// Delay returns how long a message that is due at notBefore is to be delayed:
// whole seconds, rounded up, from 0 to most.
func Delay(notBefore, now time.Time, most time.Duration) time.Duration {
	d := notBefore.Sub(now)
	if d >= most { // also where rounding up would overflow
		return most.Truncate(time.Second)
	}
	if rest := d % time.Second; rest > 0 {
		d += time.Second - rest
	}
	return min(max(d, 0), most.Truncate(time.Second))
}

// Send makes a message durable in a queue; [sinks/sqs.Queue.Send] is one.
type Send func(ctx context.Context, m sluice.Message) error

// HopOptions configure Hop; the zero value is ready to use.
type HopOptions struct {
	NotBefore string           // member of the body, or dotted path, that says when it is due, in RFC 3339 (default "notBefore")
	MaxDelay  time.Duration    // of one hop, at least 1 s (default MaxDelay)
	Now       func() time.Time // default time.Now
}

// Hop makes a Middleware for routes of messages that say when they are due. One
// that comes too early, because no queue delays for so long, is sent once more,
// body and attributes unchanged, with what remains as its delay, and is then
// done with: a crash in between makes it two, never none. One that is due, or
// says nothing, goes on to the handler.
func Hop(send Send, o HopOptions) sluice.Middleware {
	if send == nil {
		panic("message: Hop without a Send")
	}
	if o.NotBefore == "" {
		o.NotBefore = "notBefore"
	}
	if o.MaxDelay == 0 {
		o.MaxDelay = MaxDelay
	}
	if o.MaxDelay < time.Second { // delays are whole seconds
		panic(fmt.Sprintf("message: HopOptions.MaxDelay is %v, want at least 1s", o.MaxDelay))
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return func(next sluice.Handler) sluice.Handler {
		return func(ctx context.Context, rec *sluice.Record) error {
			m, ok := rec.Message()
			if !ok {
				return sluice.Permanent(fmt.Errorf("a hop is for the messages of a queue, not for a %s of table %s", rec.EventName, rec.Table))
			}
			v, ok := rec.New.Lookup(o.NotBefore)
			if !ok {
				return next(ctx, rec)
			}
			due, err := time.Parse(time.RFC3339, v.Str())
			if v.Kind() != item.S || err != nil {
				return sluice.Permanent(fmt.Errorf("message %s of queue %s: %s is no time in RFC 3339, such as 2019-12-30T19:32:14Z", rec.EventID, rec.Table, o.NotBefore))
			}
			delay := Delay(due, o.Now(), o.MaxDelay)
			if delay == 0 {
				return next(ctx, rec)
			}
			if err := send(ctx, sluice.Message{Body: m.Body, Attributes: m.Attributes, GroupID: m.GroupID, Delay: delay}); err != nil {
				return fmt.Errorf("sending message %s of queue %s once more, due in %v: %w", rec.EventID, rec.Table, due.Sub(o.Now()), err)
			}
			return sluice.Skip("not due yet")
		}
	}
}
