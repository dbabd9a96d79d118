package dynamodb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/batch"
	"github.com/sluicehq/sluice/internal/parallel"
	"github.com/sluicehq/sluice/item/sdkitem"
)

const (
	maxWrites       = 25       // of one BatchWriteItem
	maxRequestBytes = 16 << 20 // of one BatchWriteItem
	maxItemBytes    = 400 << 10

	// patience is how long a commit waits for a budget, unless its callers'
	// contexts end first. Timeout starts afterwards.
	patience = time.Hour
)

// Put writes an item, and replaces one with the same key. It returns nil once the
// item is durable. Concurrent calls share requests. Writes of one key keep the
// order of the calls. If ctx ends before the item is sent, the item is not
// written; afterwards Put waits for the real result.
func (s *Store) Put(ctx context.Context, table string, it sluice.Item) error {
	w, err := s.newPut(table, it, s.keysOf(ctx, table))
	if err != nil {
		return err
	}
	return s.write(ctx, w)
}

// Delete deletes the item with the key if it exists, in the way of Put.
func (s *Store) Delete(ctx context.Context, table string, key sluice.Item) error {
	w, err := s.newDelete(table, key, nil)
	if err != nil {
		return err
	}
	return s.write(ctx, w)
}

// PutAll is Put for several items. It returns one error per item, or nil when all
// are durable. Requests run concurrently, so only items of one key keep their
// order. After a temporary failure of a key, later items of that key fail unsent:
// a retry of the earlier item would overwrite them.
func (s *Store) PutAll(ctx context.Context, table string, items []sluice.Item) []error {
	return s.writeAll(ctx, table, items, s.newPut, nil, nil)
}

// DeleteAll is Delete for several keys, in the way of PutAll.
func (s *Store) DeleteAll(ctx context.Context, table string, keys []sluice.Item) []error {
	return s.writeAll(ctx, table, keys, s.newDelete, nil, nil)
}

// batchWrite is a pending Put or Delete.
type batchWrite struct {
	table   string
	id      keyID
	key     []string // names of the key attributes
	request types.WriteRequest
	bytes   int     // approximate size in a request
	units   float64 // expected consumption
	guard   *guard  // nil permits the write
}

// keyID identifies an item. Different keys may share one; they are then written
// one after another without need.
type keyID struct {
	table string
	hash  uint64 // of the key attributes with their names; 1 and 1.0 are equal
}

func (s *Store) newPut(table string, it sluice.Item, keys keysOf) (*batchWrite, error) {
	if !it.Exists() {
		return nil, refuse(table, errors.New("Put has no item"))
	}
	if err := tooLarge(it); err != nil {
		return nil, refuse(table, err)
	}
	names, err := keys()
	if err != nil {
		return nil, err
	}
	key := it.Only(names...)
	if key.Len() < len(names) {
		return nil, refuse(table, fmt.Errorf("the item has not all of the key attributes %q", names))
	}
	return s.newWrite(table, names, it, key, types.WriteRequest{PutRequest: &types.PutRequest{Item: sdkitem.Map(it)}}), nil
}

func (s *Store) newDelete(table string, key sluice.Item, _ keysOf) (*batchWrite, error) {
	if !key.Exists() {
		return nil, refuse(table, errors.New("Delete has no key"))
	}
	var names []string
	for name := range key.All() {
		names = append(names, name)
	}
	return s.newWrite(table, names, key, key, types.WriteRequest{DeleteRequest: &types.DeleteRequest{Key: sdkitem.Map(key)}}), nil
}

func (s *Store) newWrite(table string, names []string, it, key sluice.Item, r types.WriteRequest) *batchWrite {
	w := &batchWrite{table: table, id: keyID{tableName(table), key.Hash()}, key: names, request: r, bytes: len(it.Raw()) + len(table)}
	if s.budget.of(table) != nil {
		w.units = max(1, float64((sizeOf(it)+1023)/1024))
	}
	return w
}

func refuse(table string, err error) error {
	return sluice.Permanent(fmt.Errorf("dynamodb: table %q: %w", table, err))
}

func (s *Store) write(ctx context.Context, w *batchWrite) error {
	ids := []keyID{w.id}
	if err := s.order.enter(ctx, ids); err != nil {
		return notSent(w.table, err)
	}
	defer s.order.leave(ids)
	return fromBatch(w.table, s.batcher(w.table).Do(ctx, w))
}

// fromBatch adds the table to errors of package batch itself.
func fromBatch(table string, err error) error {
	if err == nil || errors.As(err, new(*tableError)) {
		return err
	}
	return &tableError{table, err}
}

func notSent(table string, err error) error {
	return &tableError{table, fmt.Errorf("not sent: %w", err)}
}

// newBatchers makes one Batcher for all tables, and one for each table with a
// budget: a wait for a budget delays no other table.
func (s *Store) newBatchers() {
	s.shared = s.newBatcher(s.opt.Timeout)
	for table := range s.budget.buckets {
		s.own.Store(table, s.newBatcher(patience))
	}
}

func (s *Store) newBatcher(timeout time.Duration) *batch.Batcher[*batchWrite] {
	return batch.New(s.commit, func(w *batchWrite) int { return w.bytes }, batch.Options{
		MaxItems: maxWrites,
		MaxBytes: maxRequestBytes,
		InFlight: s.opt.InFlight,
		Linger:   s.opt.Linger,
		Timeout:  timeout,
		Metrics:  s.opt.Metrics,
		Sink:     s.opt.Sink,
	})
}

