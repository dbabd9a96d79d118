package message

import (
	"context"
	"fmt"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/item"
)

// MaxDelay is the longest delay of an SQS message.
const MaxDelay = 15 * time.Minute

// Delay returns the delay of a message that is due at notBefore: whole seconds,
// rounded up, from 0 to most.
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

// Options configure [Later] and [Hop]; the zero value is ready to use.
type Options struct {
	MaxDelay  time.Duration    // of one hop, at least 1 s (default MaxDelay)
	Now       func() time.Time // default time.Now
	NotBefore string           // for Hop: member of the body, or dotted path, with the due time in RFC 3339 (default "notBefore")
}

func (o Options) withDefaults() Options {
	if o.MaxDelay == 0 {
		o.MaxDelay = MaxDelay
	}
	if o.MaxDelay < time.Second { // delays are whole seconds
		panic(fmt.Sprintf("message: Options.MaxDelay is %v, want at least 1s", o.MaxDelay))
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NotBefore == "" {
		o.NotBefore = "notBefore"
	}
	return o
}

// Hop makes a Middleware for routes of messages with a due time. A message that
// comes too early, because queues limit delays, is sent again with the remaining
// delay, and then settled. Body and attributes do not change. A crash in between
// duplicates it, but never loses it. A message that is due, or has no due time,
// goes to the handler.
//
// send makes a message durable in the route's queue, such as Send of a
// sinks/sqs.Queue.
func Hop(send func(context.Context, sluice.Message) error, o Options) sluice.Middleware {
	if send == nil {
		panic("message: Hop without a send")
	}
	o = o.withDefaults()
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
