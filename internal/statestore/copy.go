package statestore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sluicehq/sluice/internal/backoff"
	"github.com/sluicehq/sluice/internal/holders"
	"github.com/sluicehq/sluice/internal/staterules"
	"github.com/sluicehq/sluice/state"
)

// Source is a state to copy. Labels of letters are copied if it has them.
type Source interface {
	state.Store
	state.Letters
	state.Values
}

// Copied counts what a copy has, of one application.
type Copied struct {
	Application string `json:"application"`
	Streams     int    `json:"streams"`
	Shards      int    `json:"shards"`
	Letters     int    `json:"deadLetters"`
	Values      int    `json:"values"` // progress of backfills
}

var (
	// ErrTaken is wrapped when the target has state of the application.
	ErrTaken = errors.New("the target already has state of the application")
	// ErrUnfinished is wrapped when a copy to the store has not ended.
	ErrUnfinished = errors.New("a copy to this state has not ended: run sluice state copy or import-kcl again, which copies everything again")
)

const (
	copiers    = 16 // requests at a time
	letterPage = 100
	// unfinished is the name of a value that the target has during a copy.
	unfinished = "copy/unfinished"
)

// Ready returns ErrUnfinished if a copy of the application to s has not ended: a daemon
// would begin at wrong positions.
func Ready(ctx context.Context, s state.Values, app string) error {
	_, ok, err := s.GetValue(ctx, app, unfinished)
	if ok {
		return fmt.Errorf("application %s: %w", app, ErrUnfinished)
	}
	return err
}

// Copy copies the state of an application, whose daemons must be stopped. It holds all
// shards of the source meanwhile, and returns an error if a worker has one. progress is
// called after each row. With dry, Copy counts and changes nothing; to may be nil then.
//
// After an error Copy can be called again: it begins anew. Until it has returned nil,
// Ready returns an error for the target.
func Copy(ctx context.Context, from Source, to Store, app string, dry bool, progress func()) (done Copied, err error) {
	c := &copier{from: from, to: to, app: app, dry: dry, progress: progress, owner: "copy-" + rand.Text()}
	done.Application = app
	if err := Ready(ctx, from, app); err != nil {
		return done, err
	}
	if to != nil {
		if err := c.taken(ctx); err != nil {
			return done, err
		}
	}
	held, released := make(map[state.Stream][]state.Shard), dry
	if dry {
		if err = c.idle(ctx); err == nil {
			err = c.listed(ctx, held)
		}
	} else {
		ctx, end := context.WithCancel(ctx)
		defer end()
		go c.beat(ctx)
		defer func() {
			if !released {
				err = errors.Join(err, c.release(context.WithoutCancel(ctx), held))
			}
		}()
		err = c.hold(ctx, held)
	}
	if err != nil {
		return done, err
	}
	// No flow parks a record any more.
	if !dry {
		if err := c.clear(ctx); err != nil {
			return done, err
		}
	}
	if done.Values, err = c.values(ctx); err != nil {
		return done, err
	}
	if done.Letters, err = c.letters(ctx); err != nil {
		return done, err
	}
	done.Streams = len(held)
	for st, shards := range held {
		if err := c.positions(ctx, st, shards); err != nil {
			return done, fmt.Errorf("stream %s: %w", st.ARN, err)
		}
		done.Shards += len(shards)
	}
	for st := range held {
		if err := c.start(ctx, st); err != nil {
			return done, fmt.Errorf("stream %s: %w", st.ARN, err)
		}
	}
	if dry {
		return done, nil
	}
	released = true
	if err := c.release(context.WithoutCancel(ctx), held); err != nil { // the source may have changed
		return done, err
	}
	mark, _, err := to.GetValue(ctx, app, unfinished)
	if err != nil || string(mark) != c.owner {
		return done, errors.Join(err, errors.New("another copy to the same place has begun: run one of them again"))
	}
	return done, to.DeleteValue(ctx, app, unfinished)
}

type copier struct {
	from     Source
	to       Store
	app      string
	dry      bool
	progress func()
	owner    string // of the claims
}

// there lists what the target has, of its letters the first few.
func (c *copier) there(ctx context.Context, few int) (streams []state.Stream, values []state.Value, letters []state.Letter, err error) {
	if streams, err = c.to.Streams(ctx, c.app); err == nil {
		if values, err = c.to.ListValues(ctx, c.app, ""); err == nil {
			letters, err = c.to.ListLetters(ctx, c.app, "", few)
		}
	}
	return streams, values, letters, err
}

