package boltstate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/bbolt"

	"github.com/sluicehq/sluice/state"
)

// fill makes a file with a position, and with letters and their labels.
func fill(tb testing.TB, path string, letters, size int) {
	tb.Helper()
	s, err := Open(path, Options{})
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := s.Claim(tb.Context(), stream, "shard", "", "me"); err != nil {
		tb.Fatal(err)
	}
	if err := s.db.Update(func(tx *bbolt.Tx) error {
		labels, err := growLabels(tx, "app")
		if err != nil {
			return err
		}
		b, err := grow(tx, []byte("app"), lettersBucket)
		for i := range letters {
			id := letterID(i)
			err = errors.Join(err, b.Put([]byte(id), make([]byte, size)), labels.Put([]byte(id), fmt.Appendf(nil, "label %0100d", i)))
		}
		return err
	}); err != nil {
		tb.Fatal(err)
	}
	if err := s.Close(); err != nil {
		tb.Fatal(err)
	}
}

func letterID(i int) string { return fmt.Sprintf("%040d-0123456789abcdef", i) }

// reads counts what checks read, by their part, and holds up that of letters
// until the channel is closed.
type reads struct {
	calls, bytes map[string]*atomic.Int64
	letters      chan struct{}
}

func newReads() *reads {
	counts := func() map[string]*atomic.Int64 {
		return map[string]*atomic.Int64{positionsPart: new(atomic.Int64), lettersPart: new(atomic.Int64)}
	}
	return &reads{counts(), counts(), make(chan struct{})}
}

func (r *reads) through(part string, file io.ReaderAt) io.ReaderAt {
	return readerAt(func(b []byte, at int64) (int, error) {
		r.calls[part].Add(1)
		r.bytes[part].Add(int64(len(b)))
		if part == lettersPart {
			<-r.letters
		}
		return file.ReadAt(b, at)
	})
}

type readerAt func([]byte, int64) (int, error)

func (r readerAt) ReadAt(b []byte, at int64) (int, error) { return r(b, at) }

// Open reads as much of a file with many large letters as of one with few.
func TestOpenReadsNoLetters(t *testing.T) {
	var first [2]int64
	for _, letters := range []int{100, 5000} {
		path := filepath.Join(t.TempDir(), "state.db")
		fill(t, path, letters, 2500)
		r := newReads()
		s, err := Open(path, Options{through: r.through})
		if err != nil {
			t.Fatal(err)
		}
		got := [2]int64{r.calls[positionsPart].Load(), r.bytes[positionsPart].Load()}
		if first == [2]int64{} {
			first = got
		}
		if got != first || got[1] > 64<<10 {
			t.Errorf("with %d letters Open has read %d times, %d bytes; want as with few: %v", letters, got[0], got[1], first)
		}
		close(r.letters)
		if err := s.letters.wait(t.Context()); err != nil {
			t.Error(err)
		}
		if n := r.calls[lettersPart].Load(); n < int64(letters)/2 { // two have a page together
			t.Errorf("the check of %d letters has read %d times", letters, n)
		}
		mustClose(t, s)
	}
}

