package main

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/statestore"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/sources/poller"
	"github.com/sluicehq/sluice/state"
	"github.com/sluicehq/sluice/state/boltstate"
	"github.com/sluicehq/sluice/streamtest"
)

// The poller repeats or skips the records that reset has named.
func TestResetMeansWhatItSays(t *testing.T) { synctest.Test(t, resetMeansWhatItSays) }

func resetMeansWhatItSays(t *testing.T) {
	svc := streamtest.NewService(t)
	table := svc.CreateTable("orders", streamtest.TableOptions{PartitionKey: "id"})
	path := filepath.Join(t.TempDir(), "state.db")
	read := func(until string) (ids []string) {
		t.Helper()
		store, err := boltstate.Open(path, boltstate.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var mu sync.Mutex
		m := router.New()
		m.Handle("*#*", func(_ context.Context, rec *sluice.Record) error {
			mu.Lock()
			defer mu.Unlock()
			id, _ := rec.Keys.Lookup("id")
			if ids = append(ids, id.Str()); id.Str() == until {
				cancel()
			}
			return nil
		})
		p, err := poller.New(svc.Config(), m, poller.Options{Application: "sluice", Streams: []poller.Stream{{Table: "orders"}}, Store: store, Start: poller.TrimHorizon, Logger: discard})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Run(ctx); err != nil {
			t.Fatal(err)
		}
		slices.Sort(ids)
		return slices.Compact(ids)
	}
	reset := func(args ...string) {
		t.Helper()
		var stderr strings.Builder
		c := &cli{lookup: func(string) (string, bool) { return "", false }, stdin: strings.NewReader(""), stdout: io.Discard, stderr: &stderr}
		if code := c.execute(t.Context(), append([]string{"state", "reset", "orders", "--state", path, "--yes"}, args...)); code != 0 {
			t.Fatalf("exit %d: %s", code, stderr.String())
		}
	}
	put := func(id string) { table.Put(map[string]any{"id": id}) }

	put("a")
	if got := read("a"); !slices.Equal(got, []string{"a"}) {
		t.Fatalf("at first: %v", got)
	}
	put("b")
	if got := read("b"); !slices.Equal(got, []string{"b"}) {
		t.Fatalf("going on: %v", got)
	}
	reset("--to", "TRIM_HORIZON")
	put("c")
	if got := read("c"); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("from the horizon: %v", got)
	}
	reset("--shard", table.Shards()[0].ID, "--to", "TRIM_HORIZON")
	put("d")
	if got := read("d"); !slices.Equal(got, []string{"a", "b", "c", "d"}) {
		t.Errorf("a shard: %v", got)
	}
	put("skipped")
	time.Sleep(2 * time.Minute) // the service may tell the time of a change to the minute
	reset("--to", "LATEST")
	put("e")
	if got := read("e"); !slices.Equal(got, []string{"e"}) {
		t.Errorf("from now on: %v", got)
	}
}

// A copy that was cut off shows, in the target, until it is made again.
func TestUnfinishedCopyIsShown(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	from, err := boltstate.Open(path("from.db"), boltstate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	st := state.Stream{Application: "sluice", ARN: "arn:aws:dynamodb:us-east-1:1:table/orders/stream/2026-01-01T00:00:00.000"}
	if _, err := from.Start(t.Context(), st, state.Start{Position: poller.TrimHorizon}); err != nil {
		t.Fatal(err)
	}
	if err := from.PutLetter(t.Context(), "sluice", "id", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if err := from.Finish(t.Context(), st, "shard-1"); err != nil {
		t.Fatal(err)
	}
	to, err := statestore.Open(t.Context(), path("to.db"), statestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cut := context.WithCancel(t.Context())
	rows := 0
	if _, err := statestore.Copy(ctx, from, to, "sluice", false, func() {
		if rows++; rows == 2 { // before the start of the stream
			cut()
		}
	}); err == nil {
		t.Fatal("the copy was not cut off")
	}
	if err := errors.Join(from.Close(), to.Close()); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (stdout, stderr string) {
		t.Helper()
		var out, problems strings.Builder
		c := &cli{lookup: func(string) (string, bool) { return "", false }, stdin: strings.NewReader(""), stdout: &out, stderr: &problems}
		c.execute(t.Context(), append([]string{"state"}, args...))
		return out.String(), problems.String()
	}
	const want = "a copy to this state has not ended: run sluice state copy or import-kcl again"
	if out, _ := run("list", "--state", path("to.db")); !strings.Contains(out, "application sluice\n  "+want) {
		t.Errorf("list: %s", out)
	}
	if out, _ := run("list", "--json", "--state", path("to.db")); !strings.Contains(out, `"unfinishedCopy": true`) {
		t.Errorf("list --json: %s", out)
	}
	if out, problems := run("show", "orders", "--state", path("to.db")); !strings.Contains(problems, "warning: application sluice: "+want) || !strings.Contains(out, "shard-1") {
		t.Errorf("show: %s%s", out, problems)
	}
	run("copy", "--from", path("from.db"), "--to", path("to.db"))
	if out, problems := run("list", "--state", path("to.db")); strings.Contains(out, "not ended") || !strings.Contains(out, "orders") {
		t.Errorf("list after the copy: %s%s", out, problems)
	}
}
