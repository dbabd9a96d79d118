package dynamodb

import (
	"context"
	"fmt"
	"strings"

	"github.com/sluicehq/sluice"
)

// Current reads the current item of a record, consistently; a missing one is the
// absent Item. It uses the table's ARN in the record, so a table of the same name
// elsewhere never answers. Use it as Options.Current of handlers/projection.
func (s *Store) Current(ctx context.Context, rec *sluice.Record) (sluice.Item, error) {
	table, _, _ := strings.Cut(rec.StreamARN, "/stream/")
	if !strings.Contains(table, ":table/") || rec.Keys.Len() == 0 {
		return sluice.Item{}, fmt.Errorf("dynamodb: the record's table or key is not known, so that its item cannot be read: its stream is %q", rec.StreamARN)
	}
	return s.Get(ctx, table, rec.Keys)
}
