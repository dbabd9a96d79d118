package sluice_test

import (
	"testing"

	"github.com/sluicehq/sluice"
)

func TestGapString(t *testing.T) {
	const after, before = "42600004062755084192341", "42600004062755084192348"
	for want, g := range map[string]sluice.Gap{
		"the first records":                                {},
		"the first records and before " + before:           {Before: before},
		"records after " + after:                           {After: after},
		"records after " + after + " and before " + before: {After: after, Before: before},
		"all records":                                      {Gone: true},
		"all records after " + after:                       {After: after, Gone: true},
	} {
		g.Table, g.ShardID = "orders", "s"
		if want = "table orders shard s: " + want + " were trimmed before they were read"; g.String() != want {
			t.Errorf("%q, want %q", g, want)
		}
	}
}
