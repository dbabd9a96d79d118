package deadletter_test

import (
	"flag"
	"testing"

	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/releasetest"
)

var update = flag.Bool("update", false, "write the dead-letter file of this release, unless it exists")

// The dead-letter files of all releases are read.
func TestReleases(t *testing.T) {
	open := func(t *testing.T, path string) *deadletter.File {
		f, err := deadletter.OpenFile(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	releasetest.Each(t, "letters.ndjson", *update, func(t *testing.T, path string) {
		f := open(t, path)
		releasetest.Park(t, deadletter.NewBox(f, releasetest.App).Park)
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}, func(t *testing.T, path string) { releasetest.CheckLetters(t, open(t, path), 0) })
}
