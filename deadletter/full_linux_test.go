package deadletter

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func init() { children["limit"] = limited }

// A limit on the size of files is a process's, and so the test has one.
func TestFileThatCannotGrow(t *testing.T) {
	if out, err := child("limit", filepath.Join(t.TempDir(), "letters.ndjson")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// limited writes to a file that cannot grow for a while: each write says so and
// what to do, nothing acknowledged is lost, and the file can be opened, also
// when it cannot be compacted.
func limited(path string) error {
	ctx := context.Background()
	var free syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &free); err != nil {
		return err
	}
	f, err := OpenFile(path)
	if err != nil {
		return err
	}
	stored := 0
	put := func() error {
		err := f.PutLetter(ctx, "app", fmt.Sprintf("%06d", stored), make([]byte, 3000))
		if err == nil {
			stored++
		}
		return err
	}
	holds := func(when string) error {
		letters, err := f.ListLetters(ctx, "app", "", 1000)
		if err == nil && len(letters) != stored {
			err = fmt.Errorf("%s: %d letters of %d", when, len(letters), stored)
		}
		return err
	}
	for range 3 {
		full := free
		full.Cur = uint64(f.size) + 10000
		if err := errors.Join(put(), f.PutLetter(ctx, "app", "x", nil), f.DeleteLetter(ctx, "app", "x"), syscall.Setrlimit(syscall.RLIMIT_FSIZE, &full)); err != nil {
			return err
		}
		var refused error
		for refused = put(); refused == nil; refused = put() {
		}
		for _, part := range []string{path, syscall.EFBIG.Error(), "raise the limit"} {
			if !strings.Contains(refused.Error(), part) {
				return fmt.Errorf("the error lacks %q: %w", part, refused)
			}
		}
		full.Cur = 100 // too small for what compaction writes
		if err := errors.Join(holds("full"), f.Close(), syscall.Setrlimit(syscall.RLIMIT_FSIZE, &full)); err != nil {
			return err
		}
		if f, err = OpenFile(path); err != nil {
			return err
		}
		if err := errors.Join(holds("opened again"), syscall.Setrlimit(syscall.RLIMIT_FSIZE, &free), put(), holds("room again"), f.Close()); err != nil {
			return err
		}
		if f, err = OpenFile(path); err != nil {
			return err
		}
		if err := holds("in the end"); err != nil {
			return err
		}
	}
	return f.Close()
}
