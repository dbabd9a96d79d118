package escalation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/message"
)

// Watchdog describes the message that watches a chain. Use another queue than the
// chain's, so that one failure does not affect both. A field without a stated
// default is required.
type Watchdog struct {
	// Kind of its messages, such as "manhunt.watch".
	Kind string

	// Send makes a message durable in the watchdog's queue.
	Send func(ctx context.Context, m sluice.Message) error

	// After is how long an attempt or the expiry must be overdue to be an error
	// (default 15 min). It must exceed ConsumerConfig.GiveUpAfter and Lease
	// together.
	After time.Duration

	// Alarm reports an escalation that stands still. It runs about once per
	// After as long as that lasts.
	Alarm func(ctx context.Context, a Alarm) error
}

// Alarm is an active escalation that stands still, or one that ended because no
// step could be called.
type Alarm struct {
	Escalation string // id of the escalation
	Round      int64
	Number     int64     // of the missing attempt
	Due        time.Time // due time of the attempt; zero if unknown
	Err        error     // cause, if known; nil if a message or a record is lost
	Ended      bool      // Sluice ends the escalation, and nobody was called
	DedupeKey  string    // the same in each alarm for the attempt; other kinds of escalation may use it too
}

// freshAfter is the number of receives after which the watchdog's message is sent
// anew, so that no redrive policy moves it.
const freshAfter = 3

// soon is how long after an attempt is due the watchdog looks first, so that it
// learns early of the next attempt.
func (w Watchdog) soon() time.Duration { return w.After / 15 }

// vigil is the content of the watchdog's message.
type vigil struct {
	id            string
	round, number int64 // of the next attempt, as far as known
	notBefore     time.Time
}

// Watch handles the message of the watchdog. While the escalation is active in its
// round, it re-sends the message for the time at which the next attempt or the
// expiry is overdue. For an overdue attempt it sends the message again and raises
// an alarm. It ends an escalation whose expiry is overdue. It is a
// [sluice.Handler].
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
	if sluice.IsPermanent(err) { // it would be parked, and the watch would end
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

// look checks whether an action is overdue. A permanent error deserves an alarm.
func (s *Escalator) look(ctx context.Context, v *vigil) error {
	now := s.c.Now() // before the reads: after a pause, what they show can be older
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
	next, _, err := s.next(ctx, e, last) // Start and Next have reported problems
	if err != nil || next == nil {       // it was failed
		return err
	}
	overdue := next.notBefore.Add(s.c.Watch.After)
	if last != nil && last.number+1 != v.number {
		v.number = last.number + 1
		// An action seen for the first time has a whole period: the ladder of
		// its message may have been edited since, and the action may be due
		// later.
		overdue = latest(overdue, v.notBefore.Add(s.c.Watch.After))
	}
	for _, at := range []time.Time{next.notBefore.Add(s.c.Watch.soon()), overdue} {
		if at.After(now) {
			return s.follow(ctx, *v, at)
		}
	}
	if !next.tries {
		return s.c.expire(ctx, e)
	}
	return s.alarm(ctx, *v, next.notBefore, s.send(ctx, *next))
}

// alarm reports an escalation that stands still, and looks again later. If that
// fails, the next look reports it.
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
	// Round the time to the period, so that a duplicate message sends the same
	// message.
	return s.follow(ctx, v, s.c.Now().Truncate(s.c.Watch.After).Add(2*s.c.Watch.After))
}

// follow sends the successor of a message.
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
	return send(ctx, s.c.Watch.Send, b.Bytes(), key, v.notBefore, delay)
}

// key identifies a message of the watchdog.
func (v vigil) key() string {
	return dedupeKey(v.id, "watch", v.round) + "/" + formatTime(v.notBefore)
}

func readVigil(body sluice.Item) (v vigil, err error) {
	f := fields{it: body}
	field(&f, &v.id, text, "escalation")
	field(&f, &v.round, count, "round")
	field(&f, &v.number, count, "number")
	field(&f, &v.notBefore, moment, "notBefore")
	return v, f.err
}
