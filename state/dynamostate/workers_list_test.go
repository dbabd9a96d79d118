package dynamostate

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice/internal/holders"
	"github.com/sluicehq/sluice/internal/rows"
	"github.com/sluicehq/sluice/state"
)

// Workers says who lives, is silent or is fenced, and who has which shard since when.
func TestWorkersAreListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table, other := new(memory), state.Stream{Application: stream.Application, ARN: "arn:aws:dynamodb:us-east-1:1:table/b/stream/2026-01-01T00:00:00.000"}
		stores := map[string]*Store{}
		claim := func(st state.Stream, id, owner string) state.Lease {
			t.Helper()
			if stores[owner] == nil {
				stores[owner] = over(table)
				stores[owner].Publish("of " + owner)
			}
			sh, err := stores[owner].Claim(t.Context(), st, id, "", owner)
			if err != nil {
				t.Fatal(err)
			}
			return state.Lease{Stream: st, ShardID: id, Owner: owner, Epoch: sh.Epoch}
		}
		beats, stop := context.WithCancel(t.Context())
		defer stop()
		beat := func(owner string) {
			for beats.Err() == nil {
				if err := stores[owner].Heartbeat(beats, owner); err != nil && beats.Err() == nil {
					t.Error(err)
				}
				time.Sleep(time.Second)
			}
		}
		begun := time.Now().UTC()
		claim(other, "shard-1", "living")
		claim(stream, "shard-2", "living")
		l := claim(stream, "shard-1", "living")
		claim(stream, "shard-3", "silent")
		claim(stream, "shard-4", "ended")
		claim(stream, "shard-5", "expired")
		go beat("living")
		time.Sleep(2 * time.Second)
		if errs := stores["living"].Checkpoint(t.Context(), []state.Checkpoint{{Lease: l, Position: state.Position{Sequence: "7"}}}); errs != nil {
			t.Fatal(errs)
		}
		if err := stores["living"].Release(t.Context(), claim(other, "shard-9", "living")); err != nil {
			t.Fatal(err)
		}
		if err := stores["ended"].Close(); err != nil {
			t.Fatal(err)
		}
		if err := stores["expired"].Close(); err != nil {
			t.Fatal(err)
		}
		s := over(table)
		if err := s.remove(t.Context(), memberKey(stream.Application, "expired")); err != nil {
			t.Fatal(err)
		}
		held := func(st state.Stream, id string, moved time.Duration) holders.Held {
			h := holders.Held{StreamARN: st.ARN, ShardID: id, Claimed: begun}
			if moved > 0 {
				h.Moved = begun.Add(moved)
			}
			return h
		}
		want := []holders.Worker{
			{Name: "ended", Config: "of ended", State: holders.Fenced, Ended: begun.Add(2 * time.Second), Shards: []holders.Held{held(stream, "shard-4", 0)}},
			{Name: "expired", State: holders.Fenced, Shards: []holders.Held{held(stream, "shard-5", 0)}},
			{Name: "living", Config: "of living", State: holders.Living, Shards: []holders.Held{held(stream, "shard-1", 2*time.Second), held(stream, "shard-2", 0), held(other, "shard-1", 0)}},
			{Name: "silent", Config: "of silent", State: holders.Silent, Shards: []holders.Held{held(stream, "shard-3", 0)}},
		}
		count := table.Len()
		watched := time.Now()
		got, err := s.Workers(t.Context(), stream.Application)
		if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%v, %v\nwant %v", got, err, want)
		}
		if took := time.Since(watched); took < silentAfter || took > silentAfter+lookDoubtful {
			t.Errorf("it took %v to find one silent", took)
		}
		if n := table.Len(); n != count {
			t.Errorf("%d rows, before %d", n, count)
		}
		if err := stores["silent"].Close(); err != nil {
			t.Fatal(err)
		}
		watched = time.Now()
		if _, err := s.Workers(t.Context(), stream.Application); err != nil || time.Since(watched) > time.Second+lookDoubtful {
			t.Errorf("it took %v to find one living; %v", time.Since(watched), err)
		}
		stop()
		time.Sleep(time.Second)
		gone, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.Workers(gone, stream.Application); err == nil {
			t.Error("no error of a context that ends while one is silent")
		}
		for range 2 { // rows stay as they are: whoever was silent goes on
			if err := stores["living"].Heartbeat(t.Context(), "living"); err != nil {
				t.Error(err)
			}
		}
		table.Fault = func(call string, _ rows.Key) mishap {
			if call == "List" {
				return mishap{Err: errLost}
			}
			return mishap{}
		}
		if _, err := s.Workers(t.Context(), stream.Application); err == nil {
			t.Error("no error of a table that fails")
		}
	})
}
