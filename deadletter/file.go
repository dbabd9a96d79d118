package deadletter

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"unicode/utf8"

	"github.com/sluicehq/sluice/internal/access"
	"github.com/sluicehq/sluice/internal/staterules"
	"github.com/sluicehq/sluice/state"
)

// File keeps letters in a file of their own, one JSON object per line. Any tool
// can read it, and it is separate from the positions. It implements state.Letters.
// Only one process at a time may open it.
//
// Every change is appended and synced. Letters also stay in memory. Opening the
// file removes replaced and deleted letters.
type File struct {
	path string

	mu      sync.Mutex
	f       *os.File
	size    int64 // up to the end of the last whole line
	broken  error // why appending is no longer possible
	letters map[string]map[string][]byte
}

var _ state.Letters = (*File)(nil)

// line is one change.
type line struct {
	App     string          `json:"application"`
	ID      string          `json:"id"`
	Deleted bool            `json:"deleted,omitempty"`
	Letter  json.RawMessage `json:"letter,omitempty"`
	Base64  []byte          `json:"letterBase64,omitzero"` // a letter that is not JSON text without spaces
}

// OpenFile opens the file at path, or creates it and its directories, readable by
// this user only. It refuses a file that others may read.
func OpenFile(path string) (*File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("dead-letter file: %w", err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("dead-letter file: %w", err)
	}
	if err := access.CheckMode(path); err != nil {
		return nil, errors.Join(fmt.Errorf("dead-letter file: %w", err), f.Close())
	}
	d := &File{path: path, f: f, letters: make(map[string]map[string][]byte)}
	if err := claim(f, path); err != nil {
		return nil, errors.Join(fmt.Errorf("dead-letter file %s is in use by another process (%w): stop it, or name another file", path, err), f.Close())
	}
	stale, err := d.read()
	if err != nil {
		return nil, errors.Join(d.explain(err), d.f.Close())
	}
	if stale {
		_ = d.compact() // after a failure, such as a full disk, the file is only longer
	}
	if err := syncDir(path); err != nil {
		return nil, errors.Join(d.explain(err), d.f.Close())
	}
	return d, nil
}

// claim locks f, which was opened at path. The previous owner may have replaced
// the file by a compacted one before the lock. A lock on the old file is useless.
func claim(f *os.File, path string) error {
	if err := lock(f); err != nil {
		return err
	}
	ours, err := f.Stat()
	if err != nil {
		return err
	}
	there, err := os.Stat(path)
	if err == nil && !os.SameFile(ours, there) {
		err = errors.New("it was replaced just now")
	}
	return err
}

// read reads all lines. stale: some are obsolete. It cuts off an incomplete last
// line, which was never acknowledged: its end is missing, or the part that did not
// reach the disk before a crash reads as zeros.
func (d *File) read() (stale bool, err error) {
	r := bufio.NewReader(d.f)
	for n := 1; ; n++ {
		text, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			if len(text) == 0 {
				return stale, nil
			}
			return stale, d.f.Truncate(d.size)
		}
		if err != nil {
			return stale, err
		}
		var l line
		if err := json.Unmarshal(text, &l); err != nil {
			if _, end := r.Peek(1); errors.Is(end, io.EOF) && bytes.IndexByte(text, 0) >= 0 {
				return stale, d.f.Truncate(d.size)
			}
			return stale, fmt.Errorf("line %d: %w: correct it, or move the file away", n, err)
		}
		if l.App == "" || l.ID == "" || !l.Deleted && l.Letter == nil && l.Base64 == nil {
			return stale, fmt.Errorf("line %d is not one of a dead-letter file: name another file", n)
		}
		d.size += int64(len(text))
		_, replaces := d.letters[l.App][l.ID]
		stale = stale || replaces || l.Deleted
		d.apply(l)
	}
}

func (d *File) apply(l line) {
	if l.Deleted {
		delete(d.letters[l.App], l.ID)
		return
	}
	if d.letters[l.App] == nil {
		d.letters[l.App] = make(map[string][]byte)
	}
	if l.Letter != nil {
		d.letters[l.App][l.ID] = l.Letter
	} else {
		d.letters[l.App][l.ID] = l.Base64
	}
}

