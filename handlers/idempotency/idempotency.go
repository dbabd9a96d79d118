package idempotency

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/internal/backoff"
	"github.com/sluicehq/sluice/internal/keyhash"
)

// Options configure Once. A field without a stated default is required. The
// functions must be safe for concurrent use.
type Options struct {
	Table string

	// Write makes a conditional write, such as sinks/dynamodb.Store.Write. A
	// failed condition is a [*dynamo.ConditionError] with the item found.
	Write func(ctx context.Context, op dynamo.Op) error

	// TTL is how long a completed record is not handled again (default 72 h). A
	// claim lasts until its own end, even with a shorter TTL.
	TTL time.Duration

	// InProgress is the deadline of a handler whose context has none (default 1
	// min). A claim ends with the deadline.
	InProgress time.Duration

	// Wait makes a record that is claimed elsewhere wait for the end of the
	// claim, as long as its context allows. Without Wait the record comes again
	// then, by sluice.RetryAfter. The default is true under AWS Lambda, which
	// does not keep a RetryAfter: immediate retries would be used up before the
	// claim of a crashed process ends. Elsewhere it is false.
	Wait bool

	// Key returns what two deliveries of the same event have in common
	// (default: the record's table and eventID). An error is permanent for the
	// record.
	Key func(rec *sluice.Record) (string, error)

	// Payload returns data that must be equal if the keys are, such as the
	// amount of an order. A record that differs fails permanently (default: no
	// comparison). Only its hash is stored.
	Payload func(rec *sluice.Record) []byte

	Now func() time.Time // default time.Now

	byEvent bool // Key is the default
}

// inProgressError says that another process handles a record, or did when it died.
type inProgressError struct {
	ID    string
	Until time.Time // end of the claim

	shown string // form of ID for errors
}

func (e *inProgressError) Error() string {
	return fmt.Sprintf("idempotency: %s is claimed until %s by another that handles it", e.shown, e.Until.UTC().Format(time.RFC3339Nano))
}

// Once makes a Middleware that calls its handler once for each record; see the
// package comment for limits. name is part of the rows. It must not contain '#',
// must be unique among the routes of a table, and must not change: a record that
// comes again under another name is handled again. Once panics when name or
// Options are invalid.
func Once(name string, o Options) sluice.Middleware {
	o = o.withDefaults()
	if err := o.validate(name); err != nil {
		panic(fmt.Sprintf("idempotency: Once(%q): %v", name, err))
	}
	return func(next sluice.Handler) sluice.Handler {
		return (&once{name: name, o: o, next: next}).handle
	}
}

func (o Options) withDefaults() Options {
	o.TTL = cmp.Or(o.TTL, 72*time.Hour)
	o.InProgress = cmp.Or(o.InProgress, time.Minute)
	if os.Getenv("AWS_LAMBDA_RUNTIME_API") != "" {
		o.Wait = true
	}
	if o.Key == nil {
		o.Key, o.byEvent = eventKey, true
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

func (o Options) validate(name string) error {
	var errs []error
	if name == "" || strings.Contains(name, "#") {
		errs = append(errs, fmt.Errorf("the name is %q, want a text without '#', which ends it in the ids of rows: another's could be the same", name))
	}
	if o.Table == "" {
		errs = append(errs, errors.New("Options.Table is missing"))
	}
	if o.Write == nil {
		errs = append(errs, errors.New("Options.Write is missing"))
	}
	if o.InProgress < time.Millisecond {
		errs = append(errs, fmt.Errorf("Options.InProgress is %v, want at least 1ms", o.InProgress))
	}
	if o.TTL < time.Second {
		errs = append(errs, fmt.Errorf("Options.TTL is %v, want at least 1s", o.TTL))
	}
	return errors.Join(errs...)
}

func eventKey(rec *sluice.Record) (string, error) {
	if rec.EventID == "" {
		return "", errors.New("the record has no eventID that would tell it when it comes again; Options.Key can say what does")
	}
	return rec.Table + "#" + rec.EventID, nil
}

// once is the middleware of one handler.
type once struct {
	name string
	o    Options
	next sluice.Handler
}

// shown is the id of a claim for errors, which are logged: the result of
// Options.Key may contain a key.
func (m *once) shown(c claim) string {
	if m.o.byEvent {
		return c.id
	}
	return keyhash.Text(c.id)
}

func (m *once) handle(ctx context.Context, rec *sluice.Record) error {
	key, err := m.o.Key(rec)
	if err == nil && key == "" {
		err = errors.New("Options.Key returned an empty key")
	}
	if err != nil {
		return sluice.Permanent(fmt.Errorf("idempotency %s: %w", m.name, err))
	}
	ctx, cancel := m.bounded(ctx)
	defer cancel()
	c := claim{id: m.name + "#" + key, token: rand.Text(), until: m.until(ctx)}
	if m.o.Payload != nil {
		c.validation = hash(m.o.Payload(rec))
	}
	if err := m.take(ctx, c); err != nil {
		return err
	}
	return m.run(ctx, rec, c)
}

// bounded adds a deadline to a context without one, because the claim must end.
func (m *once) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, has := ctx.Deadline(); has {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, m.o.InProgress, fmt.Errorf("idempotency %s: the handler took longer than Options.InProgress, %v", m.name, m.o.InProgress))
}

// until converts the end of ctx to the clock of Options.
func (m *once) until(ctx context.Context) time.Time {
	deadline, _ := ctx.Deadline()
	return m.o.Now().Add(time.Until(deadline))
}

// take claims a record, or returns why it cannot be handled now.
func (m *once) take(ctx context.Context, c claim) error {
	for {
		err := m.try(ctx, c)
		busy, claimed := errors.AsType[*inProgressError](err)
		if !claimed || !m.o.Wait || backoff.Sleep(ctx, m.untilFree(busy.Until)) != nil {
			return err
		}
	}
}

// untilFree is the time until a claim has ended.
func (m *once) untilFree(end time.Time) time.Duration {
	return max(end.Sub(m.o.Now())+time.Millisecond, 100*time.Millisecond)
}

// try is one try to claim a record.
func (m *once) try(ctx context.Context, c claim) error {
	if err := context.Cause(ctx); err != nil {
		return fmt.Errorf("idempotency %s: %w", m.name, err)
	}
	now := m.o.Now()
	err := m.o.Write(ctx, m.put(c, now))
	var there *dynamo.ConditionError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &there):
		return m.found(c, there)
	}
	_ = m.release(ctx, c) // the write may have succeeded all the same
	return fmt.Errorf("idempotency %s: claiming %s in table %s: %w", m.name, m.shown(c), m.o.Table, err)
}