// taken returns an error if the target has state that is not of an unfinished copy.
func (c *copier) taken(ctx context.Context) error {
	streams, values, letters, err := c.there(ctx, 1)
	if err != nil {
		return err
	}
	values = slices.DeleteFunc(values, func(v state.Value) bool { return holders.IsReport(v.Name) })
	switch err := Ready(ctx, c.to, c.app); {
	case errors.Is(err, ErrUnfinished):
	case err != nil:
		return err
	case len(streams)+len(values)+len(letters) > 0:
		return fmt.Errorf("%w %s: name another place, or first forget the state there (sluice state reset TABLE --to forgotten, sluice dlq purge --all)", ErrTaken, c.app)
	}
	return nil
}

// clear marks the target and removes what an earlier copy has left there.
func (c *copier) clear(ctx context.Context) error {
	streams, values, letters, err := c.there(ctx, letterPage)
	if err != nil {
		return err
	}
	if err := c.to.PutValue(ctx, c.app, unfinished, []byte(c.owner)); err != nil {
		return err
	}
	for _, st := range streams {
		if err := c.to.ResetStream(ctx, st, state.Start{}); err != nil {
			return err
		}
	}
	for _, v := range values {
		if v.Name != unfinished {
			if err := c.to.DeleteValue(ctx, c.app, v.Name); err != nil {
				return err
			}
		}
	}
	for len(letters) > 0 {
		for _, l := range letters {
			if err := c.to.DeleteLetter(ctx, c.app, l.ID); err != nil {
				return err
			}
		}
		if letters, err = c.to.ListLetters(ctx, c.app, "", letterPage); err != nil {
			return err
		}
	}
	return nil
}

// listed finds all shards, without a claim.
func (c *copier) listed(ctx context.Context, held map[state.Stream][]state.Shard) error {
	streams, err := c.from.Streams(ctx, c.app)
	for _, st := range streams {
		if held[st], err = c.from.Shards(ctx, st); err != nil {
			return err
		}
	}
	return err
}

// idle returns an error if a living worker has a shard. A file has none: it is locked.
func (c *copier) idle(ctx context.Context) error {
	fleet, ok := c.from.(holders.Fleet)
	if !ok {
		return nil
	}
	all, err := fleet.Workers(ctx, c.app)
	for _, w := range all {
		if w.State == holders.Living && len(w.Shards) > 0 {
			return fmt.Errorf("a worker runs, stop it first: %s has %d shards", w.Name, len(w.Shards))
		}
	}
	return err
}

// hold claims all shards, until a list shows no other: a worker that still ran may
// have begun one meanwhile.
func (c *copier) hold(ctx context.Context, held map[state.Stream][]state.Shard) error {
	have := make(map[state.Stream]map[string]bool)
	for {
		all := make(map[state.Stream][]state.Shard)
		if err := c.listed(ctx, all); err != nil {
			return err
		}
		more := false
		for st, shards := range all {
			if have[st] == nil {
				have[st], held[st] = make(map[string]bool), nil
			}
			var mu sync.Mutex
			err := each(ctx, slices.DeleteFunc(shards, func(sh state.Shard) bool { return have[st][sh.ID] }), func(ctx context.Context, sh state.Shard) error {
				mine, err := sh, error(nil)
				if !past(sh) {
					mine, err = claim(ctx, c.from, st, sh, c.owner)
				}
				if errors.Is(err, state.ErrHeld) {
					return fmt.Errorf("a worker runs, stop it first: %w", err)
				}
				if err != nil {
					return err
				}
				mu.Lock()
				defer mu.Unlock()
				have[st][sh.ID], more = true, true
				held[st] = append(held[st], mine)
				return nil
			})
			if err != nil {
				return err
			}
		}
		if !more {
			return nil
		}
	}
}

func (c *copier) release(ctx context.Context, held map[state.Stream][]state.Shard) error {
	var errs []error
	for st, shards := range held {
		errs = append(errs, each(ctx, shards, func(ctx context.Context, sh state.Shard) error {
			if past(sh) {
				return nil
			}
			return c.from.Release(ctx, lease(st, sh))
		}))
	}
	return errors.Join(errs...)
}

