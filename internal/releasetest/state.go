package releasetest

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/pauses"
	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/state"
)

// Store is what a daemon keeps its state in.
type Store interface {
	state.Store
	state.Labels
	state.Values
}

var (
	whole  = state.Stream{Application: App, ARN: recordtest.ARN}
	latest = state.Stream{Application: App, ARN: strings.Replace(recordtest.ARN, "table/test", "table/users", 1)}
	// In the year 2100 they are not over, so that the second does not replace the first.
	pause = pauses.Pause{ID: "P1", Route: "mail", Since: time.Date(2100, 1, 31, 15, 4, 5, 0, time.UTC), For: 2 * time.Hour}
	slow  = pauses.Pause{ID: "P2", Route: "search", Concurrency: 2, Rate: 2.5, Since: pause.Since, For: time.Hour}
)

// worker is a process that was killed.
const worker = "host/1/AAAA"

func at(n int) string { return string(recordtest.Sequence(n)) }

// shards are a parent, its children, one of them never settled, and a grandchild.
// Those with an owner were held when the worker ended.
var shards = []state.Shard{
	{ID: "shardId-1", Position: state.Position{Sequence: at(7), Finished: true}},
	{ID: "shardId-2", Parent: "shardId-1", Owner: worker, Position: state.Position{Sequence: at(9), Ahead: at(20) + " " + at(11) + " " + at(13)}},
	{ID: "shardId-3", Parent: "shardId-1"},
	{ID: "shardId-4", Parent: "shardId-2", Owner: worker, Position: state.Position{Sequence: at(12)}},
}

var starts = map[state.Stream]state.Start{
	whole:  {Position: "TRIM_HORIZON"},
	latest: {Position: "LATEST", At: time.Date(2026, 1, 31, 15, 4, 5, 123e6, time.UTC)},
}

// Fill stores a state.
func Fill(t *testing.T, s Store) {
	t.Helper()
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for st, start := range starts {
		_, err := s.Start(ctx, st, start)
		must(err)
	}
	must(s.Finish(ctx, latest, "shardId-0"))
	for _, sh := range shards {
		got, err := s.Claim(ctx, whole, sh.ID, sh.Parent, worker)
		must(err)
		l := state.Lease{Stream: whole, ShardID: sh.ID, Owner: worker, Epoch: got.Epoch}
		if sh.Position != (state.Position{}) {
			must(errors.Join(s.Checkpoint(ctx, []state.Checkpoint{{Lease: l, Position: sh.Position}})...))
		}
		if sh.Owner == "" {
			must(s.Release(ctx, l))
		}
	}
	box := deadletter.NewBox(s, App)
	Park(t, box.Park)
	must(box.ParkGap(ctx, &gap))
	for _, p := range []pauses.Pause{pause, slow} {
		_, err := pauses.Set(ctx, s, App, p)
		must(err)
	}
}

// Check expects what Fill stored, and goes on where it ended: a worker claims all shards
// and moves them. sleep waits until the worker before counts as ended.
func Check(t *testing.T, s Store, sleep func(time.Duration)) {
	t.Helper()
	ctx := t.Context()
	streams, err := s.Streams(ctx, App)
	if want := []state.Stream{whole, latest}; err != nil || !slices.Equal(streams, want) {
		t.Fatalf("streams %v, %v, want %v", streams, err, want)
	}
	for st, want := range starts {
		if got, err := s.Start(ctx, st, state.Start{}); err != nil || got.Position != want.Position || !got.At.Equal(want.At) {
			t.Errorf("start of %s: %v, %v, want %v", st.ARN, got, err, want)
		}
	}
	before := make(map[string]uint64)
	for st, want := range map[state.Stream][]state.Shard{whole: shards, latest: {{ID: "shardId-0", Position: state.Position{Finished: true}}}} {
		got, err := s.Shards(ctx, st)
		slices.SortFunc(got, func(a, b state.Shard) int { return strings.Compare(a.ID, b.ID) })
		for i := range got {
			before[got[i].ID], got[i].Epoch = got[i].Epoch, 0
		}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("shards of %s: %+v, %v, want %+v", st.ARN, got, err, want)
		}
	}
	all, err := pauses.Read(ctx, s, App)
	if want := []pauses.Pause{pause, slow}; err != nil || !reflect.DeepEqual(all, want) {
		t.Errorf("pauses %+v, %v, want %+v", all, err, want)
	}
	CheckLetters(t, s, 1)

	for i, sh := range shards {
		const later = "host/2/BBBB"
		got, err := s.Claim(ctx, whole, sh.ID, "", later)
		for n := 0; errors.Is(err, state.ErrHeld) && n < 100; n++ {
			sleep(time.Second)
			if err = s.Heartbeat(ctx, later); err == nil {
				got, err = s.Claim(ctx, whole, sh.ID, "", later)
			}
		}
		if err != nil || got.Position != sh.Position || got.Epoch <= before[sh.ID] {
			t.Fatalf("claim of %s: %+v after epoch %d, %v", sh.ID, got, before[sh.ID], err)
		}
		if sh.Position.Finished {
			continue
		}
		to := state.Checkpoint{Lease: state.Lease{Stream: whole, ShardID: sh.ID, Owner: later, Epoch: got.Epoch}, Position: state.Position{Sequence: at(30 + i)}}
		if err := errors.Join(s.Checkpoint(ctx, []state.Checkpoint{to})...); err != nil {
			t.Errorf("checkpoint of %s: %v", sh.ID, err)
		}
	}
}
