package dynamodb

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice/internal/awserror"
)

// checkAttempts take a few seconds: Check waits for a service that starts together
// with the program, and somebody may be watching.
const checkAttempts = 8

// Check verifies at the start that tables exist and are reachable with the current
// credentials. Its error has advice for each failed table. While the service is
// unreachable, Check retries for a few seconds per table. It needs the permission
// dynamodb:DescribeTable. Without that permission a table in Options.Keys passes,
// because the service was reached and knew the caller.
func (s *Store) Check(ctx context.Context, tables ...string) error {
	ctx, cancel := context.WithTimeout(ctx, s.opt.Timeout)
	defer cancel()
	var errs []error
	for _, table := range tables {
		errs = append(errs, s.check(ctx, table))
	}
	return errors.Join(errs...)
}

func (s *Store) check(ctx context.Context, table string) error {
	named := s.named(table)
	d, err := s.describe(ctx, table, checkAttempts)
	if err != nil {
		if named != nil && awserror.Of(err) == awserror.Denied {
			return nil
		}
		return err
	}
	if d.TableStatus == types.TableStatusCreating || d.TableStatus == types.TableStatusDeleting || d.TableStatus == types.TableStatusInaccessibleEncryptionCredentials {
		return &tableError{table, fmt.Errorf("it is %s %s: wait until it is ACTIVE, or correct its name", d.TableStatus, s.where)}
	}
	key, err := keyOf(table, d)
	if err != nil {
		return err
	}
	if named == nil {
		s.keys.set(table, key, false)
	} else if !sameNames(named, key) {
		return &tableError{table, fmt.Errorf("its key is %q %s, but Options.Keys say %q", key, s.where, named)}
	}
	return nil
}

// named returns the entry of Options.Keys for a table.
func (s *Store) named(table string) []string {
	for t, names := range s.opt.Keys {
		if tableName(t) == tableName(table) {
			return names
		}
	}
	return nil
}

func sameNames(a, b []string) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(n string) bool { return !slices.Contains(b, n) })
}

func (s *Store) describe(ctx context.Context, table string, attempts int) (*types.TableDescription, error) {
	out, err := read(ctx, s, attempts, "DescribeTable", table, s.db.DescribeTable, &dynamodb.DescribeTableInput{TableName: &table})
	switch {
	case err != nil:
		return nil, err
	case out.Table == nil:
		return nil, &tableError{table, fmt.Errorf("DescribeTable was answered without a table %s", s.where)}
	}
	return out.Table, nil
}
