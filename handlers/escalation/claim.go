package escalation

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/internal/backoff"
	"github.com/sluicehq/sluice/internal/keyhash"
	"github.com/sluicehq/sluice/item"
)

// The states of an attempt, and a message's reaction:
//
//	absent                 nobody has begun: the message claims it
//	lease, no At           it is being tried, or its process died: the message
//	                       stays in the queue until the lease ends, and then
//	                       takes over on condition of the same owner
//	At and outcome, no lease
//	                       it was attempted: the stream has the change, and the
//	                       message is dropped
//
// Every write is conditional on the previous state. Of two concurrent messages one
// wins, and the other sees its result. At is set by a separate change, even for a
// skipped step: its MODIFY record starts the next step.

// Each write touches only the attempt. A transaction with a check of the
// escalation would hold that item for a moment, and the application's
// acknowledgement would fail with a TransactionConflictException. Instead the
// consumer reads the escalation again after the claim: an acknowledgement before
// that stops the call.

// lease is the right to try a step.
type lease struct {
	owner string // random for each claim
	until time.Time
	key   sluice.Item // of the attempt
	made  bool        // the claim put the attempt
	other bool        // the attempt is of another step than the message

	contacts map[string]string // outcomes of contacts that need no further call
}

// claim returns the lease of a step; its errors are outcomes of the message. An
// attempt that is taken over names its own step: the ladder may have been edited
// since, and the message may come from the watchdog.
func (s *Consumer) claim(ctx context.Context, of *Try) (lease, error) {
	t := *of
	attempt, err := s.newAttempt(t)
	if err != nil {
		return lease{}, err
	}
	l := lease{owner: rand.Text(), until: s.c.Config.Now().Add(s.c.Lease), key: attempt.Only(s.c.AttemptKey...), contacts: map[string]string{}}
	if l.key.Len() != len(s.c.AttemptKey) {
		return l, sluice.Permanent(fmt.Errorf("step %s: NewAttempt made no attempt with the key attributes %q", keyhash.Text(t.DedupeKey), s.c.AttemptKey))
	}
	put := dynamo.Put(s.c.AttemptTable, attempt.With(
		item.String(s.c.Claim.Owner, l.owner),
		item.String(s.c.Claim.Until, formatTime(l.until)),
	)).If("attribute_not_exists(#key)").Name("#key", s.c.AttemptKey[0])
	found, err := s.write(ctx, t, put)
	if err != nil || !found.Exists() {
		l.made = err == nil
		return l, err
	}

	// Another claim was first, unless this very write's response was lost.
	if v, _ := found.Lookup(s.c.Claim.Owner); v.Str() == l.owner {
		l.made = true
		return l, nil
	}
	if round, err := count(found, s.c.Config.Attempt.Round); err != nil || round != t.Round {
		return l, sluice.Permanent(fmt.Errorf("step %s: NewAttempt gives it the key of an attempt of another round: want Try.Round, or Try.DedupeKey, in the key", keyhash.Text(t.DedupeKey)))
	}
	owner, err := s.free(found)
	if err != nil {
		return l, s.claimError(t, err)
	}
	l.contacts = s.called(found)
	step, err := s.stepOf(found)
	if err != nil {
		return l, sluice.Permanent(fmt.Errorf("step %s: its attempt: %w", keyhash.Text(t.DedupeKey), err))
	}
	if l.other = step.ID != t.Step.ID; l.other {
		of.Step = step
	}
	takeOver := dynamo.Update(s.c.AttemptTable, l.key, "SET #owner = :owner, #until = :until").
		Name("#owner", s.c.Claim.Owner).Name("#until", s.c.Claim.Until).Name("#at", s.c.Config.Attempt.At).
		Value(":owner", l.owner).Value(":until", formatTime(l.until))
	if owner == "" {
		// The key must exist: an update must not create an attempt of only a
		// lease.
		takeOver = takeOver.If("attribute_exists(#key) AND attribute_not_exists(#owner) AND attribute_not_exists(#at)").Name("#key", s.c.AttemptKey[0])
	} else {
		takeOver = takeOver.If("#owner = :dead AND attribute_not_exists(#at)").Value(":dead", owner)
	}
	found, err = s.write(ctx, t, takeOver)
	if err != nil || !found.Exists() {
		return l, err
	}
	// Another claim took it over meanwhile, unless this very write did.
	if v, _ := found.Lookup(s.c.Claim.Owner); v.Str() == l.owner {
		return l, nil
	}
	if _, err = s.free(found); err == nil {
		err = errors.New("it was taken over and given back meanwhile")
	}
	return l, s.claimError(t, err)
}

