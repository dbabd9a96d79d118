package sluice_test

import (
	"testing"

	"github.com/sluicehq/sluice"
)

func TestGapString(t *testing.T) {
	for want, g := range map[string]sluice.Gap{
		"the first records":              {},
		"the first records and before 7": {Before: "7"},
		"records after 5":                {After: "5"},
		"records after 5 and before 7":   {After: "5", Before: "7"},
		"all records":                    {Gone: true},
		"all records after 5":            {After: "5", Gone: true},
	} {
		g.Table, g.ShardID = "orders", "s"
		if want = "table orders shard s: " + want + " were trimmed before they were read"; g.String() != want {
			t.Errorf("%q, want %q", g, want)
		}
	}
}
