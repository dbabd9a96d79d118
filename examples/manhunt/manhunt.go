// Package manhunt looks for people: a search tries a contact's methods (call,
// text, email, webhook) in their order, with waits, until the contact answers,
// the search is cancelled, or the methods run out.
//
// One table holds contacts, their methods, searches and attempts; one queue
// holds the messages of steps that are to be tried. The table's stream drives
// both: a new search queues its first step, an attempt that was made queues the
// next one, and after the last the expiry. The consumer of the queue makes the
// attempts.
//
// [Register] is the whole of it; main runs it as a daemon or as a Lambda
// function, together with package reflex, which opens searches for incidents.
package manhunt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/handlers/escalation"
	"github.com/sluicehq/sluice/metrics"
	"github.com/sluicehq/sluice/router"
)

// Deps are the dependencies of the routes.
type Deps struct {
	Store Store
	Table string // default DefaultTable

	// Send makes the messages of attempts and expiries durable, and Watch those
	// of the watchdog, in another queue. Notify sends how searches ended
	// (default: nobody is notified).
	Send, Watch, Notify func(ctx context.Context, m sluice.Message) error

	// Alarm reports a search that stands still (default: an error in the log).
	Alarm func(ctx context.Context, a escalation.Alarm) error

	// Providers reach contacts, by the type of their methods. A method of a
	// type that is not there fails at once, and the next one has its turn.
	Providers map[string]Provider

	// Templates are the messages to contacts, by type of method (default: those
	// of ParseTemplates(nil)). A method may have its own.
	Templates Templates

	Metrics metrics.Meter // nil: none

	// Called, if set, is called after each call of a provider.
	Called func(try escalation.Try, outcome string, err error)

	MaxDelay time.Duration    // of a message; a later one hops (default 15 min, the limit of SQS)
	Now      func() time.Time // default time.Now
	Logger   *slog.Logger     // default slog.Default()
}

// DefaultTable is the table's name where no other is given.
const DefaultTable = "manhunt"

// app is shared by the handlers.
type app struct {
	d     Deps
	table *Table
}

// TypeFrom tells the types of rows. It is for the router that [Register] gets.
//
// The attribute entityType has the type. A removal may come without its old image:
// then the sort key says what it was, which is the type for those rows that others
// go with.
func TypeFrom() router.Option {
	return router.TypeFrom(router.Chain(router.Attribute("entityType"), router.Func(func(rec *sluice.Record) (string, error) {
		switch {
		case rec.New.Exists() || rec.Old.Exists():
			return "", nil // a row of another kind
		case rec.EventName == sluice.Remove:
			return attribute(rec.Keys, "SK"), nil
		}
		return "", errors.New("there is no image to tell it: want a stream of NEW_AND_OLD_IMAGES")
	})))
}

// NewRouter returns a router with Manhunt's routes alone.
func NewRouter(d Deps) (*router.Router, error) {
	r := router.New(TypeFrom())
	return r, Register(r, d)
}

// Register adds Manhunt's routes to a router with TypeFrom. They read the table
// before they act, and make each change once, on condition that nobody else has.
// So they accept records that come twice, late, or from the dead letters.
func Register(r *router.Router, d Deps) error {
	if d.Store == nil || d.Send == nil || d.Watch == nil {
		return errors.New("manhunt: Deps.Store, Deps.Send and Deps.Watch: want all three")
	}
	d.Table = cmp.Or(d.Table, DefaultTable)
	d.Logger = cmp.Or(d.Logger, slog.Default())
	if d.Alarm == nil {
		d.Alarm = func(ctx context.Context, a escalation.Alarm) error {
			what := "a search stands still"
			if a.Ended {
				what = "a search has ended, and nobody was called"
			}
			d.Logger.ErrorContext(ctx, what, "search", Named(key(a.Escalation, "search")), "step", a.Number, "due", timeText(a.Due), "err", a.Err)
			return nil
		}
	}
	if d.Templates == nil {
		var err error
		if d.Templates, err = ParseTemplates(nil); err != nil {
			return err
		}
	}
	for typ := range d.Providers {
		if !d.Templates[typ].Exists() {
			return fmt.Errorf("manhunt: there is a provider for methods of type %s, and no template: Deps.Templates", typ)
		}
	}
	a := &app{d: d, table: NewTable(d.Store, d.Table)}
	config := a.escalation()
	e, err := escalation.New(config)
	if err != nil {
		return fmt.Errorf("manhunt: %w", err)
	}
	c, err := escalation.NewConsumer(a.consumer(config))
	if err != nil {
		return fmt.Errorf("manhunt: %w", err)
	}
	attempts, err := a.children("searchAttempt")
	if err != nil {
		return fmt.Errorf("manhunt: %w", err)
	}
	methods, err := a.children("contactMethod")
	if err != nil {
		return fmt.Errorf("manhunt: %w", err)
	}

	// Each handler knows the time of the record that it handles.
	handle := func(pattern string, h sluice.Handler, opts ...router.Option) {
		r.Handle(pattern, h, append(opts, router.Use(caused))...)
	}
	handle("search#INSERT", e.Start, router.Name("first step"), router.Redrive())
	resumed := []router.Option{router.Changed("status", "round", "snoozedUntil"), mayResume(), router.NeedsBoth(), router.Redrive()}
	handle("search#MODIFY", e.Resume, append(resumed, router.Name("resume"))...)
	// The answer first: of a record that is both, no further step is needed.
	handle("searchAttempt#MODIFY", a.resolve, router.Name("resolve"), router.Set("response"), router.Redrive())
	handle("searchAttempt#MODIFY", e.Next, router.Name("next step"), router.Set("attemptedDatetime"), router.Redrive())
	handle("search#INSERT", a.noteMalformed, router.Name("note malformed methods"), router.Redrive())
	handle("search#MODIFY", a.noteMalformed, append(resumed, router.Name("note malformed methods of a new round"))...)
	handle("searchAttempt#MODIFY", a.noteMalformed, router.Name("note methods malformed since"), router.Set("attemptedDatetime"), router.Redrive())
	if d.Notify != nil {
		handle("search#MODIFY", a.notify, router.Name("notify"), hasEnded(), router.NeedsBoth(), router.Redrive())
	}
	handle("search#REMOVE", attempts.Remove, router.Name("drop attempts"), router.Redrive())
	handle("contact#REMOVE", func(ctx context.Context, rec *sluice.Record) error {
		return a.failSearches(ctx, rec, methods.Remove)
	}, router.Name("drop contact"), router.Redrive())

	// A provider that is out of order is given up by the consumer after ten
	// minutes, so that the next method has its turn: until then the message
	// must live, and come back soon.
	soon := router.Backoff(time.Second, 20*time.Second)
	handle("manhunt.attempt#MESSAGE", c.Try, router.Name("attempt"), router.Attempts(10_000), soon)
	handle("manhunt.expire#MESSAGE", c.Expire, router.Name("expire"), soon)
	handle("manhunt.watch#MESSAGE", e.Watch, router.Name("watch"))
	return nil
}
