// Package job claims work of an application that is not a shard, in a state that
// several processes share: one of them has it at a time. A claim has an owner and an
// epoch, as that of a shard has.
package job

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice/internal/backoff"
	"github.com/sluicehq/sluice/internal/staterules"
	"github.com/sluicehq/sluice/state"
)

// Store is a state that several processes share.
type Store interface {
	state.Store
	SilentAfter() time.Duration
	// Fork returns a Store of the same state and type, whose Close ends its own owners only.
	Fork() state.Store
	// SwapValue stores a value if the stored one is still seen; nil: if there is none.
	SwapValue(ctx context.Context, app, name string, seen, data []byte) (bool, error)
}

// Stream returns the stream whose shards are the jobs of an application.
func Stream(app string) state.Stream { return state.Stream{Application: app, ARN: staterules.Jobs} }

// Redrive is the job of running or deleting dead letters.
const Redrive = "redrive or purge of dead letters"

const (
	beatEvery   = time.Second
	claimEvery  = 250 * time.Millisecond
	callTimeout = 10 * time.Second
)

// Owner is who claims jobs: a worker of its own, that ends with its jobs. So a claim is
// free soon after, also if its release is lost. Its methods are safe for concurrent use.
type Owner struct {
	Store   Store // for claims
	begin   sync.Once
	end     context.CancelFunc
	life    context.Context
	beating sync.WaitGroup
	name    atomic.Pointer[string]
}

// NewOwner returns an Owner that lives until End.
func NewOwner(store Store) *Owner {
	o := &Owner{Store: store.Fork().(Store)}
	o.life, o.end = context.WithCancel(context.Background())
	o.rename()
	return o
}

func (o *Owner) rename() {
	host, _ := os.Hostname()
	name := fmt.Sprintf("%s/%d/%s", host, os.Getpid(), rand.Text()[:8])
	o.name.Store(&name)
}

// Name returns the name, and begins its heartbeats. A fenced Owner has another name.
func (o *Owner) Name() string {
	o.begin.Do(func() { o.beating.Go(o.beat) })
	return *o.name.Load()
}

func (o *Owner) beat() {
	for {
		pause := beatEvery
		if err := o.Store.Heartbeat(o.life, *o.name.Load()); errors.Is(err, state.ErrFenced) {
			o.rename()
		} else if err != nil {
			pause = claimEvery
		}
		if backoff.Sleep(o.life, pause) != nil {
			return
		}
	}
}

// End frees all claims: at once, or if that cannot be stored after SilentAfter.
func (o *Owner) End() {
	o.end()
	o.beating.Wait()
	_ = o.Store.Close()
}

// ErrLost says that another process may have the job.
var ErrLost = errors.New("the claim is lost: another worker may do the same")

// HeldError says who has the job.
type HeldError struct {
	Job, Owner string
	Since      time.Time // by the owner's clock
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("a %s is under way since %s, by worker %s: try again when it has ended", e.Job, e.Since.UTC().Format(time.RFC3339), e.Owner)
}

// Hold claims a job. The context that it returns ends when the claim is lost. Call release
// at the end of the work. If another owner has the job, Hold waits as long as it takes to
// know that this one lives, and returns a [*HeldError].
func Hold(ctx context.Context, store Store, app, name string) (held context.Context, release func(), err error) {
	owner := NewOwner(store)
	defer func() {
		if err != nil {
			owner.End()
		}
	}()
	store = owner.Store
	var l state.Lease
	var sh state.Shard
	for begun := time.Now(); ; {
		l = state.Lease{Stream: Stream(app), ShardID: name, Owner: owner.Name()}
		sh, err = store.Claim(ctx, l.Stream, name, "", l.Owner)
		if !errors.Is(err, state.ErrHeld) || time.Since(begun) > store.SilentAfter()*3/2 || backoff.Sleep(ctx, claimEvery) != nil {
			break
		}
	}
	if errors.Is(err, state.ErrHeld) {
		return nil, nil, holder(ctx, store, app, name, err)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("claim the %s: %w", name, err)
	}
	// The time is a position that only grows, whatever the clocks say.
	since := state.Position{Sequence: strconv.FormatInt(time.Now().Unix(), 10)}
	if since.Compare(sh.Position) < 0 {
		since = sh.Position
	}
	l.Epoch = sh.Epoch
	sent := time.Now()
	if err := Checkpoint(ctx, store, l, since); err != nil {
		return nil, nil, fmt.Errorf("claim the %s: %w", name, err)
	}
	held, lose := context.WithCancelCause(ctx)
	var checking sync.WaitGroup
	checking.Go(func() {
		for backoff.Sleep(held, beatEvery) == nil {
			// Others may fence an owner that cannot reach the state.
			limit := sent.Add(store.SilentAfter() * 9 / 10)
			within, end := context.WithDeadline(held, limit)
			now := time.Now()
			err := Checkpoint(within, store, l, since)
			end()
			switch {
			case err == nil:
				sent = now
			case errors.Is(err, state.ErrLeaseLost) || !time.Now().Before(limit):
				lose(fmt.Errorf("%s: %w: %w", name, ErrLost, err))
			}
		}
	})
	return held, func() {
		lose(nil)
		checking.Wait()
		ctx, end := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
		defer end()
		_ = store.Release(ctx, l) // else the owner's end does
		owner.End()
	}, nil
}

// Exclusive returns Hold for one job.
func Exclusive(store Store, app, name string) func(context.Context) (context.Context, func(), error) {
	return func(ctx context.Context) (context.Context, func(), error) { return Hold(ctx, store, app, name) }
}

// Checkpoint stores the position of a claimed job.
func Checkpoint(ctx context.Context, store Store, l state.Lease, p state.Position) error {
	return errors.Join(store.Checkpoint(ctx, []state.Checkpoint{{Lease: l, Position: p}})...)
}

// holder returns who has a job. why is the error of the claim.
func holder(ctx context.Context, store Store, app, name string, why error) error {
	all, err := store.Shards(ctx, Stream(app))
	if err != nil {
		return errors.Join(why, err)
	}
	for _, sh := range all {
		if since, err := strconv.ParseInt(sh.Position.Sequence, 10, 64); err == nil && sh.ID == name && sh.Owner != "" {
			return &HeldError{name, sh.Owner, time.Unix(since, 0)}
		}
	}
	return why
}
