package message

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/item"
)

// Check is a message to yourself: look at this item again at NotBefore. A handler
// sends it with [Later] and returns. So waiting blocks neither records nor
// messages.
type Check struct {
	Kind      string      // kind of the message, and so of its route: "<Kind>#MESSAGE"
	Table     string      // of the item; may be empty
	Key       sluice.Item // of the item; returned unchanged, digit by digit
	NotBefore time.Time
	DedupeKey string // distinguishes the item's checks; may be empty
}

// Body returns the check as a message's body. Equal checks have equal bodies.
//
//	{"kind":"order.unpaid","v":1,"table":"orders","key":{"pk":{"S":"o-1"}},"notBefore":"2019-12-30T19:32:14Z","dedupeKey":"o-1#1"}
func (c Check) Body() []byte {
	var b Body
	b.Str("kind", c.Kind).Int("v", 1)
	if c.Table != "" {
		b.Str("table", c.Table)
	}
	b.JSON("key", c.Key.Raw()).Time("notBefore", c.NotBefore)
	if c.DedupeKey != "" {
		b.Str("dedupeKey", c.DedupeKey)
	}
	return b.Bytes()
}

func (c Check) validate() error {
	switch {
	case c.Kind == "":
		return errors.New("a check without a Kind: no route would take it")
	case !c.Key.Exists():
		return fmt.Errorf("check %q without a Key: nothing would be looked at", c.Kind)
	case c.NotBefore.IsZero():
		return fmt.Errorf("check %q without a NotBefore", c.Kind)
	}
	return nil
}

// Later returns a function that sends checks through a standard queue. When it
// returns nil, the check is durable. The check arrives at its route at NotBefore,
// or at once if that is past. For a delay beyond the queue's limit, the route
// needs [Hop]. send makes a message durable in the queue, such as Send of a
// sinks/sqs.Queue.
//
// A handler that runs again sends its check again: the route must accept
// duplicates. The message has the attributes notBefore and dedupeKey.
func Later(send func(context.Context, sluice.Message) error, o Options) func(ctx context.Context, c Check) error {
	if send == nil {
		panic("message: Later without a send")
	}
	if o.NotBefore != "" {
		panic(fmt.Sprintf("message: Later: Options.NotBefore is %q; a check has its due time in notBefore", o.NotBefore))
	}
	o = o.withDefaults()
	return func(ctx context.Context, c Check) error {
		if err := c.validate(); err != nil {
			return sluice.Permanent(fmt.Errorf("message: %w", err))
		}
		m := sluice.Message{
			Body:       string(c.Body()),
			Delay:      Delay(c.NotBefore, o.Now(), o.MaxDelay),
			Attributes: map[string]sluice.MessageAttribute{"notBefore": {Value: formatTime(c.NotBefore)}},
		}
		if c.DedupeKey != "" {
			m.Attributes["dedupeKey"] = sluice.MessageAttribute{Value: c.DedupeKey}
		}
		return send(ctx, m)
	}
}

// ReadCheck returns the check in a message's record. Another message is a
// sluice.Permanent error.
func ReadCheck(rec *sluice.Record) (Check, error) {
	m, ok := rec.Message()
	if !ok {
		return Check{}, sluice.Permanent(fmt.Errorf("a check is a message of a queue, not a %s of table %s", rec.EventName, rec.Table))
	}
	bad := func(err error) (Check, error) {
		return Check{}, sluice.Permanent(fmt.Errorf("message %s of queue %s is no check: %w", rec.EventID, rec.Table, err))
	}
	var j struct {
		Kind, Table, DedupeKey string
		Key                    json.RawMessage
		NotBefore              time.Time
	}
	if err := json.Unmarshal([]byte(m.Body), &j); err != nil {
		return bad(err)
	}
	c := Check{Kind: j.Kind, Table: j.Table, NotBefore: j.NotBefore, DedupeKey: j.DedupeKey}
	if len(j.Key) > 0 {
		var err error
		if c.Key, err = item.Parse(j.Key); err != nil {
			return bad(fmt.Errorf("key: %w", err))
		}
	}
	if err := c.validate(); err != nil {
		return bad(err)
	}
	return c, nil
}
