package sim

import (
	"context"
	"errors"
	"time"

	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/state"
)

var (
	errStore     = errors.New("the store fails, as it is told to")
	errStoreFull = errors.New("no space left on device")
)

// keeper is what a real store does for a poller and its dead letters.
type keeper interface {
	state.Store
	state.Letters
}

// store is the real one as one life sees it: through its gate, and failing as
// the seed says. The checker sees every position and every dead letter.
type store struct {
	keeper
	life *life
}

// call runs one interaction with the store: its effect, unless the store fails
// before, and an error in the place of a good answer if it fails after.
func (s *store) call(ctx context.Context, kind string, effect func() error) error {
	l := s.life
	n, ok := l.gate.enter(kind)
	if !ok {
		return errDead
	}
	left := false
	defer l.gate.unwind(&left, l.h.check)
	err := func() error {
		if l.h.storeDown() {
			return errStoreFull
		}
		r, d, key := l.h.rates(), l.h.draw, []uint64{uint64(l.n), uint64(n)}
		// Dead letters are listed under a mutex, and whoever waits for a mutex
		// holds up the bubble's clock.
		if kind != "letters" && d.chance(r.storeSlow, "store slow "+kind, key...) {
			if err := l.sleep(ctx, d.upTo(2*l.h.plan.o.CallTimeout, "store sleep "+kind, key...)); err != nil {
				return err
			}
		}
		if kind != "letters" && d.chance(r.storeDeaf, "store deaf "+kind, key...) {
			if !l.deaf(d.upTo(2*l.h.plan.o.CallTimeout, "store deaf for "+kind, key...)) && d.chance(0.5, "store cut "+kind, key...) {
				return errDead
			}
		}
		if d.chance(r.storeBefore, "store before "+kind, key...) {
			return errStore
		}
		if err := effect(); err != nil {
			return err
		}
		if d.chance(r.storeAfter, "store after "+kind, key...) {
			return errStore
		}
		return nil
	}()
	if err != nil && !errors.Is(err, state.ErrNoStart) {
		l.note("%s: %v", kind, err)
	}
	left = true
	if !l.gate.leave(kind, n) {
		return errDead
	}
	return err
}

func (s *store) Start(ctx context.Context, st state.Stream, want state.Start) (got state.Start, err error) {
	err = s.call(ctx, "start", func() (err error) {
		_, none := s.keeper.Start(ctx, st, state.Start{})
		got, err = s.keeper.Start(ctx, st, want)
		if err == nil && errors.Is(none, state.ErrNoStart) {
			s.life.h.check.began(s.life.n, st.ARN, got)
		}
		return err
	})
	return got, err
}

func (s *store) Streams(ctx context.Context, app string) (got []state.Stream, err error) {
	err = s.call(ctx, "streams", func() (err error) {
		got, err = s.keeper.Streams(ctx, app)
		return err
	})
	return got, err
}

func (s *store) Shards(ctx context.Context, st state.Stream) (got []state.Shard, err error) {
	err = s.call(ctx, "shards", func() (err error) {
		got, err = s.keeper.Shards(ctx, st)
		return err
	})
	return got, err
}

func (s *store) Finish(ctx context.Context, st state.Stream, ids ...string) error {
	return s.call(ctx, "finish", func() error {
		had, err := s.keeper.Shards(ctx, st)
		if err != nil {
			return err
		}
		had = append([]state.Shard(nil), had...)
		known := map[string]bool{}
		for _, sh := range had {
			known[sh.ID] = true
		}
		end := state.Position{Finished: true}
		for _, id := range ids {
			if !known[id] {
				s.life.h.check.storing(s.life.n, place{st.ARN, id}, end)
			}
		}
		if err := s.keeper.Finish(ctx, st, ids...); err != nil {
			return err
		}
		for _, id := range ids {
			if !known[id] {
				s.life.h.check.stored(s.life.n, place{st.ARN, id}, end)
			}
		}
		return nil
	})
}

