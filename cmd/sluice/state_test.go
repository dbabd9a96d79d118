package main

import (
	"context"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/sources/poller"
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