// newAttempt returns the attempt of a step, with round and repeat if not 0.
func (s *Consumer) newAttempt(t Try) (sluice.Item, error) {
	attempt := s.c.NewAttempt(t)
	for _, n := range []struct {
		path string
		want int64
	}{{s.c.Config.Attempt.Round, t.Round}, {s.c.Config.Attempt.Repeat, t.Repeat}} {
		if _, there := attempt.Lookup(n.path); n.want != 0 && !there && !strings.Contains(n.path, ".") {
			attempt = attempt.With(item.Number(n.path, strconv.FormatInt(n.want, 10)))
		}
		if got, err := count(attempt, n.path); err != nil || got != n.want {
			return attempt, sluice.Permanent(fmt.Errorf("step %s: NewAttempt made an attempt whose attribute %q is not %d", keyhash.Text(t.DedupeKey), n.path, n.want))
		}
	}
	return attempt, nil
}

// stepOf returns the step of an attempt.
func (s *Consumer) stepOf(attempt sluice.Item) (step Step, err error) {
	f := fields{it: attempt}
	field(&f, &step.ID, text, s.c.Config.Attempt.StepID)
	field(&f, &step.Order, integer, s.c.Config.Attempt.Order)
	return step, f.err
}

// called returns the outcomes of a step's contacts that need no further call.
func (s *Consumer) called(attempt sluice.Item) map[string]string {
	outcomes := map[string]string{}
	if v, ok := attempt.Lookup(s.c.Claim.Contacts); ok {
		for contact, outcome := range v.Map().All() {
			outcomes[contact] = outcome.Str()
		}
	}
	return outcomes
}

func (l lease) outcomes() sluice.Item {
	var attrs []item.Attribute
	for _, contact := range slices.Sorted(maps.Keys(l.contacts)) {
		attrs = append(attrs, item.String(contact, l.contacts[contact]))
	}
	return item.Of(attrs...)
}

func (s *Consumer) claimError(t Try, err error) error {
	if sluice.IsSkip(err) {
		return err
	}
	return fmt.Errorf("step %s: %w", keyhash.Text(t.DedupeKey), err)
}

// write makes a claim's write, or returns the attempt that prevented it.
func (s *Consumer) write(ctx context.Context, t Try, op dynamo.Op) (found sluice.Item, err error) {
	err = s.c.Config.Write(ctx, op)
	refused, ok := errors.AsType[*dynamo.ConditionError](err)
	if ok && len(refused.Items) > 0 && refused.Items[0].Exists() {
		return refused.Items[0], nil
	}
	if err != nil { // also when the attempt was deleted meanwhile
		err = fmt.Errorf("claiming step %s: %w", keyhash.Text(t.DedupeKey), err)
	}
	return found, err
}

// abandon withdraws a claim for which nobody was called, so that an ended
// escalation has no attempt that was not made. If it fails, the attempt stays
// without a time.
func (s *Consumer) abandon(ctx context.Context, t Try, l lease) {
	if !l.made {
		s.release(ctx, t, l)
		return
	}
	_ = s.detached(ctx, releaseTimeout, dynamo.Delete(s.c.AttemptTable, l.key).
		If("#owner = :me AND attribute_not_exists(#at)").
		Name("#owner", s.c.Claim.Owner).Name("#at", s.c.Config.Attempt.At).Value(":me", l.owner))
}

// free returns the owner of an expired lease, or "" if another writer made the
// attempt. A finished attempt is a Skip. The message of a running attempt stays in
// the queue until the lease ends.
func (s *Consumer) free(attempt sluice.Item) (owner string, err error) {
	if _, made := attempt.Lookup(s.c.Config.Attempt.At); made {
		return "", sluice.Skip("attempted before")
	}
	if _, leased := attempt.Lookup(s.c.Claim.Owner); !leased {
		return "", nil
	}
	if owner, err = text(attempt, s.c.Claim.Owner); err != nil {
		return "", sluice.Permanent(fmt.Errorf("its attempt: %w", err))
	}
	until, err := moment(attempt, s.c.Claim.Until)
	if err != nil {
		return "", sluice.Permanent(fmt.Errorf("its attempt: %w", err))
	}
	if left := until.Sub(s.c.Config.Now()); left > 0 {
		return "", sluice.RetryAfter(left, errors.New("it is being tried, or its process died"))
	}
	return owner, nil
}

