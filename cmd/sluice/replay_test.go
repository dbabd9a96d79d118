package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/streamtest"
)

// A letter for all routes whose record is gone: where none takes the item that
// stands for it, the letter is kept, and not counted as one without a route.
func TestReplayOfAReferenceThatNoRouteTakes(t *testing.T) {
	it := item.Of(item.String("pk", "1"), item.String("x", strings.Repeat("x", 100)))
	insert, snapshot := streamtest.Insert("t", it), streamtest.Snapshot("t", it)
	e := deadletter.Entry{
		ID: "1-2", Ref: &deadletter.Reference{Keys: insert.Keys, Bytes: 9}, EventName: sluice.Insert, Table: "t",
		StreamARN: insert.StreamARN, Sequence: insert.Sequence, ParkedAt: time.Now(),
	}
	data, err := e.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	for pattern, want := range map[string]bool{"*#INSERT": false, "*#SNAPSHOT": true} {
		m := router.New()
		m.Handle(pattern, sluiceNothing, router.Redrive())
		r := replaying{routes: m, fetch: func(context.Context, *deadletter.Entry) (*sluice.Record, error) { return &snapshot, nil }}
		l, ok, err := r.letter(data)
		if ok != want || (err == nil) != want || want && l.Record != &snapshot {
			t.Errorf("%s: %+v, %v, %v", pattern, l, ok, err)
		}
	}
	r := replaying{fetch: func(context.Context, *deadletter.Entry) (*sluice.Record, error) { return nil, errors.New("no network") }}
	if _, ok, err := r.letter(data); ok || err == nil {
		t.Errorf("%v, %v", ok, err)
	}
}

// fullOnce is a file on a disk that is full for one write, and keeps half of it.
type fullOnce struct {
	*os.File
	full bool
	size error // of Truncate
}

func (f *fullOnce) Write(b []byte) (int, error) {
	if !f.full {
		return f.File.Write(b)
	}
	f.full = false
	n, err := f.File.Write(b[:len(b)/2])
	return n, errors.Join(errors.New("disk full"), err)
}

func (f *fullOnce) Truncate(n int64) error {
	if f.size != nil {
		return f.size
	}
	return f.File.Truncate(n)
}

// A flow parks again when the file was full. The half line of the first try must not
// spoil the next line.
func TestFailedFileThatWasFull(t *testing.T) {
	for name, tt := range map[string]struct {
		truncate error
		want     string
	}{
		"regular":       {nil, "first\nsecond\nthird\n"},
		"cannot be cut": {errors.New("not that"), "first\nsec\nsecond\nthird\n"},
	} {
		path := filepath.Join(t.TempDir(), "failed")
		f := failedFile{path: path}
		if err := f.write([]byte("first")); err != nil {
			t.Fatal(err)
		}
		f.file = &fullOnce{f.file.(*os.File), true, tt.truncate}
		if err := f.write([]byte("second")); err == nil || !strings.Contains(err.Error(), "--failed: disk full") {
			t.Errorf("%s: %v", name, err)
		}
		if err := errors.Join(f.write([]byte("second")), f.write([]byte("third")), f.Close()); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != tt.want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, tt.want)
		}
	}
}
