package state

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/sluicehq/sluice/internal/staterules"
)

// Memory is a Store, Letters and Values in memory, for tests and for programs that
// start afresh every time.
type Memory struct {
	owners staterules.Presence

	mu      sync.Mutex
	streams map[Stream]*memoryStream
	letters bytesByName
	values  bytesByName
}

type memoryStream struct {
	start  *Start
	shards map[string]Shard
}

// NewMemory returns an empty store.
func NewMemory() *Memory {
	return &Memory{streams: make(map[Stream]*memoryStream), letters: make(bytesByName), values: make(bytesByName)}
}

// stream returns the stored state of s. The lock is held.
func (m *Memory) stream(s Stream) *memoryStream {
	st := m.streams[s]
	if st == nil {
		st = &memoryStream{shards: make(map[string]Shard)}
		m.streams[s] = st
	}
	return st
}

// Start implements [Store].
func (m *Memory) Start(ctx context.Context, s Stream, want Start) (Start, error) {
	if err := errors.Join(ctx.Err(), s.Validate()); err != nil {
		return Start{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	st := m.stream(s)
	if st.start == nil {
		if want == (Start{}) {
			return Start{}, ErrNoStart
		}
		if err := want.Validate(); err != nil {
			return Start{}, err
		}
		st.start = &want
	}
	return *st.start, nil
}

// Streams implements [Store].
func (m *Memory) Streams(ctx context.Context, app string) ([]Stream, error) {
	if err := errors.Join(ctx.Err(), staterules.Application(app)); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []Stream
	for s, kept := range m.streams {
		if s.Application == app && (kept.start != nil || len(kept.shards) > 0) {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b Stream) int { return strings.Compare(a.ARN, b.ARN) })
	return all, nil
}

// Shards implements [Store]; they are ordered by id.
func (m *Memory) Shards(ctx context.Context, s Stream) ([]Shard, error) {
	if err := errors.Join(ctx.Err(), s.Validate()); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.SortedFunc(maps.Values(m.stream(s).shards), func(a, b Shard) int { return strings.Compare(a.ID, b.ID) }), nil
}

// Finish implements [Store].
func (m *Memory) Finish(ctx context.Context, s Stream, shardIDs ...string) error {
	if err := errors.Join(ctx.Err(), s.Validate()); err != nil {
		return err
	}
	if err := staterules.Shards(shardIDs); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	st := m.stream(s)
	for _, id := range shardIDs {
		if _, ok := st.shards[id]; !ok {
			st.shards[id] = Shard{ID: id, Position: Position{Finished: true}}
		}
	}
	return nil
}

// Claim implements [Store].
func (m *Memory) Claim(ctx context.Context, s Stream, shardID, parent, owner string) (Shard, error) {
	if err := errors.Join(ctx.Err(), s.Validate()); err != nil {
		return Shard{}, err
	}
	if err := staterules.Claim(shardID, owner); err != nil {
		return Shard{}, err
	}
	if !m.owners.Seen(owner) {
		return Shard{}, fmt.Errorf("%w: %s", ErrFenced, owner)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	st := m.stream(s)
	sh := st.shards[shardID]
	if sh.Owner != "" && sh.Owner != owner && !m.owners.Fence(sh.Owner) {
		return Shard{}, fmt.Errorf("%w: shard %s by %s", ErrHeld, shardID, sh.Owner)
	}
	sh.ID = shardID
	parent = cmp.Or(parent, sh.Parent)
	sh = sh.Claimed(Shard{ID: parent, Epoch: st.shards[parent].Epoch}, owner)
	st.shards[shardID] = sh
	return sh, nil
}

// Checkpoint implements [Store].
func (m *Memory) Checkpoint(ctx context.Context, cs []Checkpoint) []error {
	m.mu.Lock()
	defer m.mu.Unlock()
	errs := make([]error, len(cs))
	failed := false
	for i, c := range cs {
		err := ctx.Err()
		if err == nil {
			shards := m.stream(c.Lease.Stream).shards
			var sh Shard
			if sh, err = shards[c.Lease.ShardID].Advanced(c); err == nil {
				shards[c.Lease.ShardID] = sh
			}
		}
		errs[i] = err
		failed = failed || err != nil
	}
	if !failed {
		return nil
	}
	return errs
}

// Release implements [Store].
func (m *Memory) Release(ctx context.Context, l Lease) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	shards := m.stream(l.Stream).shards
	sh := shards[l.ShardID]
	if err := sh.Check(l); err != nil {
		return err
	}
	sh.Owner = ""
	shards[l.ShardID] = sh
	return nil
}

// Forget implements [Store].
func (m *Memory) Forget(ctx context.Context, s Stream, shardIDs ...string) error {
	if err := errors.Join(ctx.Err(), s.Validate()); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	shards := m.stream(s).shards
	for _, id := range shardIDs {
		if shards[id].Forgettable(m.owners.Living) {
			delete(shards, id)
		}
	}
	return nil
}

// Heartbeat implements [Store].
func (m *Memory) Heartbeat(ctx context.Context, owner string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !m.owners.Seen(owner) {
		return fmt.Errorf("%w: %s", ErrFenced, owner)
	}
	return nil
}

// Close ends all owners and keeps everything else, like the end of a process with
// a durable store. The Memory can still be used.
func (m *Memory) Close() error {
	m.owners.Forget()
	return nil
}

// PutLetter implements [Letters].
func (m *Memory) PutLetter(ctx context.Context, app, id string, data []byte) error {
	if err := errors.Join(ctx.Err(), staterules.Letter(app, id)); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.letters.put(app, id, data)
	return nil
}

// GetLetter implements [Letters].
func (m *Memory) GetLetter(ctx context.Context, app, id string) ([]byte, bool, error) {
	if err := errors.Join(ctx.Err(), staterules.Letter(app, id)); err != nil {
		return nil, false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	data, ok := m.letters[app][id]
	return slices.Clone(data), ok, nil
}

// ListLetters implements [Letters].
func (m *Memory) ListLetters(ctx context.Context, app, after string, limit int) ([]Letter, error) {
	if err := errors.Join(ctx.Err(), staterules.Letter(app, "any")); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var letters []Letter
	for _, id := range slices.Sorted(maps.Keys(m.letters[app])) {
		if id > after && len(letters) < limit {
			letters = append(letters, Letter{ID: id, Data: slices.Clone(m.letters[app][id])})
		}
	}
	return letters, nil
}

// DeleteLetter implements [Letters].
func (m *Memory) DeleteLetter(ctx context.Context, app, id string) error {
	if err := errors.Join(ctx.Err(), staterules.Letter(app, id)); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.letters[app], id)
	return nil
}

// PutValue implements [Values].
func (m *Memory) PutValue(ctx context.Context, app, name string, data []byte) error {
	if err := errors.Join(ctx.Err(), staterules.Value(app, name, data)); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.values.put(app, name, data)
	return nil
}

// GetValue implements [Values].
func (m *Memory) GetValue(ctx context.Context, app, name string) ([]byte, bool, error) {
	if err := errors.Join(ctx.Err(), staterules.Value(app, name, nil)); err != nil {
		return nil, false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	data, ok := m.values[app][name]
	return slices.Clone(data), ok, nil
}

// ListValues implements [Values].
func (m *Memory) ListValues(ctx context.Context, app, prefix string) ([]Value, error) {
	if err := errors.Join(ctx.Err(), staterules.Value(app, "any", nil)); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var values []Value
	for _, name := range slices.Sorted(maps.Keys(m.values[app])) {
		if strings.HasPrefix(name, prefix) {
			values = append(values, Value{Name: name, Data: slices.Clone(m.values[app][name])})
		}
	}
	return values, nil
}

// DeleteValue implements [Values].
func (m *Memory) DeleteValue(ctx context.Context, app, name string) error {
	if err := errors.Join(ctx.Err(), staterules.Value(app, name, nil)); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.values[app], name)
	return nil
}

// bytesByName has the letters or values of each application, by id or name.
type bytesByName map[string]map[string][]byte

func (b bytesByName) put(app, name string, data []byte) {
	if b[app] == nil {
		b[app] = make(map[string][]byte)
	}
	b[app][name] = slices.Clone(data)
}