func (s *Store) batcher(table string) *batch.Batcher[*batchWrite] {
	if b, ok := s.own.Load(tableName(table)); ok {
		return b.(*batch.Batcher[*batchWrite])
	}
	return s.shared
}

// setApart gives a throttled table a Batcher of its own for good. Its waits would
// otherwise delay writes to other tables in the same request and occupy all
// requests.
func (s *Store) setApart(table string) {
	if name := tableName(table); s.batcher(table) == s.shared {
		s.own.LoadOrStore(name, s.newBatcher(s.opt.Timeout))
	}
}

type makeWrite func(table string, it sluice.Item, keys keysOf) (*batchWrite, error)

// keysOf returns the names of the table's key attributes.
type keysOf func() ([]string, error)

func (s *Store) keysOf(ctx context.Context, table string) keysOf {
	return func() ([]string, error) { return s.keys.of(ctx, table) }
}

// writeAll writes items under a guard, and passes each result to done when it is
// known. Both may be nil.
func (s *Store) writeAll(ctx context.Context, table string, items []sluice.Item, newWrite makeWrite, g *guard, done func([]sluice.Item, []error)) []error {
	if len(items) == 0 {
		return nil
	}
	m := many{store: s, table: table, items: items, guard: g, done: done, errs: make([]error, len(items)), writes: make([]*batchWrite, len(items))}
	keys := sync.OnceValues(s.keysOf(ctx, table))
	for i, it := range items {
		if m.writes[i], m.errs[i] = newWrite(table, it, keys); m.errs[i] != nil {
			m.tell([]int{i})
			continue
		}
		m.writes[i].guard = g
	}
	waves, ids := m.waves()
	if err := s.order.enter(ctx, ids); err != nil {
		m.fail(slices.Concat(waves...), notSent(table, err))
		return m.errs
	}
	defer s.order.leave(ids)
	behind := map[keyID]error{}
	for _, wave := range waves {
		m.write(ctx, m.without(wave, behind))
		for _, i := range wave {
			if err := m.errs[i]; err != nil && !sluice.IsPermanent(err) {
				behind[m.writes[i].id] = err
			}
		}
	}
	if !slices.ContainsFunc(m.errs, func(err error) bool { return err != nil }) {
		return nil
	}
	return m.errs
}

// many is one call of PutAll, DeleteAll or DeleteGuarded.
type many struct {
	store  *Store
	table  string
	items  []sluice.Item
	writes []*batchWrite // nil if it already has an error
	errs   []error
	guard  *guard
	done   func([]sluice.Item, []error) // may be nil
}

// waves divides the writes so that no wave has a key twice: the n-th write of a
// key is in the n-th wave. It also returns the keys.
func (m *many) waves() (waves [][]int, ids []keyID) {
	count := make(map[keyID]int, len(m.writes))
	for i, w := range m.writes {
		if w == nil {
			continue
		}
		n := count[w.id]
		count[w.id]++
		if n == 0 {
			ids = append(ids, w.id)
		}
		if n == len(waves) {
			waves = append(waves, nil)
		}
		waves[n] = append(waves[n], i)
	}
	return waves, ids
}

// without omits the writes whose key has failed before.
func (m *many) without(wave []int, behind map[keyID]error) []int {
	return slices.DeleteFunc(slices.Clone(wave), func(i int) bool {
		err := behind[m.writes[i].id]
		if err != nil {
			m.fail([]int{i}, notSent(m.table, fmt.Errorf("an earlier write of the same key failed: %w", err)))
		}
		return err != nil
	})
}

// write writes a wave, several requests at a time.
func (m *many) write(ctx context.Context, wave []int) {
	for _, i := range wave {
		m.errs[i] = &tableError{m.table, errors.New("its goroutine ended; whether it was written is not known")}
	}
	chunks := slices.Collect(slices.Chunk(wave, maxWrites))
	parallel.Do(len(chunks), m.store.opt.InFlight, func(n int) { m.writeChunk(ctx, chunks[n]) })
}

func (m *many) writeChunk(ctx context.Context, chunk []int) {
	if err := m.guard.refusal(); err != nil {
		m.fail(chunk, &tableError{m.table, err})
		return
	}
	ws := make([]*batchWrite, len(chunk))
	for k, i := range chunk {
		ws[k] = m.writes[i]
	}
	errs := m.store.batcher(m.table).DoAll(ctx, ws)
	for k, i := range chunk {
		if m.errs[i] = nil; errs != nil {
			m.errs[i] = fromBatch(m.table, errs[k])
		}
	}
	m.tell(chunk)
}

func (m *many) fail(writes []int, err error) {
	for _, i := range writes {
		m.errs[i] = err
	}
	m.tell(writes)
}

// tell passes the results of writes to done.
func (m *many) tell(writes []int) {
	if m.done == nil || len(writes) == 0 {
		return
	}
	items, errs, failed := make([]sluice.Item, len(writes)), make([]error, len(writes)), false
	for k, i := range writes {
		items[k], errs[k] = m.items[i], m.errs[i]
		failed = failed || errs[k] != nil
	}
	if !failed {
		errs = nil
	}
	m.done(items, errs)
}
