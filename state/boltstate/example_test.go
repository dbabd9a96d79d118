package boltstate_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sluicehq/sluice/state"
	"github.com/sluicehq/sluice/state/boltstate"
)

// A shard is claimed, read for a while and, after the process has ended, gone
// on with.
func Example() {
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	stream := state.Stream{Application: "shop", ARN: "arn:aws:dynamodb:us-east-1:123456789012:table/orders/stream/2026-01-01T00:00:00.000"}

	for _, owner := range []string{"yesterday", "today"} {
		store, err := boltstate.Open(filepath.Join(dir, "state.db"), boltstate.Options{})
		if err != nil {
			fmt.Println(err)
			return
		}
		shard, err := store.Claim(ctx, stream, "shardId-1", "", owner)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(owner, "begins after", shard.Position, "in epoch", shard.Epoch)
		lease := state.Lease{Stream: stream, ShardID: shard.ID, Owner: owner, Epoch: shard.Epoch}
		if errs := store.Checkpoint(ctx, []state.Checkpoint{{Lease: lease, Position: state.Position{Sequence: "100000000003498069978"}}}); errs != nil {
			fmt.Println(errs)
		}
		if err := store.Close(); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// yesterday begins after the beginning in epoch 1
	// today begins after 100000000003498069978 in epoch 2
}
