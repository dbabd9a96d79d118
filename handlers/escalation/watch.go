package escalation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/message"
	"github.com/sluicehq/sluice/internal/keyhash"
)

// Watchdog describes the message that watches over a chain. Its queue must be
// another than the chain's: what happens to one must not happen to both. Where no
// default is stated the field is required.
type Watchdog struct {
	// Kind is that of its messages, such as "manhunt.watch".
	Kind string

	// Send makes a message durable in the watchdog's queue.
	Send func(ctx context.Context, m sluice.Message) error

	// After is how long overdue an attempt or the expiry is when something must be
	// wrong (default 15 min). It must be longer than a consumer may take:
	// ConsumerConfig.GiveUpAfter and Lease together.
	After time.Duration

	// Alarm tells somebody that an escalation stands still. It is called once in
	// After or a little more, as long as that lasts.
	Alarm func(ctx context.Context, a Alarm) error
}

// Alarm is an escalation that is active and stands still, or has ended for want of
// a step that can be called.
type Alarm struct {
	Escalation string // its id
	Round      int64
	Number     int64     // of the attempt that is not made
	Due        time.Time // of it; zero where that cannot be told
	Err        error     // why, as far as it is known; nil where a message or a record is lost
	Ended      bool      // Sluice ends the escalation, and nobody was called
	DedupeKey  string    // the same in each alarm for the attempt; escalations of another kind may have it, too
}

// freshAfter is after how many receives the watchdog's message is sent anew, so
// that no redrive policy takes it away.
const freshAfter = 3

// soon is how long after an attempt is due the watchdog looks for the first time,
// so that it knows of the next one early.
func (w Watchdog) soon() time.Duration { return w.After / 15 }

// vigil is what the watchdog's message says.
type vigil struct {
	id            string
	round, number int64 // of the next attempt, as far as it was known
	notBefore     time.Time
}

// Watch handles the message of the watchdog. As long as the escalation is active
// in its round it moves along: to when the next attempt, or the expiry, is
// overdue. An attempt that is overdue gets another message, and an alarm; an
// escalation whose expiry is overdue is ended. It is a [sluice.Handler].
func (s *Escalator) Watch(ctx context.Context, rec *sluice.Record) error {
	return s.hop(s.watch)(ctx, rec)
}

func (s *Escalator) watch(ctx context.Context, rec *sluice.Record) error {
	v, err := readVigil(rec.New)
	if err != nil {
		return sluice.Permanent(fmt.Errorf("message of the watchdog: %w", err))
	}
	if s.moved.has(v.key()) {
		return sluice.Skip("watchdog moved before")
	}
	err = s.look(ctx, &v)
	if sluice.IsPermanent(err) {
		err = s.alarm(ctx, v, time.Time{}, err)
	}
	if err == nil || sluice.IsSkip(err) {
		return err
	}
	if sluice.IsPermanent(err) { // for which it would be parked, and nobody would watch
		err = errors.New(err.Error())
	}
	if m, _ := rec.Message(); m.Received < freshAfter {
		return err
	}
	if sent := s.sendVigil(ctx, v, min(time.Minute, s.c.MaxDelay)); sent != nil {
		return errors.Join(err, sent)
	}
	return sluice.Skip("watchdog sent anew")
}

// look sees whether something is overdue. A permanent error is worth an alarm.
func (s *Escalator) look(ctx context.Context, v *vigil) error {
	e, err := s.c.active(ctx, v.id)
	if err != nil { // an escalation that is over needs no watchdog
		return err
	}
	if e.Round != v.round {
		return sluice.Skip("watchdog of another round")
	}
	last, err := s.c.lastMade(ctx, e, v.number)
	if err != nil {
		return err
	}
	next, _, err := s.next(ctx, e, last) // Start and Next have told of problems
	if err != nil || next == nil {       // it was failed
		return err
	}
	overdue := next.notBefore.Add(s.c.Watch.After)
	if last != nil && last.number+1 != v.number {
		v.number = last.number + 1
		// What is seen for the first time has a whole period: its message may be of a
		// ladder that was edited since, and be due later.
		overdue = latest(overdue, v.notBefore.Add(s.c.Watch.After))
	}
	for _, at := range []time.Time{next.notBefore.Add(s.c.Watch.soon()), overdue} {
		if at.After(s.c.Now()) {
			return s.follow(ctx, *v, at)
		}
	}
	if !next.tries {
		return s.c.expire(ctx, e)
	}
	return s.alarm(ctx, *v, next.notBefore, s.send(ctx, *next))
}

// alarm tells of an escalation that stands still, and looks again later. What
// could not be sent is sent then.
func (s *Escalator) alarm(ctx context.Context, v vigil, due time.Time, why error) error {
	_, ended := errors.AsType[*endedError](why)
	a := Alarm{
		Escalation: v.id, Round: v.round, Number: v.number, Due: due, Err: why, Ended: ended,
		DedupeKey: dedupeKey(v.id, fmt.Sprintf("alarm-%d", v.number), v.round),
	}
	if err := s.c.raiseAlarm(ctx, a); err != nil {
		return err
	}
	if a.Ended {
		return nil
	}
	// Of the clock only the period is in the message, so that one that comes twice
	// sends the same.
	return s.follow(ctx, v, s.c.Now().Truncate(s.c.Watch.After).Add(2*s.c.Watch.After))
}

// follow sends the message that takes the place of another.
func (s *Escalator) follow(ctx context.Context, v vigil, at time.Time) error {
	key := v.key()
	v.notBefore = at
	if err := s.move(ctx, v); err != nil {
		return err
	}
	s.moved.add(key)
	return nil
}

func (s *Escalator) move(ctx context.Context, v vigil) error {
	return s.sendVigil(ctx, v, message.Delay(v.notBefore, s.c.Now(), s.c.MaxDelay))
}

func (s *Escalator) sendVigil(ctx context.Context, v vigil, delay time.Duration) error {
	key := v.key()
	var b message.Body
	b.Str("kind", s.c.Watch.Kind).Str("escalation", v.id).Int("round", v.round).Int("number", v.number).
		Time("notBefore", v.notBefore).Str("dedupeKey", key)
	m := sluice.Message{
		Body: string(b.Bytes()), Delay: delay,
		Attributes: map[string]sluice.MessageAttribute{
			"dedupeKey": sluice.StringAttribute(key),
			"notBefore": sluice.StringAttribute(message.FormatTime(v.notBefore)),
		},
	}
	if err := s.c.Watch.Send(ctx, m); err != nil {
		return fmt.Errorf("sending %s: %w", keyhash.Text(key), err)
	}
	return nil
}

// key tells a message of the watchdog from those before and after it.
func (v vigil) key() string {
	return dedupeKey(v.id, "watch", v.round) + "/" + message.FormatTime(v.notBefore)
}

func readVigil(body sluice.Item) (v vigil, err error) {
	if v.id, err = text(body, "escalation"); err != nil {
		return v, err
	}
	if v.round, err = count(body, "round"); err != nil {
		return v, err
	}
	if v.number, err = count(body, "number"); err != nil {
		return v, err
	}
	v.notBefore, err = moment(body, "notBefore")
	return v, err
}