// Until the letters are checked, positions and values are read and stored, and
// letters are read. A change of letters waits, as long as its caller wants.
func TestChecksLettersBehindOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "state.db")
		fill(t, path, 300, 2500)
		r := newReads()
		s, err := Open(path, Options{through: r.through})
		if err != nil {
			t.Fatal(err)
		}
		sh, err := s.Claim(t.Context(), stream, "shard", "", "me")
		if err != nil {
			t.Fatal(err)
		}
		l := state.Lease{Stream: stream, ShardID: "shard", Owner: "me", Epoch: sh.Epoch}
		for i := range 100 { // commits for which pages are freed and taken
			if errs := s.Checkpoint(t.Context(), []state.Checkpoint{{Lease: l, Position: position(i + 1)}}); errs != nil {
				t.Fatal(errs)
			}
		}
		if err := s.PutValue(t.Context(), "app", "name", nil); err != nil {
			t.Error(err)
		}
		if data, ok, err := s.GetLetter(t.Context(), "app", letterID(7)); len(data) != 2500 || !ok || err != nil {
			t.Errorf("%d bytes, %v, %v", len(data), ok, err)
		}
		if _, ok, err := s.GetLetter(t.Context(), "app", "no such letter"); ok || err != nil {
			t.Errorf("%v, %v", ok, err)
		}
		for what, list := range map[string]func(context.Context, string, string, int) ([]state.Letter, error){"letters": s.ListLetters, "labels": s.ListLabels} {
			n := 0
			for after := ""; ; {
				all, err := list(t.Context(), "app", after, 7)
				if err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				if len(all) == 0 {
					break
				}
				n, after = n+len(all), all[len(all)-1].ID
			}
			if n != 300 {
				t.Errorf("%d %s", n, what)
			}
		}
		for what, change := range map[string]func(context.Context) error{
			"put":    func(ctx context.Context) error { return s.PutLetter(ctx, "app", "id", nil) },
			"delete": func(ctx context.Context) error { return s.DeleteLetter(ctx, "app", letterID(0)) },
		} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			start := time.Now()
			err := change(ctx)
			cancel()
			if d := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || d != time.Minute {
				t.Errorf("%s: %v after %v", what, err, d)
			}
		}
		put := make(chan error)
		go func() { put <- s.PutLetter(t.Context(), "app", "id", nil) }()
		synctest.Wait()
		close(r.letters)
		if err := errors.Join(<-put, s.DeleteLetter(t.Context(), "app", letterID(0)), s.DamagedLetters()); err != nil {
			t.Error(err)
		}
		mustClose(t, s)
	})
}

// A store that is closed gives the check up.
func TestCloseEndsTheCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "state.db")
		fill(t, path, 300, 2500)
		r := newReads()
		s, err := Open(path, Options{through: r.through})
		if err != nil {
			t.Fatal(err)
		}
		closed := make(chan error)
		go func() { closed <- s.Close() }()
		synctest.Wait()
		close(r.letters)
		if err := <-closed; err != nil {
			t.Error(err)
		}
		if n := r.calls[lettersPart].Load(); n > 1 {
			t.Errorf("%d pages were read after Close", n-1)
		}
	})
}

// What another process does with the file after it was checked, and before it is
// opened, is checked, too.
func TestChecksAgainWhatHasChanged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	fill(t, path, 300, 2500)
	checks := 0
	s := &Store{path: path}
	if err := s.open(Options{LockTimeout: 5 * time.Second}, func(path string, o Options) (*checker, error) {
		c, err := check(path, o)
		if checks++; checks == 1 {
			other := open(t, path)
			if err := other.PutLetter(ctx(), "app", letterID(7), make([]byte, 20000)); err != nil {
				t.Fatal(err)
			}
			mustClose(t, other)
		}
		return c, err
	}); err != nil {
		t.Fatal(err)
	}
	defer mustClose(t, s)
	if err := s.letters.wait(ctx()); err != nil || checks != 2 {
		t.Errorf("%d checks, %v", checks, err)
	}
}

// BenchmarkOpenWithLetters opens a file with 64 MB of letters, few large ones or
// many small ones: what a daemon waits for before its first record. The check of
// the letters, which goes on behind, is beside it.
func BenchmarkOpenWithLetters(b *testing.B) {
	for _, size := range []int{2500, 300_000} {
		path := filepath.Join(b.TempDir(), fmt.Sprint(size, ".db"))
		fill(b, path, 64<<20/size, size)
		for what, until := range map[string]func(*Store) error{
			"open":  func(*Store) error { return nil },
			"check": func(s *Store) error { return s.letters.wait(b.Context()) },
		} {
			b.Run(fmt.Sprint(what, "/", size, "B"), func(b *testing.B) {
				for b.Loop() {
					s, err := Open(path, Options{})
					if err != nil {
						b.Fatal(err)
					}
					if err := errors.Join(until(s), s.Close()); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