// explain adds the file's name to err, and advice for known errors.
func (d *File) explain(err error) error {
	advice := ""
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		advice = ": make room on its disk; nothing was stored"
	case errors.Is(err, syscall.EFBIG):
		advice = ": raise the limit on the size of files (ulimit -f); nothing was stored"
	}
	return fmt.Errorf("dead-letter file %s: %w%s", d.path, err, advice)
}

// put returns the line that stores data; it does not keep data.
func put(app, id string, data []byte) line {
	data = append([]byte{}, data...)
	var compact bytes.Buffer
	if utf8.Valid(data) && json.Compact(&compact, data) == nil && bytes.Equal(compact.Bytes(), data) {
		return line{App: app, ID: id, Letter: data}
	}
	return line{App: app, ID: id, Base64: data}
}

// compact writes the current letters to a new file, which replaces the old one.
// After an error the old file stays in use.
func (d *File) compact() error {
	tmp := d.path + ".new"
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	err = lock(f)
	size := int64(0)
	w := bufio.NewWriter(f)
	for app, letters := range d.letters {
		for id, data := range letters {
			text, e := encode(put(app, id, data))
			_, e2 := w.Write(text)
			err = errors.Join(err, e, e2)
			size += int64(len(text))
		}
	}
	if err = errors.Join(err, w.Flush(), f.Sync()); err == nil {
		err = os.Rename(tmp, d.path)
	}
	if err != nil {
		return errors.Join(err, f.Close(), os.Remove(tmp))
	}
	_ = d.f.Close()
	d.f, d.size = f, size
	return nil
}

func encode(l line) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false) // keeps the letter as it is
	err := enc.Encode(l)
	return buf.Bytes(), err
}

func (d *File) append(ctx context.Context, l line) error {
	if err := errors.Join(ctx.Err(), staterules.Letter(l.App, l.ID)); err != nil {
		return err
	}
	text, err := encode(l)
	if err != nil {
		return fmt.Errorf("dead letter %s: %w", l.ID, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.broken != nil {
		return d.broken
	}
	_, err = d.f.WriteAt(text, d.size)
	if err == nil {
		err = d.f.Sync()
	}
	if err != nil {
		err = d.explain(err)
		// A partial line must not precede the next line.
		if cut := d.f.Truncate(d.size); cut != nil {
			d.broken = errors.Join(err, cut)
		}
		return err
	}
	d.size += int64(len(text))
	d.apply(l)
	return nil
}

// PutLetter implements state.Letters.
func (d *File) PutLetter(ctx context.Context, app, id string, data []byte) error {
	return d.append(ctx, put(app, id, data))
}

// DeleteLetter implements state.Letters.
func (d *File) DeleteLetter(ctx context.Context, app, id string) error {
	return d.append(ctx, line{App: app, ID: id, Deleted: true})
}

// GetLetter implements state.Letters.
func (d *File) GetLetter(ctx context.Context, app, id string) ([]byte, bool, error) {
	if err := errors.Join(ctx.Err(), staterules.Letter(app, id)); err != nil {
		return nil, false, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	data, ok := d.letters[app][id]
	return bytes.Clone(data), ok, nil
}

// ListLetters implements state.Letters.
func (d *File) ListLetters(ctx context.Context, app, after string, limit int) ([]state.Letter, error) {
	if err := errors.Join(ctx.Err(), staterules.Letter(app, "any")); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var letters []state.Letter
	for _, id := range slices.Sorted(maps.Keys(d.letters[app])) {
		if id > after && len(letters) < limit {
			letters = append(letters, state.Letter{ID: id, Data: bytes.Clone(d.letters[app][id])})
		}
	}
	return letters, nil
}

// Close closes the file. Later changes fail.
func (d *File) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.broken = fmt.Errorf("dead-letter file %s: %w", d.path, os.ErrClosed)
	return d.f.Close()
}

func syncDir(path string) error {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}
