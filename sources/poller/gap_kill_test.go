package poller

import (
	"context"
	"errors"
	"fmt"
	"github.com/sluicehq/sluice/internal/localtest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/state"
)

var errKilled = errors.New("the process is no more")

// mortal is the store as a process sees it that is killed at its n-th write:
// before or after that took effect.
type mortal struct {
	*state.Memory
	mu    sync.Mutex
	left  int
	after bool
	dead  bool
}

func (m *mortal) write(do func() error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return errKilled
	}
	if m.left--; m.left >= 0 {
		return do()
	}
	m.dead = true
	if m.after {
		_ = do()
	}
	return errKilled
}

func (m *mortal) killed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dead
}

func (m *mortal) Claim(ctx context.Context, st state.Stream, shard, parent, owner string) (sh state.Shard, err error) {
	err = m.write(func() (err error) {
		sh, err = m.Memory.Claim(ctx, st, shard, parent, owner)
		return err
	})
	return sh, err
}

// Start counts as a write when there is something to be stored.
func (m *mortal) Start(ctx context.Context, s state.Stream, want state.Start) (st state.Start, err error) {
	if want == (state.Start{}) && !m.killed() {
		return m.Memory.Start(ctx, s, want)
	}
	err = m.write(func() error { st, err = m.Memory.Start(ctx, s, want); return err })
	return st, err
}

func (m *mortal) Checkpoint(ctx context.Context, cs []state.Checkpoint) []error {
	var errs []error
	if err := m.write(func() error { errs = m.Memory.Checkpoint(ctx, cs); return nil }); err != nil {
		errs = make([]error, len(cs))
		for i := range errs {
			errs[i] = err
		}
	}
	return errs
}

func (m *mortal) Release(ctx context.Context, l state.Lease) error {
	return m.write(func() error { return m.Memory.Release(ctx, l) })
}

func (m *mortal) PutLetter(ctx context.Context, app, id string, data []byte) error {
	return m.write(func() error { return m.Memory.PutLetter(ctx, app, id, data) })
}

// killEverywhere runs a poller on what prepare returns once for every write
// that it makes, kills it there, and lets another one finish the work; then
// check looks at the result. A handler must not see a record of a shard that
// has a gap before the gap's end is durable.
func killEverywhere(t *testing.T, prepare func(*testing.T, *state.Memory) *stub, behind map[string]string, check func(t *testing.T, store *state.Memory, got *sink, r *rig)) {
	for _, effect := range []bool{false, true} {
		for n, more := 0, true; more; n++ {
			t.Run(fmt.Sprintf("write %d, effective %v", n, effect), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					store := state.NewMemory()
					s := prepare(t, store)
					m := &mortal{Memory: store, left: n, after: effect}
					var got sink
					handle := func(ctx context.Context, rec *sluice.Record) error {
						if m.killed() {
							return errKilled
						}
						if g := behind[rec.ShardID]; g != "" && !strings.Contains(parked(t, store), g) {
							t.Errorf("%s was handled, and the gaps are %q", short(rec), parked(t, store))
						}
						return got.handle(ctx, rec)
					}
					o := withBox(m, "orders")
					o.Owner = "first"
					r := start(t, s, handle, o)
					pass(30 * time.Second)
					more = m.killed()
					_ = r.end()
					m.Memory.Close()
					m.left, m.dead = 1000, false
					o.Owner = "second"
					r = start(t, s, handle, o)
					pass(time.Minute)
					check(t, store, &got, r)
					r.mustEnd()
				})
			})
			if n > 50 {
				t.Fatal("it never ends")
			}
		}
	}
}

// Wherever a process is killed around a gap, there is one entry of it with its
// whole range, it is known, and what the stream still holds is handled.
func TestKilledAroundAGap(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	killEverywhere(t, func(t *testing.T, store *state.Memory) *stub { return trimmedShard(t, store) },
		map[string]string{"a": "a/2-5"},
		func(t *testing.T, store *state.Memory, got *sink, r *rig) {
			want(t, "dead letters", parked(t, store), "a/2-5")
			want(t, "position", stored(t, store, "orders"), "a@7")
			r.unready("acknowledge the gap")
			for _, rec := range []string{"a/5", "a/6", "a/7"} {
				if !strings.Contains(got.all(), rec) {
					t.Errorf("%s was not handled: %s", rec, got.all())
				}
			}
		})
}

func TestKilledAroundAGoneShard(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	killEverywhere(t, func(t *testing.T, store *state.Memory) *stub {
		s := trimmedShard(t, store)
		c := &stubShard{id: "c", parent: "a"}
		s.streams[stubARN("orders")].shards = []*stubShard{c}
		s.put(c, "k")
		return s
	}, map[string]string{"c": "a/2-!"},
		func(t *testing.T, store *state.Memory, got *sink, r *rig) {
			want(t, "dead letters", parked(t, store), "a/2-!")
			want(t, "positions", stored(t, store, "orders"), "a@2! c@1")
			r.unready("acknowledge the gap")
			if !strings.Contains(got.all(), "c/1") {
				t.Errorf("c/1 was not handled: %q", got.all())
			}
		})
}

func TestKilledAroundALostBeginning(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	killEverywhere(t, func(t *testing.T, store *state.Memory) *stub {
		s := newStub()
		a := &stubShard{id: "a"}
		s.table("orders", a)
		var got sink
		r := start(t, s, got.handle, testOptions(store, "orders"))
		pass(time.Second)
		r.mustEnd()
		s.put(a, "k", "k", "k")
		s.with(func() { a.trimmed = 2 })
		pass(2 * time.Hour)
		return s
	}, map[string]string{"a": "a/-3"},
		func(t *testing.T, store *state.Memory, got *sink, r *rig) {
			want(t, "dead letters", parked(t, store), "a/-3")
			want(t, "position", stored(t, store, "orders"), "a@3")
			r.unready("the first records and before 100000000000000000003 were trimmed")
			if !strings.Contains(got.all(), "a/3") {
				t.Errorf("a/3 was not handled: %q", got.all())
			}
		})
}

func TestKilledAroundALostParent(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	killEverywhere(t, func(t *testing.T, store *state.Memory) *stub {
		s := newStub()
		st := s.table("orders", &stubShard{id: "x"})
		var got sink
		r := start(t, s, got.handle, testOptions(store, "orders"))
		pass(time.Second)
		r.mustEnd()
		pass(2 * time.Hour)
		b := &stubShard{id: "b", parent: "a"}
		s.put(b, "k")
		st.shards = append(st.shards, b)
		return s
	}, map[string]string{"b": "a/-!"},
		func(t *testing.T, store *state.Memory, got *sink, r *rig) {
			want(t, "dead letters", parked(t, store), "a/-!")
			want(t, "positions", stored(t, store, "orders"), "b@1 x@")
			r.unready("shard a: all records were trimmed before they were read")
			if !strings.Contains(got.all(), "b/1") {
				t.Errorf("b/1 was not handled: %q", got.all())
			}
		})
}
