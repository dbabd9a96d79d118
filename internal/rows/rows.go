// Package rows keeps rows in one DynamoDB table. A row is only written as its
// writer last saw it: two writers never overwrite each other, and a write whose
// response was lost is told from a write that was refused.
package rows

import (
	"context"
	"crypto/rand"
	"fmt"
	"iter"
	"maps"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Key is a row's primary key. Neither part is empty.
type Key struct {
	Partition string // at most 2,048 bytes; a partition takes 1,000 small writes a second
	Sort      string // at most 1,024 bytes
}

func (k Key) String() string { return fmt.Sprintf("%q in %q", k.Sort, k.Partition) }

// Row is a row as it was read or written. A Row without a Token does not exist.
type Row struct {
	Key
	Token      string                          // of the last write, and of no other
	Attributes map[string]types.AttributeValue // without the key and the token
}

// Exists reports whether the row was in the table.
func (r Row) Exists() bool { return r.Token != "" }

// ChangedError says that a row is not as its writer saw it. The write has not been
// made, and a request of it that is still under way will be refused; only that of a
// creation may still create the row, if the row is deleted meanwhile.
type ChangedError struct{ Now Row }

func (e *ChangedError) Error() string {
	if !e.Now.Exists() {
		return fmt.Sprintf("row %v was deleted meanwhile", e.Now.Key)
	}
	return fmt.Sprintf("row %v was written meanwhile", e.Now.Key)
}

// Table is a table of rows. Its methods are safe for concurrent use. After an error
// other than a [ChangedError] a write may have been made, or may still be made:
// read the row to know.
type Table interface {
	// Get reads a row. The read is consistent.
	Get(ctx context.Context, k Key) (Row, error)
	// Write sets attributes of the row that its writer saw, and keeps the others.
	// A row that does not exist is created.
	Write(ctx context.Context, seen Row, set map[string]types.AttributeValue) (Row, error)
	// Delete deletes the row that its writer saw. A row that is gone is no error.
	Delete(ctx context.Context, seen Row) error
	// List reads the rows of a partition whose sort key is greater than after, in
	// the order of their sort keys. The reads are consistent, each of about limit
	// rows; 0 is as many as a response holds. It ends with an error, if any.
	List(ctx context.Context, partition, after string, limit int) iter.Seq2[Row, error]
}

// with returns the row after a write, under a token that no other write has.
func (r Row) with(set map[string]types.AttributeValue) Row {
	now := Row{Key: r.Key, Token: rand.Text(), Attributes: map[string]types.AttributeValue{}}
	maps.Copy(now.Attributes, r.Attributes)
	maps.Copy(now.Attributes, set)
	return now
}
