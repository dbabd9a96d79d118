package dynamostate

import (
	"cmp"
	"context"
	"crypto/rand"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice/internal/rows"
)

// memory is a table in memory. Its zero value is an empty table.
type memory struct {
	// Fault, if set, returns what happens to a request. call is Get, Write,
	// Delete or List. It is called for one request at a time.
	Fault func(call string, k rows.Key) mishap

	asking sync.Mutex
	mu     sync.Mutex
	rows   map[rows.Key]rows.Row
}

// mishap is what happens to a request. The zero mishap is nothing.
type mishap struct {
	Err  error         // returned by the request
	Made bool          // a write is made all the same
	Late time.Duration // a write is made that long after the request has returned Err
}

// Items returns the rows as the service keeps them, ordered by key.
func (m *memory) Items() (all []map[string]types.AttributeValue) {
	m.mu.Lock()
	defer m.mu.Unlock()
	keys := slices.SortedFunc(maps.Keys(m.rows), func(a, b rows.Key) int {
		return cmp.Or(strings.Compare(a.Partition, b.Partition), strings.Compare(a.Sort, b.Sort))
	})
	for _, k := range keys {
		item := map[string]types.AttributeValue{rows.PartitionKey: text(k.Partition), rows.SortKey: text(k.Sort), rows.TokenName: text(m.rows[k].Token)}
		maps.Copy(item, m.rows[k].Attributes)
		all = append(all, item)
	}
	return all
}

// Add adds a row as the service keeps it.
func (m *memory) Add(item map[string]types.AttributeValue) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.rows == nil {
		m.rows = make(map[rows.Key]rows.Row)
	}
	text := func(name string) string {
		value := item[name].(*types.AttributeValueMemberS).Value
		delete(item, name)
		return value
	}
	k := rows.Key{Partition: text(rows.PartitionKey), Sort: text(rows.SortKey)}
	m.rows[k] = rows.Row{Key: k, Token: text(rows.TokenName), Attributes: item}
}

// Len returns the number of rows.
func (m *memory) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.rows)
}

// Get implements rows.Table.
func (m *memory) Get(ctx context.Context, k rows.Key) (rows.Row, error) {
	if f := m.fault("Get", k); f.Err != nil || ctx.Err() != nil {
		return rows.Row{}, cmp.Or(ctx.Err(), f.Err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.row(k), nil
}

// Write implements rows.Table.
func (m *memory) Write(ctx context.Context, seen rows.Row, set map[string]types.AttributeValue) (rows.Row, error) {
	now := rows.Row{Key: seen.Key, Token: rand.Text(), Attributes: map[string]types.AttributeValue{}}
	maps.Copy(now.Attributes, seen.Attributes)
	maps.Copy(now.Attributes, set)
	err := m.request(ctx, "Write", seen, func() { m.rows[seen.Key] = now })
	if err != nil {
		return rows.Row{}, err
	}
	return now, nil
}

// Delete implements rows.Table.
func (m *memory) Delete(ctx context.Context, seen rows.Row) error {
	if !seen.Exists() {
		return nil
	}
	err := m.request(ctx, "Delete", seen, func() { delete(m.rows, seen.Key) })
	if changed, ok := err.(*rows.ChangedError); ok && !changed.Now.Exists() {
		return nil
	}
	return err
}

// List implements rows.Table. It lists a snapshot.
func (m *memory) List(ctx context.Context, partition, after string, _ int) iter.Seq2[rows.Row, error] {
	return func(yield func(rows.Row, error) bool) {
		if f := m.fault("List", rows.Key{Partition: partition}); f.Err != nil || ctx.Err() != nil {
			yield(rows.Row{}, cmp.Or(ctx.Err(), f.Err))
			return
		}
		m.mu.Lock()
		var all []rows.Row
		for k := range m.rows {
			if k.Partition == partition && k.Sort > after {
				all = append(all, m.row(k))
			}
		}
		m.mu.Unlock()
		slices.SortFunc(all, func(a, b rows.Row) int { return strings.Compare(a.Sort, b.Sort) })
		for _, r := range all {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// request makes a write of a row as it was seen, unless a fault prevents it.
func (m *memory) request(ctx context.Context, call string, seen rows.Row, write func()) error {
	apply := func() error {
		m.mu.Lock()
		defer m.mu.Unlock()
		if have := m.row(seen.Key); have.Token != seen.Token {
			return &rows.ChangedError{Now: have}
		}
		if m.rows == nil {
			m.rows = make(map[rows.Key]rows.Row)
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

func (m *memory) row(k rows.Key) rows.Row {
	r := m.rows[k]
	return rows.Row{Key: k, Token: r.Token, Attributes: maps.Clone(r.Attributes)}
}

func (m *memory) fault(call string, k rows.Key) mishap {
	if m.Fault == nil {
		return mishap{}
	}
	m.asking.Lock()
	defer m.asking.Unlock()
	return m.Fault(call, k)
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
