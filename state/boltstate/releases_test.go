package boltstate

import (
	"flag"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/releasetest"
)

var update = flag.Bool("update", false, "write the state file of this release, unless it exists")

// The state files of all releases are read, and gone on with.
func TestReleases(t *testing.T) {
	open := func(t *testing.T, path string) *Store {
		s, err := Open(path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	releasetest.Each(t, "state.db", *update, func(t *testing.T, path string) {
		s := open(t, path)
		releasetest.Fill(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}, func(t *testing.T, path string) {
		releasetest.Check(t, open(t, path), func(time.Duration) { t.Error("a shard of a process that has ended is held") })
	})
}
