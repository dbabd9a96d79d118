package dynamostate

import (
	"context"
	"iter"
	"math"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/sluicehq/sluice/internal/rows"
)

// meter counts the requests to a table, and their units.
type meter struct {
	rows.Table
	mu   sync.Mutex
	used map[string]usage // by kind of row
}

func (m *meter) count(partition string, u usage) {
	kind, _, _ := strings.Cut(partition, "#")
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used[kind] = m.used[kind].add(u)
}

// drain returns the usage since the last call.
func (m *meter) drain() map[string]usage {
	m.mu.Lock()
	defer m.mu.Unlock()
	used := m.used
	m.used = make(map[string]usage)
	return used
}

func units(bytes, of int) float64 { return math.Ceil(max(1, float64(bytes)) / float64(of)) }

func (m *meter) Get(ctx context.Context, k rows.Key) (rows.Row, error) {
	r, err := m.Table.Get(ctx, k)
	m.count(k.Partition, usage{reads: 1, readUnits: units(sizeOf(r), bytesInAReadUnit)})
	return r, err
}

func (m *meter) Write(ctx context.Context, seen rows.Row, set map[string]types.AttributeValue) (rows.Row, error) {
	r, err := m.Table.Write(ctx, seen, set)
	m.count(seen.Partition, usage{writes: units(sizeOf(r), bytesInAWriteUnit)})
	return r, err
}

func (m *meter) List(ctx context.Context, partition, after string, limit int) iter.Seq2[rows.Row, error] {
	return func(yield func(rows.Row, error) bool) {
		bytes := 0
		defer func() {
			m.count(partition, usage{reads: 1, readUnits: units(bytes, bytesInAReadUnit)})
		}()
		for r, err := range m.Table.List(ctx, partition, after, limit) {
			bytes += sizeOf(r)
			if !yield(r, err) {
				return
			}
		}
	}
}
