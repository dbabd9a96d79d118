package boltstate

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/state"
)

func TestReset(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	s := open(t, path)
	other := state.Stream{Application: "zoo", ARN: stream.ARN}
	for _, st := range []state.Stream{stream, other} {
		if _, err := s.Start(ctx(), st, state.Start{Position: "TRIM_HORIZON"}); err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{"one", "two"} {
			sh, err := s.Claim(ctx(), st, id, "", "me")
			if err != nil {
				t.Fatal(err)
			}
			if errs := s.Checkpoint(ctx(), []state.Checkpoint{{Lease: state.Lease{Stream: st, ShardID: id, Owner: "me", Epoch: sh.Epoch}, Position: position(7)}}); errs != nil {
				t.Fatal(errs)
			}
		}
	}
	if apps, err := s.Applications(ctx()); err != nil || !slices.Equal(apps, []string{stream.Application, "zoo"}) {
		t.Errorf("%q, %v", apps, err)
	}
	shards := func(st state.Stream) (ids []string) {
		all, err := s.Shards(ctx(), st)
		if err != nil {
			t.Fatal(err)
		}
		for _, sh := range all {
			ids = append(ids, fmt.Sprint(sh.ID, " ", recordtest.Nth(sh.Position.Sequence)))
		}
		return ids
	}
	if err := s.ResetShards(ctx(), stream, "one", "none"); err != nil || !slices.Equal(shards(stream), []string{"two 7"}) {
		t.Errorf("ResetShards: %v, %q", err, shards(stream))
	}
	if start, err := s.Start(ctx(), stream, state.Start{}); err != nil || start.Position != "TRIM_HORIZON" {
		t.Errorf("the start of reset shards: %+v, %v", start, err)
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	if err := s.ResetStream(ctx(), stream, state.Start{Position: "LATEST", At: at}); err != nil || shards(stream) != nil {
		t.Errorf("ResetStream: %v, %q", err, shards(stream))
	}
	if start, err := s.Start(ctx(), stream, state.Start{}); err != nil || start.Position != "LATEST" || !start.At.Equal(at) {
		t.Errorf("the new start: %+v, %v", start, err)
	}
	if err := s.ResetStream(ctx(), stream, state.Start{Position: "LATEST"}); err == nil {
		t.Error("a start without its time was stored")
	}
	mustClose(t, s)
	s = open(t, path)
	if err := s.ResetStream(ctx(), stream, state.Start{}); err != nil {
		t.Fatal(err)
	}
	if err := s.ResetStream(ctx(), stream, state.Start{}); err != nil {
		t.Errorf("again: %v", err)
	}
	if _, err := s.Start(ctx(), stream, state.Start{}); !errors.Is(err, state.ErrNoStart) {
		t.Errorf("a stream that was forgotten: %v", err)
	}
	if got := shards(other); len(got) != 2 {
		t.Errorf("another application: %q", got)
	}
}
