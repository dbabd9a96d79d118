// Package boltstate keeps positions, leases, dead letters and values in one file.
// It is the store of a single daemon and needs no set-up.
//
// One process at a time may open the file. A lock of the operating system enforces
// that, and ends with the process in any case. So at opening, every shard of
// another process is free to be claimed. Do not put the file on a network file
// system: lock and memory map are unreliable there, and Open refuses it.
//
// A small file with the ending ".holder" beside it names the process that has the
// file. It is for information only.
package boltstate

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/sluicehq/sluice/internal/access"
	"github.com/sluicehq/sluice/internal/staterules"
	"github.com/sluicehq/sluice/state"
)

// Options for a file; the zero value is ready to use.
type Options struct {
	// LockTimeout is how long Open waits for another process to close the file
	// (default 5 s).
	LockTimeout time.Duration

	through func(part string, file io.ReaderAt) io.ReaderAt // for tests: wraps the file for the reads of checks
}

// Store is a state.Store, state.Labels and state.Values in a file.
type Store struct {
	path    string
	db      *bbolt.DB
	letters *letterCheck
	owners  staterules.Presence
}

var (
	_ state.Store   = (*Store)(nil)
	_ state.Letters = (*Store)(nil)
	_ state.Labels  = (*Store)(nil)
	_ state.Values  = (*Store)(nil)
)

// ErrLocked says that another process has the file. Open's error wraps it.
var ErrLocked = errors.New("the state file is in use")

// format is the version of the file's content. A program reads its own and older
// formats. A file starts with format 1 and gets format 2 with its first letter,
// because a program of format 1 would not update the letter's label.
const format = 2

var (
	metaBucket = []byte("sluice")
	formatKey  = []byte("format")
	appsBucket = []byte("applications")
)

// Open opens the state file at path, or creates it and its directories, readable
// by this user only. It refuses a file that others may read, because it contains
// dead letters. If another process has the file, the error wraps [ErrLocked] and
// names the process. Open does not read dead letters. If they are damaged, Open
// succeeds and every call for letters fails; see [Store.DamagedLetters].
func Open(path string, o Options) (*Store, error) {
	if o.LockTimeout < 0 {
		return nil, fmt.Errorf("boltstate: LockTimeout is %v: it must be positive, or 0 for 5 s", o.LockTimeout)
	}
	o.LockTimeout = cmp.Or(o.LockTimeout, 5*time.Second)
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("state file %q: %w", path, err)
	}
	s := &Store{path: path}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, s.explain("create its directory", err)
	}
	if err := refuseNetwork(dir, fileSystem); err != nil {
		return nil, fmt.Errorf("state file %s: %w", path, err)
	}
	if err := s.create(); err != nil {
		return nil, s.explain("create", err)
	}
	if err := access.CheckMode(path); err != nil {
		return nil, fmt.Errorf("state file: %w", err)
	}
	if err := s.open(o, check); err != nil {
		return nil, s.explainOpen(o, err)
	}
	// A commit that can be shared waits this long for others.
	s.db.MaxBatchDelay = 2 * time.Millisecond
	if err := s.adopt(); err != nil {
		return nil, errors.Join(err, s.close())
	}
	// Also for an existing file: its creator may have died before this step.
	if err := syncDir(dir); err != nil {
		return nil, errors.Join(s.explain("create", err), s.close())
	}
	// For information only: a full disk must not prevent a start.
	_ = os.WriteFile(s.holderPath(), []byte(holder()), 0o600)
	return s, nil
}

// open checks the file and opens it. If another process had the file in between,
// it checks again.
func (s *Store) open(o Options, check func(path string, o Options) (*checker, error)) error {
	for {
		c, err := check(s.path, o)
		if err != nil {
			return err
		}
		var file *os.File
		s.db, err = bbolt.Open(s.path, 0o600, &bbolt.Options{Timeout: o.LockTimeout,
			OpenFile: func(name string, flag int, mode os.FileMode) (_ *os.File, err error) {
				file, err = os.OpenFile(name, flag, mode)
				return file, err
			}})
		if err != nil {
			return err
		}
		same := c == nil
		err = s.db.View(func(tx *bbolt.Tx) error {
			same = same || c.tx == uint64(tx.ID())
			return nil
		})
		if err == nil && same {
			s.letters = checkLetters(c, o, file)
			return nil
		}
		if err = errors.Join(err, s.db.Close()); err != nil {
			return err
		}
	}
}

// close closes the file once no goroutine reads it.
func (s *Store) close() error {
	s.letters.end()
	return s.db.Close()
}

