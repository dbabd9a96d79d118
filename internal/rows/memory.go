package rows

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Memory is a table in memory, for tests. Its zero value is an empty table.
type Memory struct {
	// Fault, if set, returns what happens to a request. call is Get, Write,
	// Delete or List. It is called for one request at a time.
	Fault func(call string, k Key) Fault

	asking sync.Mutex
	mu     sync.Mutex
	rows   map[Key]Row
}

// Fault is what happens to a request. The zero Fault is nothing.
type Fault struct {
	Err  error         // returned by the request
	Made bool          // a write is made all the same
	Late time.Duration // a write is made that long after the request has returned Err
}

// Items returns the rows as the service keeps them, ordered by key.
func (m *Memory) Items() (all []map[string]types.AttributeValue) {
	m.mu.Lock()
	defer m.mu.Unlock()
	keys := slices.SortedFunc(maps.Keys(m.rows), func(a, b Key) int {
		return cmp.Or(strings.Compare(a.Partition, b.Partition), strings.Compare(a.Sort, b.Sort))
	})
	for _, k := range keys {
		item := keyOf(k)
		maps.Copy(item, m.rows[k].Attributes)
		item[TokenName] = text(m.rows[k].Token)
		all = append(all, item)
	}
	return all
}

// Add adds a row as the service keeps it.
func (m *Memory) Add(item map[string]types.AttributeValue) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.rows == nil {
		m.rows = make(map[Key]Row)
	}
	k := Key{textOf(item[PartitionKey]), textOf(item[SortKey])}
	m.rows[k] = rowOf(k, item)
}

// Len returns the number of rows.
func (m *Memory) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.rows)
}

// Get implements [Table].
func (m *Memory) Get(ctx context.Context, k Key) (Row, error) {
	if f := m.fault("Get", k); f.Err != nil || ctx.Err() != nil {
		return Row{}, cmp.Or(ctx.Err(), f.Err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.row(k), nil
}

// Write implements [Table].
func (m *Memory) Write(ctx context.Context, seen Row, set map[string]types.AttributeValue) (Row, error) {
	now := seen.with(set)
	err := m.request(ctx, "Write", seen, func() { m.rows[seen.Key] = now })
	if err != nil {
		return Row{}, err
	}
	return now, nil
}

// Delete implements [Table].
func (m *Memory) Delete(ctx context.Context, seen Row) error {
	if !seen.Exists() {
		return nil
	}
	err := m.request(ctx, "Delete", seen, func() { delete(m.rows, seen.Key) })
	if changed, ok := err.(*ChangedError); ok && !changed.Now.Exists() {
		return nil
	}
	return err
}

// List implements [Table]. It lists a snapshot.
func (m *Memory) List(ctx context.Context, partition, after string, _ int) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		if f := m.fault("List", Key{Partition: partition}); f.Err != nil || ctx.Err() != nil {
			yield(Row{}, cmp.Or(ctx.Err(), f.Err))
			return
		}
		m.mu.Lock()
		var all []Row
		for k := range m.rows {
			if k.Partition == partition && k.Sort > after {
				all = append(all, m.row(k))
			}
		}
		m.mu.Unlock()
		slices.SortFunc(all, func(a, b Row) int { return strings.Compare(a.Sort, b.Sort) })
		for _, r := range all {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// request makes a write of a row as it was seen, unless a fault prevents it.
func (m *Memory) request(ctx context.Context, call string, seen Row, write func()) error {
	apply := func() error {
		m.mu.Lock()
		defer m.mu.Unlock()
		if have := m.row(seen.Key); have.Token != seen.Token {
			return &ChangedError{have}
		}
		if m.rows == nil {
			m.rows = make(map[Key]Row)
		}
		write()
		return nil
	}
	f := m.fault(call, seen.Key)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case f.Err == nil:
		return apply()
	case f.Late > 0:
		time.AfterFunc(f.Late, func() { _ = apply() })
	case f.Made:
		_ = apply()
	}
	return f.Err
}

func (m *Memory) row(k Key) Row {
	r := m.rows[k]
	return Row{Key: k, Token: r.Token, Attributes: maps.Clone(r.Attributes)}
}

func (m *Memory) fault(call string, k Key) Fault {
	if m.Fault == nil {
		return Fault{}
	}
	m.asking.Lock()
	defer m.asking.Unlock()
	return m.Fault(call, k)
}
