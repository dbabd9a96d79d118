// Package dynamostate keeps the state of many applications in one DynamoDB table. A
// program then needs no disk, and several processes can share a stream.
package dynamostate

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice/internal/rows"
	"github.com/sluicehq/sluice/state"
)

// Store is a [state.Store], [state.Labels] and [state.Values] in a DynamoDB table.
// It is safe for concurrent use, in many processes. Each write costs one write
// unit per KB, each read one read unit per 4 KB.
type Store struct {
	rows    rows.Table
	members members

	mu          sync.Mutex
	seen        map[rows.Key]rows.Row  // shards, as this Store last saw them
	held        map[rows.Key]heldShard // of others, as this Store last saw them
	leases      map[rows.Key]heldLease // of own members
	suspect     rows.Key               // that is being claimed
	given       map[rows.Key]gift      // by own members
	avoid       map[string]time.Time   // members that did not take a gift
	reserved    map[rows.Key]reservation
	finished    map[string]finishedShards
	generations map[state.Stream]string // of the streams that this Store reads
	noted       map[string]bool         // applications
}

// New returns the Store in a table that [Create] has made. It makes no call.
func New(cfg aws.Config, table string) (*Store, error) {
	if cfg.Region == "" {
		return nil, errors.New("dynamostate: no Region: set AWS_REGION, the profile's region, or Region of the aws.Config")
	}
	if table == "" {
		return nil, errors.New("dynamostate: the table's name is empty")
	}
	return over(rows.NewDynamoDB(cfg, table)), nil
}

func over(t rows.Table) *Store {
	s := &Store{
		rows: t, seen: make(map[rows.Key]rows.Row), held: make(map[rows.Key]heldShard), leases: make(map[rows.Key]heldLease),
		given: make(map[rows.Key]gift), avoid: make(map[string]time.Time), reserved: make(map[rows.Key]reservation),
		finished:    make(map[string]finishedShards),
		generations: make(map[state.Stream]string), noted: make(map[string]bool),
	}
	s.members.rows, s.members.store, s.members.load = t, rand.Text(), s.load
	s.members.own, s.members.others, s.members.offered = make(map[rows.Key]*ownMember), make(map[string]*others), make(map[rows.Key]offer)
	vacant := make(chan struct{})
	s.members.vacant.Store(&vacant)
	return s
}

// Fork returns a Store of the same table with owners of its own, which its Close ends. It
// finds the end of any owner soon, for more requests: it is for few claims.
func (s *Store) Fork() state.Store {
	fork := over(s.rows)
	fork.members.near = true
	return fork
}

// Close ends the Store's owners: others may claim their shards at once.
func (s *Store) Close() error { return s.members.leave() }

// The partitions of the table. Only the application's name is escaped: nothing
// follows the last part.
const applications = "applications"

func streamsOf(app string) string { return "streams#" + url.QueryEscape(app) }
func membersOf(app string) string { return "members#" + url.QueryEscape(app) }
func lettersOf(app string) string { return "letters#" + url.QueryEscape(app) }
func valuesOf(app string) string  { return "values#" + url.QueryEscape(app) }
func partsOf(app, id string) string {
	return "letter#" + url.QueryEscape(app) + "#" + id
}

// format is the version of the rows. A release reads those of its own version and
// of the one before, and keeps attributes that it does not know, so that a fleet
// can be upgraded and rolled back one worker at a time. So a new attribute must stay true
// when a worker of the release before has written the row.
const format = 1

const formatName = "format"

// encode returns the attributes of v, a struct, with the format.
func encode(v any) map[string]types.AttributeValue {
	m, err := attributevalue.MarshalMap(v)
	if err != nil {
		panic(err) // of a struct of this package
	}
	m[formatName] = &types.AttributeValueMemberN{Value: strconv.Itoa(format)}
	return m
}

// decode returns a row's attributes. A row that does not exist is the zero T.
func decode[T any](r rows.Row) (v T, err error) {
	if !r.Exists() {
		return v, nil
	}
	var f struct {
		Format int `dynamodbav:"format"`
	}
	if err := cmp.Or(attributevalue.UnmarshalMap(r.Attributes, &f), attributevalue.UnmarshalMap(r.Attributes, &v)); err != nil {
		return v, fmt.Errorf("row %v of the state table: %w", r.Key, err)
	}
	if f.Format > format {
		return v, fmt.Errorf("row %v of the state table has format %d, and this release reads %d: a newer release wrote it", r.Key, f.Format, format)
	}
	return v, nil
}

// fetch reads a row and its attributes.
func fetch[T any](ctx context.Context, t rows.Table, k rows.Key) (row rows.Row, v T, err error) {
	if row, err = t.Get(ctx, k); err == nil {
		v, err = decode[T](row)
	}
	return row, v, err
}

// stored is a row of a list, and its attributes.
type stored[T any] struct {
	row rows.Row
	v   T
}

// list is the List of a table with the attributes of each row. It ends with an error, if
// any.
func list[T any](ctx context.Context, t rows.Table, partition, after string, limit int) iter.Seq2[stored[T], error] {
	return func(yield func(stored[T], error) bool) {
		for row, err := range t.List(ctx, partition, after, limit) {
			var v T
			if err == nil {
				v, err = decode[T](row)
			}
			if !yield(stored[T]{row, v}, err) || err != nil {
				return
			}
		}
	}
}

// withRow calls do with a row as it is now, and again as long as another writer comes
// between. A ChangedError of do is of that row.
func (s *Store) withRow(ctx context.Context, k rows.Key, do func(rows.Row) error) error {
	row, err := s.rows.Get(ctx, k)
	for err == nil {
		if err = do(row); err == nil {
			return nil
		}
		row, err = changed(ctx, err)
	}
	return err
}

// changed returns the row that a refused write found, or another error of the write.
func changed(ctx context.Context, err error) (rows.Row, error) {
	if c, ok := errors.AsType[*rows.ChangedError](err); ok {
		return c.Now, ctx.Err()
	}
	return rows.Row{}, err
}

// unlessChanged returns err, but nil if another writer was first.
func unlessChanged(err error) error {
	if _, ok := errors.AsType[*rows.ChangedError](err); ok {
		return nil
	}
	return err
}

// replace writes a row whatever it is now.
func (s *Store) replace(ctx context.Context, k rows.Key, set map[string]types.AttributeValue) error {
	return s.withRow(ctx, k, func(row rows.Row) error {
		_, err := s.rows.Write(ctx, row, set)
		return err
	})
}

// remove deletes a row whatever it is now.
func (s *Store) remove(ctx context.Context, k rows.Key) error {
	return s.withRow(ctx, k, func(row rows.Row) error { return s.rows.Delete(ctx, row) })
}

var (
	_ state.Store  = (*Store)(nil)
	_ state.Labels = (*Store)(nil)
	_ state.Values = (*Store)(nil)
)