// create completes a new file before it gets its name. A crash leaves no file, or
// a valid one. bbolt handles an existing file, even an empty one, and file systems
// without hard links.
func (s *Store) create() error {
	if _, err := os.Lstat(s.path); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	dir, prefix := filepath.Dir(s.path), filepath.Base(s.path)+".new-"
	old, err := os.ReadDir(dir)
	for _, e := range old {
		if strings.HasPrefix(e.Name(), prefix) { // left by a crash
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, prefix)
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) //nolint:errcheck // the next creation does
	if err := f.Close(); err != nil {
		return err
	}
	db, err := bbolt.Open(f.Name(), 0o600, nil)
	if err != nil {
		return err
	}
	if err := errors.Join(db.Update(mark), db.Close()); err != nil {
		return err
	}
	_ = os.Link(f.Name(), s.path) // never replaces another process's file
	return nil
}

// mark marks an empty file as a state file.
func mark(tx *bbolt.Tx) error {
	b, err := tx.CreateBucket(metaBucket)
	if err != nil {
		return err
	}
	_, err = tx.CreateBucket(appsBucket)
	return errors.Join(err, b.Put(formatKey, []byte("1")))
}

// adopt marks an empty file, or checks that this program can read the file.
func (s *Store) adopt() error {
	var found string
	var ours, empty bool
	err := s.db.View(func(tx *bbolt.Tx) error {
		name, _ := tx.Cursor().First()
		empty = name == nil
		if b := tx.Bucket(metaBucket); b != nil {
			ours, found = true, string(b.Get(formatKey))
		}
		return nil
	})
	switch {
	case err != nil:
		return s.explain("read", err)
	case ours:
		v, err := strconv.Atoi(found)
		if err != nil || v < 1 {
			return fmt.Errorf("state file %s says that it is of format %q, which never was: it is damaged; %s", s.path, found, moveAway)
		}
		if v > format {
			return fmt.Errorf("state file %s is of format %d, written by a newer program; this one reads formats up to %d: run the newer program, or name another file", s.path, v, format)
		}
		return nil
	case !empty:
		return fmt.Errorf("file %s is a bbolt file of another program, or is damaged: name another state file, or restore a copy of this one", s.path)
	}
	return s.explain("create", s.db.Update(mark))
}

// Path returns the absolute path of the file.
func (s *Store) Path() string { return s.path }

// Close closes the file. Later calls fail.
func (s *Store) Close() error {
	// Remove it while the lock is held, so that another process's file stays.
	_ = os.Remove(s.holderPath())
	return s.explain("close", s.close())
}

func (s *Store) holderPath() string { return s.path + ".holder" }

func holder() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	return fmt.Sprintf("process %d on %s since %s\n", os.Getpid(), host, time.Now().UTC().Format(time.RFC3339))
}

const moveAway = "move it away, which forgets the positions and the dead letters, so that the next start needs a start position"

func (s *Store) explainOpen(o Options, err error) error {
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		who := "another process"
		if text, err := os.ReadFile(s.holderPath()); err == nil && len(text) > 0 {
			who = strings.TrimSpace(string(text))
		}
		return fmt.Errorf("%w: %s is held by %s, waited %v: stop that process, or name another file", ErrLocked, s.path, who, o.LockTimeout)
	case errors.Is(err, errDamaged),
		errors.Is(err, berrors.ErrInvalid), errors.Is(err, berrors.ErrChecksum), errors.Is(err, berrors.ErrVersionMismatch),
		strings.Contains(err.Error(), "file size too small"):
		return fmt.Errorf("file %s is no state file, or is damaged (%w): restore a copy of it, name another file, or %s", s.path, err, moveAway)
	}
	return s.explain("open", err)
}

// explain adds the failed action to err, and advice for known errors. It returns nil
// for nil.
func (s *Store) explain(doing string, err error) error {
	advice := ""
	switch {
	case err == nil:
		return nil
	case is(err, syscall.ENOSPC), is(err, syscall.EDQUOT):
		advice = ": make room on its disk; nothing was stored"
	case is(err, syscall.EFBIG):
		advice = ": raise the limit on the size of files (ulimit -f); nothing was stored"
	case errors.Is(err, errDamaged):
		advice = ": the file is damaged: restore a copy of it, or " + moveAway
	case errors.As(err, new(*json.SyntaxError)), errors.As(err, new(*json.UnmarshalTypeError)):
		advice = ": the file is damaged; " + moveAway
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		advice = fmt.Sprintf(": let user %d write it and its directory, or name another file", os.Getuid())
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EISDIR):
		advice = ": name a file in a directory"
	case errors.Is(err, berrors.ErrDatabaseNotOpen):
		advice = ": the store was closed before"
	}
	return fmt.Errorf("state file %s: cannot %s: %w%s", s.path, doing, err, advice)
}

// is reports whether err is errno. bbolt keeps only the text of some errors.
func is(err error, errno syscall.Errno) bool {
	return errors.Is(err, errno) || strings.HasSuffix(err.Error(), ": "+errno.Error())
}

// syncDir makes a new file's name durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
