// Package statestore opens the state that a user named: a file, or a DynamoDB table.
package statestore

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sluicehq/sluice/internal/access"
	"github.com/sluicehq/sluice/internal/awserror"
	"github.com/sluicehq/sluice/state"
	"github.com/sluicehq/sluice/state/boltstate"
	"github.com/sluicehq/sluice/state/dynamostate"
)

// Store is the state of a daemon, and what commands change of it.
type Store interface {
	state.Store
	state.Labels
	state.Values
	// Applications lists the applications with any state, ordered by name.
	Applications(ctx context.Context) ([]string, error)
	// ResetShards deletes shards that no living owner has.
	ResetShards(ctx context.Context, s state.Stream, shardIDs ...string) error
	// ResetStream deletes all shards of a stream and replaces its start.
	ResetStream(ctx context.Context, s state.Stream, start state.Start) error
}

var (
	_ Store = (*boltstate.Store)(nil)
	_ Store = (*dynamostate.Store)(nil)
)

const scheme = "dynamodb:"

// Table returns the name of the table if place has the form dynamodb:TABLE.
// Otherwise place is the path of a file.
func Table(place string) (name string, ok bool) { return strings.CutPrefix(place, scheme) }

// Describe names a place for messages.
func Describe(place string) string {
	if table, ok := Table(place); ok {
		return "state table " + table
	}
	return "state file " + place
}

// Options are the choices of Open.
type Options struct {
	LockTimeout time.Duration // how long to wait for the lock of a file; 0 is the default
	// AWS returns the configuration of DynamoDB. Open calls it for a table only.
	AWS func() (aws.Config, error)
}

// Check returns an error unless place is the path of a file or dynamodb:TABLE. A
// misspelt scheme would otherwise make a file.
func Check(place string) error {
	if table, ok := Table(place); ok {
		return CheckTable(table)
	}
	if before, _, ok := strings.Cut(place, ":"); ok && len(before) > 1 && !strings.ContainsAny(before, `/.`) { // else a path, or a drive
		return fmt.Errorf("%q is not %sTABLE: correct it, or write the path of a file with a colon as ./%[1]s", place, scheme)
	}
	return nil
}

// tableName matches a table's name or ARN.
var tableName = regexp.MustCompile(`^([-._a-zA-Z0-9]{3,255}|arn:[^:]+:dynamodb:[^:]+:[^:]+:table/[-._a-zA-Z0-9]{3,255})$`)

// CheckTable returns an error unless name can be a table's.
func CheckTable(name string) error {
	if tableName.MatchString(name) {
		return nil
	}
	return fmt.Errorf("%q is not the name of a table: want 3 to 255 letters, digits, dots, dashes or underlines, or an ARN", name)
}

// Open opens the state at a place, and makes a file that does not exist. A table must
// exist, and be readable.
func Open(ctx context.Context, place string, o Options) (Store, error) {
	if err := Check(place); err != nil {
		return nil, err
	}
	table, ok := Table(place)
	if !ok {
		store, err := boltstate.Open(place, boltstate.Options{LockTimeout: o.LockTimeout})
		if err != nil {
			return nil, err
		}
		if err := access.RemoveAddress(store.Path()); err != nil {
			return nil, errors.Join(err, store.Close())
		}
		return store, nil
	}
	cfg, err := o.AWS()
	if err != nil {
		return nil, err
	}
	store, err := dynamostate.New(cfg, table)
	if err != nil {
		return nil, err
	}
	if _, err := store.Applications(ctx); err != nil {
		switch {
		case awserror.Of(err) == awserror.Missing:
			err = fmt.Errorf("%w. This command makes the table: sluice state create --state %s", err, place)
		case awserror.Code(err) == "ValidationException":
			err = fmt.Errorf("table %s is no state table: correct the name, or make one: sluice state create --state dynamodb:NAME: %w", table, err)
		}
		return nil, errors.Join(err, store.Close())
	}
	return store, nil
}
