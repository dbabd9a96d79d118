package dynamodb

import (
	"context"
	"fmt"
	"strings"

	"github.com/sluicehq/sluice"
)

// Current reads the item that a record is about, as it is now, consistently: the
// absent Item when there is none. It asks for the table by the ARN in the record,
// so that a table of the same name elsewhere never answers. It is Options.Current
// of handlers/projection.
func (s *Store) Current(ctx context.Context, rec *sluice.Record) (sluice.Item, error) {
	table, _, _ := strings.Cut(rec.StreamARN, "/stream/")
	if !strings.Contains(table, ":table/") || rec.Keys.Len() == 0 {
		return sluice.Item{}, fmt.Errorf("dynamodb: the record's table or key is not known, so that its item cannot be read: its stream is %q", rec.StreamARN)
	}
	return s.Get(ctx, table, rec.Keys)
}
