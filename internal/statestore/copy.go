package statestore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

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
	Values      int    `json:"values"` // such as the progress of backfills
}

// ErrTaken is wrapped when the application already runs on the target.
var ErrTaken = errors.New("the target already has positions of the application")

const (
	copiers    = 16 // requests at a time
	letterPage = 100
)

// Copy copies the state of an application from one store to another. The daemons of
// the application must be stopped: Copy claims each shard of the source, and returns
// an error if a worker has it. progress is called after each row. With dry, Copy
// counts and changes nothing; to may be nil then.
//
// A daemon finds the start of a stream on the target only when all positions are
// there. After an error, Copy can be called again.
func Copy(ctx context.Context, from Source, to Store, app string, dry bool, progress func()) (done Copied, err error) {
	c := &copier{from: from, to: to, app: app, dry: dry, progress: progress, owner: "copy-" + rand.Text()}
	done.Application = app
	streams, err := from.Streams(ctx, app)
	if err != nil {
		return done, err
	}
	for _, st := range streams {
		if to == nil {
			break
		}
		switch _, err := to.Start(ctx, st, state.Start{}); {
		case err == nil:
			return done, fmt.Errorf("%w %s: stream %s has a start", ErrTaken, app, st.ARN)
		case !errors.Is(err, state.ErrNoStart):
			return done, err
		}
	}
	if !dry {
		ctx, end := context.WithCancel(ctx)
		defer end()
		go c.beat(ctx)
	}
	if done.Values, err = c.values(ctx); err != nil {
		return done, err
	}
	if done.Letters, err = c.letters(ctx); err != nil {
		return done, err
	}
	for _, st := range streams {
		n, err := c.stream(ctx, st)
		done.Shards += n
		if err != nil {
			return done, fmt.Errorf("stream %s: %w", st.ARN, err)
		}
		done.Streams++
	}
	return done, nil
}

type copier struct {
	from     Source
	to       Store
	app      string
	dry      bool
	progress func()
	owner    string // of the claims
}

// beat keeps the claims.
func (c *copier) beat(ctx context.Context) {
	for every := time.NewTicker(staterules.OwnerTimeout / 5); ; {
		select {
		case <-ctx.Done():
			every.Stop()
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

// stream copies the shards of a stream, parents first, and then its start.
func (c *copier) stream(ctx context.Context, st state.Stream) (n int, err error) {
	start, err := c.from.Start(ctx, st, state.Start{})
	if err != nil && !errors.Is(err, state.ErrNoStart) {
		return 0, err
	}
	shards, err := c.from.Shards(ctx, st)
	if err != nil {
		return 0, err
	}
	for _, generation := range generations(shards) {
		running, ctx := errgroup.WithContext(ctx)
		running.SetLimit(copiers)
		for _, sh := range generation {
			running.Go(func() error {
				if c.dry {
					return nil
				}
				if err := c.shard(ctx, st, sh); err != nil {
					return fmt.Errorf("shard %s: %w", sh.ID, err)
				}
				return nil
			})
		}
		if err := running.Wait(); err != nil {
			return n, err
		}
		for range generation {
			n++
			c.progress()
		}
	}
	if c.dry || start.Position == "" {
		return n, nil
	}
	_, err = c.to.Start(ctx, st, start)
	return n, err
}

// shard copies the position of a shard, which no worker has meanwhile.
func (c *copier) shard(ctx context.Context, st state.Stream, sh state.Shard) error {
	mine, err := claim(ctx, c.from, st, sh, c.owner)
	if err != nil {
		return err
	}
	copied, err := claim(ctx, c.to, st, sh, c.owner)
	if err != nil {
		return err
	}
	if mine.Position != (state.Position{}) {
		err = errors.Join(c.to.Checkpoint(ctx, []state.Checkpoint{{Lease: lease(st, copied), Position: mine.Position}})...)
	}
	return errors.Join(err, c.to.Release(ctx, lease(st, copied)), c.from.Release(ctx, lease(st, mine)))
}

func lease(st state.Stream, sh state.Shard) state.Lease {
	return state.Lease{Stream: st, ShardID: sh.ID, Owner: sh.Owner, Epoch: sh.Epoch}
}

// claim waits until it is clear whether the owner of a shard lives.
func claim(ctx context.Context, s state.Store, st state.Stream, sh state.Shard, owner string) (state.Shard, error) {
	for begun := time.Now(); ; {
		got, err := s.Claim(ctx, st, sh.ID, sh.Parent, owner)
		if !errors.Is(err, state.ErrHeld) || time.Since(begun) > 2*staterules.OwnerTimeout {
			return got, err
		}
		select {
		case <-ctx.Done():
			return got, ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

// generations orders shards: each one comes in a later generation than its parent.
func generations(shards []state.Shard) (all [][]state.Shard) {
	depth := make(map[string]int, len(shards))
	byID := make(map[string]state.Shard, len(shards))
	for _, sh := range shards {
		byID[sh.ID] = sh
	}
	var of func(id string, below int) int
	of = func(id string, below int) int {
		sh, ok := byID[id]
		if d, known := depth[id]; known || !ok || below > len(shards) { // or a circle of parents
			return d
		}
		d := 0
		if _, ok := byID[sh.Parent]; ok {
			d = of(sh.Parent, below+1) + 1
		}
		depth[id] = d
		return d
	}
	for _, sh := range shards {
		d := of(sh.ID, 0)
		for len(all) <= d {
			all = append(all, nil)
		}
		all[d] = append(all[d], sh)
	}
	return all
}