// found decides by the row that exists.
func (m *once) found(c claim, there *dynamo.ConditionError) error {
	if len(there.Items) == 0 || !there.Items[0].Exists() {
		return fmt.Errorf("idempotency %s: %s is in table %s, but Options.Write does not say how: %w", m.name, m.shown(c), m.o.Table, there)
	}
	r, err := read(there.Items[0])
	if err != nil {
		return sluice.Permanent(fmt.Errorf("idempotency %s: %s of table %s: %w", m.name, m.shown(c), m.o.Table, err))
	}
	switch {
	case r.status == inProgress && r.token == c.token:
		return nil // its own: the first response was lost
	case c.validation != "" && r.validation != "" && c.validation != r.validation:
		return sluice.Permanent(fmt.Errorf("idempotency: %s stands for another payload: two different things have the same key", m.shown(c)))
	case r.status == completed:
		return sluice.Skip("already done")
	}
	return sluice.RetryAfter(m.untilFree(r.until), &inProgressError{ID: c.id, Until: r.until, shown: m.shown(c)})
}

// run calls the handler and writes the result to the row.
func (m *once) run(ctx context.Context, rec *sluice.Record, c claim) error {
	returned := false
	defer func() {
		if !returned { // panic or Goexit
			_ = m.release(ctx, c)
		}
	}()
	err := m.next(ctx, rec)
	returned = true
	if err == nil || sluice.IsSkip(err) {
		return m.complete(ctx, c, err)
	}
	if failed := m.release(ctx, c); failed != nil {
		err = fmt.Errorf("%w (and the claim of %s stays until %s: %w)", err, m.shown(c), c.until.UTC().Format(time.RFC3339), failed)
	}
	if part, ok := errors.AsType[*sluice.Remaining](err); ok && part.Rest != nil {
		rest := &once{name: m.name, o: m.o, next: part.Rest}
		return &sluice.Remaining{Rest: rest.handle, After: part.After, Err: err}
	}
	return err
}

// complete marks a record as completed; outcome is nil or a Skip. If that fails,
// only this step remains to be done.
func (m *once) complete(ctx context.Context, c claim, outcome error) error {
	if err := m.write(ctx, m.done(c, m.o.Now())); err != nil {
		return &sluice.Remaining{
			Rest: func(ctx context.Context, _ *sluice.Record) error { return m.complete(ctx, c, outcome) },
			Err:  fmt.Errorf("idempotency %s: %s is done, and to be marked as such in table %s: %w", m.name, m.shown(c), m.o.Table, err),
		}
	}
	return outcome
}

// release deletes a claim. A claim that has ended and is another's stays.
func (m *once) release(ctx context.Context, c claim) error {
	err := m.write(ctx, m.drop(c))
	if dynamo.IsCondition(err) {
		return nil
	}
	return err
}

// write makes the last write of a handler, even after the end of its context.
func (m *once) write(ctx context.Context, op dynamo.Op) error {
	const timeout = 5 * time.Second
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	return m.o.Write(ctx, op)
}
