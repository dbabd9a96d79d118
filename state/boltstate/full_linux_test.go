package boltstate

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/sluicehq/sluice/state"
)

func init() {
	children["limit"] = limited
	children["tmpfs"] = inTmpfs
}

// Both run in processes of their own: a limit and a mount are a process's.

func TestFileSizeLimit(t *testing.T) { passes(t, "limit") }

// The full disk is a small one in a namespace. Where the system has none for
// users, the limit stands in for it.
func TestFullDisk(t *testing.T) {
	cmd := child("tmpfs", t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	var ran *exec.ExitError
	switch {
	case err != nil && (!errors.As(err, &ran) || strings.Contains(string(out), noMount)):
		t.Logf("no file system of our own (%v %s): a limit stands in for it", err, out)
		passes(t, "limit")
	case err != nil:
		t.Fatalf("%v\n%s", err, out)
	}
}

func passes(t *testing.T, name string) {
	t.Helper()
	if out, err := child(name, t.TempDir()).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

const noMount = "cannot mount"

func inTmpfs(dir string) error {
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		return fmt.Errorf("%s: %w", noMount, err)
	}
	ballast := filepath.Join(dir, "ballast")
	fill := func() error { // to the last byte
		f, err := os.OpenFile(ballast, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		defer f.Close()
		for err == nil {
			_, err = f.Write(make([]byte, 4096))
		}
		if !errors.Is(err, syscall.ENOSPC) {
			return err
		}
		return nil
	}
	return fills(dir, syscall.ENOSPC, "make room on its disk", fill, func() error { return os.Remove(ballast) })
}

func limited(dir string) error {
	var free syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &free); err != nil {
		return err
	}
	// Go programs ignore SIGXFSZ, so that writes fail.
	limit := func() error {
		full := free
		full.Cur = 0
		if info, err := os.Stat(filepath.Join(dir, "state.db")); err == nil {
			full.Cur = uint64(info.Size())
		}
		return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &full)
	}
	return fills(dir, syscall.EFBIG, "raise the limit", limit, func() error { return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &free) })
}

// fills writes to a disk that is full for a while: every write that fails says
// so and what to do, what was acknowledged stays, and the store goes on when
// there is room.
func fills(dir string, errno syscall.Errno, advice string, fill, free func() error) error {
	path := filepath.Join(dir, "state.db")
	told := func(what string, err error) error {
		if err == nil {
			return fmt.Errorf("%s: no error on a full disk", what)
		}
		for _, part := range []string{path, advice, errno.Error()} {
			if !strings.Contains(err.Error(), part) {
				return fmt.Errorf("%s: the error lacks %q: %w", what, part, err)
			}
		}
		return nil
	}
	// A first start.
	if err := fill(); err != nil {
		return err
	}
	_, err := Open(path, Options{})
	if err := told("Open of a new file", err); err != nil {
		return err
	}
	if err := free(); err != nil {
		return err
	}
	s, err := Open(path, Options{})
	if err != nil {
		return err
	}
	sh, err := s.Claim(ctx(), stream, "shard", "", "me")
	if err != nil {
		return err
	}
	l := state.Lease{Stream: stream, ShardID: "shard", Owner: "me", Epoch: sh.Epoch}
	settled, letters := 0, 0 // acknowledged
	step := func() error {
		if err := s.PutLetter(ctx(), "app", fmt.Sprintf("%06d", letters), make([]byte, 20000)); err != nil {
			return told("PutLetter", err)
		}
		letters++
		return nil
	}
	store := func() error {
		errs := s.Checkpoint(ctx(), []state.Checkpoint{{Lease: l, Position: position(settled + 1)}})
		if errs != nil {
			return told("Checkpoint", errs[0])
		}
		settled++
		return nil
	}
	holds := func(when string) error {
		shards, err := s.Shards(ctx(), stream)
		if err != nil {
			return err
		}
		all, err := s.ListLetters(ctx(), "app", "", 1<<20)
		if err != nil {
			return err
		}
		if shards[0].Position != position(settled) || len(all) != letters {
			return fmt.Errorf("%s: position %d and %d letters were acknowledged; %+v and %d are stored", when, settled, letters, shards, len(all))
		}
		return s.db.View(func(tx *bbolt.Tx) error {
			for err := range tx.Check() {
				return fmt.Errorf("%s: %w", when, err)
			}
			return nil
		})
	}
	for round := range 4 {
		if err := fill(); err != nil {
			return err
		}
		for refused := 0; refused < 5; {
			before := letters
			if err := errors.Join(step(), store(), holds("while it is full")); err != nil {
				return err
			}
			if letters == before {
				refused++
			}
			if letters > 1000 {
				return errors.New("the disk is not full")
			}
		}
		if round%2 == 1 { // a restart with a full disk: what is stored can be read
			if err := s.Close(); err != nil {
				return err
			}
			if s, err = Open(path, Options{}); err != nil {
				return err
			}
		}
		if err := errors.Join(holds("before there is room"), free()); err != nil {
			return err
		}
		before := letters
		if err := errors.Join(step(), store(), holds("when there is room")); err != nil {
			return err
		}
		if letters == before {
			return errors.New("nothing is stored although there is room")
		}
		if err := s.Close(); err != nil {
			return err
		}
		if s, err = Open(path, Options{}); err != nil {
			return err
		}
		if err := holds("after a restart"); err != nil {
			return err
		}
	}
	return s.Close()
}
