package boltstate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/bbolt"

	"github.com/sluicehq/sluice/internal/staterules"
	"github.com/sluicehq/sluice/state"
	"github.com/sluicehq/sluice/state/statetest"
)

// children are what this binary does as another process: one that opens a file
// and is killed with it open, or that may not write as much as it wants.
var children = map[string]func(path string) error{"hold": hold, "count": count}

const (
	childEnv = "BOLTSTATE_TEST_CHILD"
	pathEnv  = "BOLTSTATE_TEST_PATH"
)

func TestMain(m *testing.M) {
	if run := children[os.Getenv(childEnv)]; run != nil {
		if err := run(os.Getenv(pathEnv)); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// child prepares another process.
func child(name, path string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+name, pathEnv+"="+path)
	return cmd
}

func hold(path string) error {
	s, err := Open(path, Options{})
	if err != nil {
		return err
	}
	if _, err := s.Claim(ctx(), stream, "shard", "", "holder"); err != nil {
		return err
	}
	fmt.Println("held")
	select {}
}

func TestConformance(t *testing.T) {
	statetest.RunDurable(t, func(t *testing.T) func() state.Store {
		path := filepath.Join(t.TempDir(), "state.db")
		return func() state.Store { return open(t, path) }
	})
}

func TestOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, filepath.Join(t.TempDir(), "state.db"))
		defer mustClose(t, s)
		statetest.Owners(t, s, staterules.OwnerTimeout, time.Sleep)
	})
}

func TestHolderIsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	s := open(t, path)
	_, err := Open(path, Options{LockTimeout: time.Nanosecond})
	if !errors.Is(err, ErrLocked) {
		t.Fatalf("second Open: %v, want ErrLocked", err)
	}
	wantAll(t, err, path, fmt.Sprint("process ", os.Getpid()), "stop that process, or name another file")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(s.holderPath()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the holder's name is still there: %v", err)
	}
	mustClose(t, open(t, path))
}

func TestKilledHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	cmd := child("hold", path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := make([]byte, 4)
	if _, err := out.Read(said); err != nil || string(said) != "held" {
		t.Fatalf("the other process says %q, %v", said, err)
	}
	_, err = Open(path, Options{LockTimeout: time.Nanosecond})
	if !errors.Is(err, ErrLocked) {
		t.Fatalf("Open while another process has the file: %v, want ErrLocked", err)
	}
	wantAll(t, err, fmt.Sprint("process ", cmd.Process.Pid))
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()

	s := open(t, path)
	defer mustClose(t, s)
	shards, err := s.Shards(ctx(), stream)
	if err != nil || len(shards) != 1 || shards[0].Owner != "holder" {
		t.Fatalf("the claim of the killed process is not durable: %+v, %v", shards, err)
	}
	taken, err := s.Claim(ctx(), stream, "shard", "", "me")
	if err != nil || taken.Epoch <= shards[0].Epoch {
		t.Fatalf("Claim after the holder was killed: %+v, %v", taken, err)
	}
}

func TestFileIsPrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b", "state.db")
	defer mustClose(t, open(t, path))
	for path, want := range map[string]fs.FileMode{path: 0o600, path + ".holder": 0o600, filepath.Dir(path): 0o700 | fs.ModeDir} {
		info, err := os.Stat(path)
		if err != nil || info.Mode() != want {
			t.Errorf("%s: mode %v, %v; want %v", path, info.Mode(), err, want)
		}
	}
}

// A file that was made readable to others, as by a copy, is told of before letters
// are put into it. Rights of a group are those that volumes have.
func TestFileOfOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	mustClose(t, open(t, path))
	for mode, want := range map[fs.FileMode]string{0o644: "chmod o= " + path, 0o602: "mode 0602", 0o660: "", 0o600: ""} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		s, err := Open(path, Options{})
		if err == nil {
			mustClose(t, s)
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("mode %v: %v, want %q", mode, err, want)
		}
	}
}

