package dynamodb

import (
	"context"
	"iter"
	"slices"

	"github.com/sluicehq/sluice/internal/spanattr"
)

// describe describes a request of a commit in its span, if it has one.
func describe(ctx context.Context, operation string, tables iter.Seq[string]) {
	set := spanattr.From(ctx)
	if set == nil {
		return
	}
	var names []string
	for table := range tables {
		if name := tableName(table); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	set("db.system.name", "aws.dynamodb")
	set("db.operation.name", operation)
	set("aws.dynamodb.table_names", names...)
}
