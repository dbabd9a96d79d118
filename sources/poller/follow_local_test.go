//go:build integration

package poller

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice/state/boltstate"
)

// A table's streams are read one behind the other, whatever happens to the
// table, while the poller runs and while it does not.
func TestLocalStreamsAreReplaced(t *testing.T) {
	c, table := newTable(t, types.StreamViewTypeNewAndOldImages)
	n := 0
	var streamed []int // versions written while the table had a stream
	write := func(changes int, has bool) {
		for range changes {
			n++
			for _, id := range []string{"a", "b"} {
				mustChange(t, c, table, id, n)
			}
			if has {
				streamed = append(streamed, n)
			}
		}
	}
	enable := func(on bool) {
		spec := &types.StreamSpecification{StreamEnabled: &on}
		if on {
			spec.StreamViewType = types.StreamViewTypeNewAndOldImages
		}
		if _, err := c.UpdateTable(t.Context(), &dynamodb.UpdateTableInput{TableName: &table, StreamSpecification: spec}); err != nil {
			t.Fatal(err)
		}
	}
	again := func() { // disables and enables the stream
		enable(false)
		write(1, false)
		enable(true)
		write(10, true)
	}
	anew := func() { // makes the table anew
		if _, err := c.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: &table}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.CreateTable(t.Context(), &dynamodb.CreateTableInput{
			TableName: &table, BillingMode: types.BillingModePayPerRequest,
			AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
			KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
			StreamSpecification:  &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages},
		}); err != nil {
			t.Fatal(err)
		}
		write(10, true)
	}

	got := newLedger()
	path := t.TempDir() + "/state"
	run := func(steps ...func()) {
		t.Helper()
		store, err := boltstate.Open(path, boltstate.Options{})
		if err != nil {
			t.Fatal(err)
		}
		o := testOptions(store, table)
		o.DiscoverEvery = 300 * time.Millisecond
		_, stop := background(t, got.handle, o)
		for _, step := range steps {
			step()
			got.wait(t, 2*len(streamed))
		}
		stop()
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
	write(10, true)
	run(func() {}, again, anew)
	again()
	anew()
	again()
	run(func() {}, again)
	for _, id := range []string{"a", "b"} {
		if seen := got.seen[table+"/"+id]; !slices.Equal(seen, streamed) {
			t.Errorf("item %s: handled %s\nwritten %s", id, fmt.Sprint(seen), fmt.Sprint(streamed))
		}
	}
}