// Limits of the last writes after a step was tried, or when the process ends.
const (
	finishTries    = 5
	finishPause    = 250 * time.Millisecond // after the first try, doubled each time
	writeTimeout   = 10 * time.Second       // of one try
	releaseTimeout = 5 * time.Second
)

// finish records that the step was attempted, even while the process is ending:
// otherwise nobody knows of the call. It retries a few times, because nothing
// remembers the call between two deliveries. If all tries fail, the message comes
// again, and the step is tried again with the same key when the lease is over. why
// is the reason for an outcome other than Contacted.
func (s *Consumer) finish(ctx context.Context, t Try, l lease, outcome string, why error) error {
	at := s.c.Config.Now().Truncate(time.Second)
	set := "SET #at = :at, #outcome = :outcome"
	keep := why != nil && s.c.Claim.Error != ""
	if keep {
		set += ", #error = :error"
	}
	op := s.owned(l, set, " REMOVE #owner, #until").
		Name("#until", s.c.Claim.Until).Name("#outcome", s.c.Config.Attempt.Outcome).
		Value(":at", formatTime(at)).Value(":outcome", outcome)
	if keep {
		op = op.Name("#error", s.c.Claim.Error).Value(":error", bounded(why.Error()))
	}
	for tries := 1; ; tries++ {
		err := s.detached(ctx, writeTimeout, op)
		switch {
		case err == nil:
			return nil
		case dynamo.IsCondition(err):
			return s.lost(t, err)
		case sluice.IsPermanent(err), tries == finishTries, backoff.Sleep(ctx, finishPause<<(tries-1)) != nil:
			return fmt.Errorf("step %s: writing its outcome %s: %w", keyhash.Text(t.DedupeKey), outcome, err)
		}
	}
}

// bounded shortens a text for an attempt.
func bounded(text string) string {
	const most = 1024
	if len(text) > most {
		text = text[:most]
	}
	return strings.ToValidUTF8(text, "")
}

// lost is the outcome of a message whose step was taken over after its lease
// ended: the other's result counts. Until there is one, the message stays in the
// queue, because the other process may die too. The attempt may also be deleted,
// or finished by a write whose response was lost.
func (s *Consumer) lost(t Try, err error) error {
	var found sluice.Item
	if refused, ok := errors.AsType[*dynamo.ConditionError](err); ok && len(refused.Items) > 0 {
		found = refused.Items[0]
	}
	if _, made := found.Lookup(s.c.Config.Attempt.At); made || !found.Exists() {
		return sluice.Skip("lease lost")
	}
	if _, err = s.free(found); err == nil {
		err = errors.New("its lease was lost, and nobody has it")
	}
	return s.claimError(t, err)
}

// detached makes a write that does not stop when ctx ends.
func (s *Consumer) detached(ctx context.Context, timeout time.Duration, op dynamo.Op) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	return s.c.Config.Write(ctx, op)
}

// release ends a lease at once, so that the next delivery need not wait for it. If
// it fails, the step waits for the end of the lease, and all of its contacts are
// called again with the same keys.
func (s *Consumer) release(ctx context.Context, t Try, l lease) {
	_ = s.detached(ctx, releaseTimeout, s.owned(l, "SET #until = :now", "").
		Name("#until", s.c.Claim.Until).Value(":now", formatTime(s.c.Config.Now())))
}

// owned is a change of an attempt that is ours and not finished. It also records
// which contacts were called.
func (s *Consumer) owned(l lease, set, remove string) dynamo.Op {
	op := dynamo.Update(s.c.AttemptTable, l.key, set+remove)
	if len(l.contacts) > 0 {
		op = dynamo.Update(s.c.AttemptTable, l.key, set+", #contacts = :contacts"+remove).
			Name("#contacts", s.c.Claim.Contacts).Value(":contacts", l.outcomes())
	}
	return op.If("#owner = :me AND attribute_not_exists(#at)").
		Name("#owner", s.c.Claim.Owner).Name("#at", s.c.Config.Attempt.At).Value(":me", l.owner)
}
