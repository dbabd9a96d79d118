package dynamodb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/singleflight"

	"github.com/sluicehq/sluice/internal/awserror"
	"github.com/sluicehq/sluice/internal/outcomes"
)

// keySchemas caches the names of the key attributes of tables, from Options or
// from one request each.
type keySchemas struct {
	ask func(ctx context.Context, table string) ([]string, error)

	asking singleflight.Group // by table
	mu     sync.Mutex
	tables map[string]keySchema // by the name or ARN that the caller used: two accounts may have the same names
}

type keySchema struct {
	names []string // the partition key first
	given bool     // from Options: a bare name also covers ARNs with that name
}

// set stores the key attributes of a table, from Options or from the service.
func (k *keySchemas) set(table string, names []string, given bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.tables == nil {
		k.tables = map[string]keySchema{}
	}
	k.tables[table] = keySchema{names, given}
	name := tableName(table)
	if _, ok := k.tables[name]; given && !ok {
		k.tables[name] = keySchema{names: names}
	}
}

// known returns the names of a table's key attributes without a request, if
// possible.
func (k *keySchemas) known(table string) []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	schema, ok := k.tables[table]
	if byName := k.tables[tableName(table)]; !ok && byName.given {
		return byName.names
	}
	return schema.names
}

// of returns the names of a table's key attributes. Concurrent callers share one
// request, which none of them cancels. Errors are not cached.
func (k *keySchemas) of(ctx context.Context, table string) ([]string, error) {
	if names := k.known(table); names != nil {
		return names, nil
	}
	asked := k.asking.DoChan(table, func() (any, error) {
		names := k.known(table)
		if names != nil {
			return names, nil
		}
		err := <-outcomes.Go(func() (err error) {
			names, err = k.ask(context.WithoutCancel(ctx), table)
			return err
		})
		if err == nil {
			k.set(table, names, false)
		}
		return names, err
	})
	select {
	case a := <-asked:
		names, _ := a.Val.([]string)
		return names, a.Err
	case <-ctx.Done():
		return nil, notSent(table, context.Cause(ctx))
	}
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
