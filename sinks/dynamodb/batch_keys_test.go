package dynamodb

import (
	"context"
	"slices"
	"testing"
)

// Tables of two accounts may have the same name and different keys. A bare name
// that somebody gave stands for all of them.
func TestKeysOfTablesOfTwoAccounts(t *testing.T) {
	const one, two = "arn:aws:dynamodb:us-east-1:1:table/t", "arn:aws:dynamodb:us-east-1:2:table/t"
	k := keySchemas{ask: func(_ context.Context, table string) ([]string, error) { return []string{"of " + table}, nil }}
	k.set("named", []string{"pk"}, true)
	k.set("arn:aws:dynamodb:us-east-1:1:table/other", []string{"sk"}, true)
	k.set("found", []string{"found"}, false)
	for table, want := range map[string]string{
		one: "of " + one, two: "of " + two, "t": "of t",
		"named": "pk", "arn:aws:dynamodb:us-east-1:1:table/named": "pk",
		"found": "found", "arn:aws:dynamodb:us-east-1:1:table/found": "of arn:aws:dynamodb:us-east-1:1:table/found",
		"other": "sk", "arn:aws:dynamodb:us-east-1:2:table/other": "of arn:aws:dynamodb:us-east-1:2:table/other",
		"arn:aws:dynamodb:us-east-1:1:table/other": "sk",
	} {
		for range 2 {
			if got, err := k.of(t.Context(), table); err != nil || !slices.Equal(got, []string{want}) {
				t.Errorf("%s: %q, %v, want %q", table, got, err, want)
			}
		}
	}
}