// each calls do with every shard, some at a time, and returns the first error.
func each(ctx context.Context, shards []state.Shard, do func(context.Context, state.Shard) error) error {
	running, ctx := errgroup.WithContext(ctx)
	running.SetLimit(copiers)
	for _, sh := range shards {
		running.Go(func() error { return do(ctx, sh) })
	}
	return running.Wait()
}

// beat keeps the claims.
func (c *copier) beat(ctx context.Context) {
	every := time.NewTicker(time.Second) // a slow store does not make the heartbeats rarer
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
			_ = c.from.Heartbeat(ctx, c.owner) // a lost claim shows when the shard is released
			_ = c.to.Heartbeat(ctx, c.owner)
		}
	}
}

func (c *copier) values(ctx context.Context) (n int, err error) {
	values, err := c.from.ListValues(ctx, c.app, "")
	if err != nil {
		return 0, err
	}
	for _, v := range values {
		if holders.IsReport(v.Name) {
			continue
		}
		if !c.dry {
			if err := c.to.PutValue(ctx, c.app, v.Name, v.Data); err != nil {
				return n, err
			}
		}
		n++
		c.progress()
	}
	return n, nil
}

func (c *copier) letters(ctx context.Context) (n int, err error) {
	for after := ""; ; {
		page, err := c.from.ListLetters(ctx, c.app, after, letterPage)
		if err != nil || len(page) == 0 {
			return n, err
		}
		labels := map[string][]byte{}
		if from, ok := c.from.(state.Labels); ok {
			labelled, err := from.ListLabels(ctx, c.app, after, letterPage)
			if err != nil {
				return n, err
			}
			for _, l := range labelled {
				labels[l.ID] = l.Data
			}
		}
		for _, l := range page {
			after = l.ID
			if !c.dry {
				if err := c.to.PutLabelled(ctx, c.app, l.ID, l.Data, labels[l.ID]); err != nil {
					return n, err
				}
			}
			n++
			c.progress()
		}
	}
}

// positions copies the shards of a stream.
func (c *copier) positions(ctx context.Context, st state.Stream, shards []state.Shard) error {
	var err error
	if !c.dry {
		err = each(ctx, shards, func(ctx context.Context, sh state.Shard) error { return c.position(ctx, st, sh) })
	}
	for range shards {
		c.progress()
	}
	return err
}

// past reports whether a shard was closed before the start of its stream: nobody has
// claimed it, and nobody ever does.
func past(sh state.Shard) bool { return sh.Position.Finished && sh.Epoch == 0 }

func (c *copier) position(ctx context.Context, st state.Stream, sh state.Shard) error {
	if past(sh) {
		return c.to.Finish(ctx, st, sh.ID)
	}
	copied, err := claim(ctx, c.to, st, sh, c.owner)
	if err != nil {
		return err
	}
	if sh.Position != (state.Position{}) {
		err = errors.Join(c.to.Checkpoint(ctx, []state.Checkpoint{{Lease: lease(st, copied), Position: sh.Position}})...)
	}
	return errors.Join(err, c.to.Release(ctx, lease(st, copied)))
}

func (c *copier) start(ctx context.Context, st state.Stream) error {
	start, err := c.from.Start(ctx, st, state.Start{})
	if errors.Is(err, state.ErrNoStart) || c.dry {
		return nil
	}
	if err != nil {
		return err
	}
	stored, err := c.to.Start(ctx, st, start)
	if err == nil && (stored.Position != start.Position || !stored.At.Equal(start.At)) {
		err = errors.New("a daemon has begun on the target: stop it")
	}
	return err
}

func lease(st state.Stream, sh state.Shard) state.Lease {
	return state.Lease{Stream: st, ShardID: sh.ID, Owner: sh.Owner, Epoch: sh.Epoch}
}

// claimWithin is longer than any store needs to find an owner silent.
const claimWithin = staterules.OwnerTimeout + time.Second

// claim waits until it is clear whether the owner of a shard lives.
func claim(ctx context.Context, s state.Store, st state.Stream, sh state.Shard, owner string) (state.Shard, error) {
	for begun := time.Now(); ; {
		got, err := s.Claim(ctx, st, sh.ID, sh.Parent, owner)
		if !errors.Is(err, state.ErrHeld) || time.Since(begun) > claimWithin {
			return got, err
		}
		if err := backoff.Sleep(ctx, time.Second); err != nil {
			return got, err
		}
	}
}
