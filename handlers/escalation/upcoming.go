package escalation

import "time"

// upcoming is the next action of an escalation: to try a step, or to expire.
type upcoming struct {
	escalation Escalation
	notBefore  time.Time

	tries          bool // a step; false: it expires
	step           Step
	number, repeat int64
}

// upcoming returns what follows last; nil is the start of the round, for which a
// step must exist.
func (c Config) upcoming(e Escalation, steps []Step, last *attempt) upcoming {
	try := func(step Step, since time.Time, number, repeat int64) upcoming {
		return upcoming{escalation: e, notBefore: e.awake(since.Add(step.Wait)), tries: true, step: step, number: number, repeat: repeat}
	}
	if last == nil {
		return try(first(steps, e.resumeAt), e.Started, 0, 0)
	}
	if step, ok := after(steps, last.rank); ok {
		return try(step, last.at, last.number+1, last.repeat)
	}
	// The last contact has the same time to answer before a repeat as before
	// the end.
	over := last.at.Add(c.ExpireAfter)
	if last.repeat < c.repeats(e) && len(steps) > 0 {
		return try(steps[0], over, last.number+1, last.repeat+1)
	}
	return upcoming{escalation: e, notBefore: e.awake(over)}
}

// awake is t, or the end of the snooze if that is later.
func (e Escalation) awake(t time.Time) time.Time { return latest(t, e.SnoozedUntil) }

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (c Config) repeats(e Escalation) int64 {
	if e.repeat != nil {
		return *e.repeat
	}
	return c.Repeat
}

// message returns the body and the key of the message.
func (u upcoming) message(c Config) (body []byte, key string) {
	e := u.escalation
	if !u.tries {
		x := Expiry{Escalation: e, Round: e.Round, NotBefore: u.notBefore, DedupeKey: dedupeKey(e.ID, "expire", e.Round)}
		return c.ExpiryBody(x), x.DedupeKey
	}
	t := Try{
		Escalation: e, Step: u.step, Round: e.Round, Repeat: u.repeat, Number: u.number,
		NotBefore: u.notBefore, DedupeKey: tryKey(e.ID, e.Round, u.number),
	}
	return c.StepBody(t), t.DedupeKey
}
