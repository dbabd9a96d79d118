package statetest

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice/state"
)

// A call hangs beyond its context, and is carried out all the same.
func TestDeaf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := state.NewMemory()
		d := &Deaf{Store: store}
		d.Hang()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s := state.Stream{Application: "app", ARN: "arn"}
		done := make(chan error, 1)
		go func() {
			_, err := d.Claim(ctx, s, "shard", "", "owner")
			done <- err
		}()
		time.Sleep(time.Hour)
		if shards, err := store.Shards(t.Context(), s); len(done) > 0 || len(shards) > 0 || err != nil {
			t.Errorf("%d calls have returned, %v is stored, %v", len(done), shards, err)
		}
		d.GoOn()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if shards, err := d.Shards(ctx, s); len(shards) != 1 || err != nil {
			t.Errorf("stored are %v, %v", shards, err)
		}
	})
}
