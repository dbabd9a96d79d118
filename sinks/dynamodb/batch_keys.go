package dynamodb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice/internal/awserror"
)

// keySchemas caches the names of the key attributes of tables, from Options or
// from one request each.
type keySchemas struct {
	ask func(ctx context.Context, table string) ([]string, error)

	mu     sync.Mutex
	tables map[string]*keySchema // by the name or ARN that the caller used: two accounts may have the same names
}

type keySchema struct {
	done  chan struct{} // closed when the fields below are set
	names []string      // the partition key first
	err   error

	gaveUp bool // the context of the requester ended
	given  bool // from Options: a bare name also covers ARNs with that name
}

// set stores the key attributes of a table, from Options or from the service.
func (k *keySchemas) set(table string, names []string, given bool) {
	done := make(chan struct{})
	close(done)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.tables == nil {
		k.tables = map[string]*keySchema{}
	}
	k.tables[table] = &keySchema{done: done, names: names, given: given}
	if name := tableName(table); given && k.tables[name] == nil {
		k.tables[name] = &keySchema{done: done, names: names}
	}
}

// known returns the names of a table's key attributes without a request, if
// possible.
func (k *keySchemas) known(table string) []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if schema := k.schema(table); schema != nil {
		select {
		case <-schema.done:
			return schema.names
		default:
		}
	}
	return nil
}

// schema returns the entry of a table; k.mu is held.
func (k *keySchemas) schema(table string) *keySchema {
	schema := k.tables[table]
	if byName := k.tables[tableName(table)]; schema == nil && byName != nil && byName.given {
		return byName
	}
	return schema
}

// of returns the names of a table's key attributes. Concurrent callers share one
// request. Errors are not cached.
func (k *keySchemas) of(ctx context.Context, table string) ([]string, error) {
	for {
		k.mu.Lock()
		schema := k.schema(table)
		if schema == nil {
			schema = &keySchema{done: make(chan struct{})}
			if k.tables == nil {
				k.tables = map[string]*keySchema{}
			}
			k.tables[table] = schema
			k.mu.Unlock()
			return k.askFor(ctx, table, schema)
		}
		k.mu.Unlock()
		select {
		case <-schema.done:
		case <-ctx.Done():
			return nil, notSent(table, context.Cause(ctx))
		}
		if !schema.gaveUp {
			return schema.names, schema.err
		}
	}
}

func (k *keySchemas) askFor(ctx context.Context, table string, schema *keySchema) ([]string, error) {
	schema.err = errors.New("dynamodb: DescribeTable ended its goroutine")
	defer func() {
		schema.gaveUp = ctx.Err() != nil && schema.err != nil
		if schema.err != nil {
			k.mu.Lock()
			delete(k.tables, table)
			k.mu.Unlock()
		}
		close(schema.done)
	}()
	schema.names, schema.err = k.ask(ctx, table)
	return schema.names, schema.err
}

// KeyNames returns the names of a table's key attributes, the partition key first,
// from Options.Keys or DescribeTable.
func (s *Store) KeyNames(ctx context.Context, table string) ([]string, error) {
	names, err := s.keys.of(ctx, table)
	return slices.Clone(names), err
}

// keyNames requests the key attributes of a table.
func (s *Store) keyNames(ctx context.Context, table string) ([]string, error) {
	d, err := s.describe(ctx, table, s.opt.Attempts)
	if err != nil {
		if awserror.Of(err) == awserror.Denied {
			return nil, fmt.Errorf("%w; or name the table's key attributes in Options.Keys", err)
		}
		return nil, err
	}
	return keyOf(table, d)
}

func keyOf(table string, d *types.TableDescription) ([]string, error) {
	var names []string
	for _, k := range d.KeySchema {
		name := aws.ToString(k.AttributeName)
		if k.KeyType == types.KeyTypeHash {
			names = append([]string{name}, names...)
		} else {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil, &tableError{table, errors.New("DescribeTable answered without a key")}
	}
	return names, nil
}