func TestFormat(t *testing.T) {
	tests := []struct {
		name    string
		prepare func(tx *bbolt.Tx) error
		want    []string
	}{
		{"newer", func(tx *bbolt.Tx) error {
			return tx.Bucket(metaBucket).Put(formatKey, []byte("3"))
		}, []string{"is of format 3", "reads formats up to 2", "run the newer program"}},
		{"damaged", func(tx *bbolt.Tx) error {
			return tx.Bucket(metaBucket).Put(formatKey, []byte("x"))
		}, []string{`format "x"`, "damaged", "start position"}},
		{"foreign", func(tx *bbolt.Tx) error {
			_, err := tx.CreateBucket([]byte("theirs"))
			return errors.Join(err, tx.DeleteBucket(metaBucket))
		}, []string{"another program", "name another state file"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "state.db")
			mustClose(t, open(t, path))
			db, err := bbolt.Open(path, 0o600, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(db.Update(test.prepare), db.Close()); err != nil {
				t.Fatal(err)
			}
			before, _ := os.ReadFile(path)
			_, err = Open(path, Options{})
			wantAll(t, err, append(test.want, path)...)
			if after, _ := os.ReadFile(path); string(after) != string(before) {
				t.Error("the refused file was changed")
			}
		})
	}
}

func TestBadPaths(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte(strings.Repeat("no state file\n", 10000)), 0o600); err != nil {
		t.Fatal(err)
	}
	short := filepath.Join(dir, "short")
	if err := os.WriteFile(short, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string][]string{
		text:                          {"no state file, or is damaged", "restore a copy", "name another file", "dead letters"},
		short:                         {"no state file, or is damaged", "restore a copy", "name another file", "dead letters"},
		dir:                           {dir, "name a file in a directory"},
		filepath.Join(text, "s.db"):   {"create its directory", "name a file in a directory"},
		filepath.Join("/proc", "s.d"): {"/proc/s.d"},
	} {
		_, err := Open(path, Options{})
		wantAll(t, err, want...)
	}
}

func TestExplain(t *testing.T) {
	s := &Store{path: "/data/state.db"}
	for want, err := range map[string]error{
		"make room on its disk":                 &fs.PathError{Op: "write", Err: syscall.ENOSPC},
		"write it and its directory":            &fs.PathError{Op: "open", Err: syscall.EACCES},
		"its directory, or name another file":   &fs.PathError{Op: "open", Err: syscall.EROFS},
		"cannot store positions: invalid argum": &fs.PathError{Op: "write", Err: syscall.EINVAL},
	} {
		got := s.explain("store positions", err.(*fs.PathError).Err)
		wantAll(t, got, want, "/data/state.db", "store positions")
		if !errors.Is(got, err.(*fs.PathError).Err) {
			t.Errorf("%v does not wrap %v", got, err)
		}
	}
}

func TestClosed(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "state.db"))
	mustClose(t, s)
	_, err := s.Claim(ctx(), stream, "shard", "", "me")
	wantAll(t, err, "closed before")
	errs := s.Checkpoint(ctx(), make([]state.Checkpoint, 2))
	if len(errs) != 2 || errs[0] == nil || errs[1] == nil {
		t.Errorf("Checkpoint = %v, want two errors", errs)
	}
}

func TestRefuseNetwork(t *testing.T) {
	kind := func(magic uint32, ok bool) func(string) (uint32, bool) {
		return func(string) (uint32, bool) { return magic, ok }
	}
	wantAll(t, refuseNetwork("/mnt", kind(0x6969, true)), "/mnt", "NFS", "local disk")
	wantAll(t, refuseNetwork("/mnt", kind(0xFF534D42, true)), "CIFS")
	for _, local := range []func(string) (uint32, bool){kind(0xEF53, true), kind(0, false), kind(0x6969, false)} {
		if err := refuseNetwork("/mnt", local); err != nil {
			t.Errorf("a local file system is refused: %v", err)
		}
	}
	if magic, ok := fileSystem(filepath.Join(t.TempDir(), "none")); ok {
		t.Errorf("the file system of nothing is %x", magic)
	}
}

func TestOptions(t *testing.T) {
	_, err := Open(filepath.Join(t.TempDir(), "state.db"), Options{LockTimeout: -1})
	wantAll(t, err, "LockTimeout is -1ns")
}