func (s *store) Claim(ctx context.Context, st state.Stream, id, parent, owner string) (got state.Shard, err error) {
	err = s.call(ctx, "claim", func() (err error) {
		got, err = s.keeper.Claim(ctx, st, id, parent, owner)
		return err
	})
	return got, err
}

func (s *store) Checkpoint(ctx context.Context, cs []state.Checkpoint) []error {
	check := s.life.h.check
	var errs []error
	err := s.call(ctx, "checkpoint", func() error {
		for _, c := range cs {
			check.storing(s.life.n, place{c.Lease.Stream.ARN, c.Lease.ShardID}, c.Position)
		}
		errs = s.keeper.Checkpoint(ctx, cs)
		for i, c := range cs {
			var err error
			if errs != nil {
				err = errs[i]
			}
			switch {
			case err == nil:
				check.stored(s.life.n, place{c.Lease.Stream.ARN, c.Lease.ShardID}, c.Position)
			case errors.Is(err, state.ErrRegress):
				check.violate(propAhead, "a position that is before the stored one: %v", err)
			}
		}
		return nil
	})
	if errors.Is(err, errDead) && s.life.stopped() {
		return nil // the sooner a dead process is done
	}
	if err == nil {
		return errs
	}
	errs = make([]error, len(cs))
	for i := range errs {
		errs[i] = err
	}
	return errs
}

func (s *store) Release(ctx context.Context, lease state.Lease) error {
	return s.call(ctx, "release", func() error { return s.keeper.Release(ctx, lease) })
}

func (s *store) Forget(ctx context.Context, st state.Stream, ids ...string) error {
	return s.call(ctx, "forget", func() error { return s.keeper.Forget(ctx, st, ids...) })
}

func (s *store) Heartbeat(ctx context.Context, owner string) error {
	return s.call(ctx, "heartbeat", func() error { return s.keeper.Heartbeat(ctx, owner) })
}

func (s *store) PutLetter(ctx context.Context, app, id string, data []byte) error {
	check := s.life.h.check
	e, err := deadletter.Parse(data)
	if err != nil {
		check.violate(propContent, "a dead letter that cannot be read: %v", err)
		return err
	}
	if e.Gap == nil {
		check.parking(s.life.n, e.StreamARN, e.Sequence)
	}
	err = s.call(ctx, "letter", func() error {
		h := s.life.h
		if e.Gap != nil && h.draw.chance(h.rates().gap, "gap is not stored", uint64(s.life.n), uint64(time.Now().UnixNano())) {
			return errStore
		}
		if err := s.keeper.PutLetter(ctx, app, id, data); err != nil {
			return err
		}
		if e.Gap != nil {
			check.gap(s.life.n, e.Gap)
			return nil
		}
		check.parked(s.life.n, id, e.StreamARN, e.Sequence, e.Route, e.Last.Error)
		return nil
	})
	check.told(s.life.n, id, err)
	return err
}

func (s *store) DeleteLetter(ctx context.Context, app, id string) error {
	return s.call(ctx, "letter delete", func() error { return s.keeper.DeleteLetter(ctx, app, id) })
}

func (s *store) ListLetters(ctx context.Context, app, after string, limit int) (got []state.Letter, err error) {
	err = s.call(ctx, "letters", func() (err error) {
		got, err = s.keeper.ListLetters(ctx, app, after, limit)
		return err
	})
	if err != nil {
		s.life.h.check.lettersUnlisted()
	}
	return got, err
}

// sleep waits for d of what the life's own calls take.
func (l *life) sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-l.gate.died:
		return errDead
	}
}

// deaf waits for d whatever becomes of who called, as a state file on a disk
// that hangs. It is false when the life died meanwhile: what it had begun is
// carried out, or is not.
func (l *life) deaf(d time.Duration) bool { return l.sleep(context.Background(), d) == nil }
