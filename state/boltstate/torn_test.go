//go:build integration || long

package boltstate

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/sluicehq/sluice/internal/localtest"
)

const sector = 512 // what a disk writes whole or not at all

// A crash in the middle of a commit leaves the state before it or after it,
// whatever part of the writes has reached the disk, and the file goes on.
func TestTornCommit(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	s := open(t, filepath.Join(t.TempDir(), "state.db"))
	defer mustClose(t, s)
	for i, commit := range commits(t, s) {
		before, old := readFile(t, s.path), contents(t, s)
		commit()
		after, now := readFile(t, s.path), contents(t, s)
		if old == now {
			t.Fatalf("commit %d changed nothing", i)
		}
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			testTorn(t, rand.New(rand.NewPCG(1, uint64(i))), before, after, old, now)
		})
	}
}

// testTorn tries what a crash can leave of a commit that changes the file from
// before to after, and its contents from old to now: bbolt writes data pages,
// waits until they are on the disk, and then writes a meta page.
func testTorn(t *testing.T, rnd *rand.Rand, before, after []byte, old, now string) {
	page, path := os.Getpagesize(), filepath.Join(t.TempDir(), "state.db")
	try := func(name string, image []byte, want ...string) {
		t.Helper()
		opens(t, name, path, image, want...)
	}
	grown := append(bytes.Clone(before), make([]byte, len(after)-len(before))...)
	var data, meta []int // offsets of sectors that changed
	for at := 0; at < len(after); at += sector {
		switch {
		case bytes.Equal(grown[at:at+sector], after[at:at+sector]):
		case at < 2*page:
			meta = append(meta, at)
		default:
			data = append(data, at)
		}
	}
	mix := func(unit int) []byte {
		image, written := bytes.Clone(grown), map[int]bool{}
		for _, at := range data {
			u := at / unit
			if _, ok := written[u]; !ok {
				written[u] = rnd.IntN(2) == 0
			}
			if written[u] {
				copy(image[at:at+sector], after[at:])
			}
		}
		return image
	}
	all := bytes.Clone(grown)
	copy(all[2*page:], after[2*page:])

	try("nothing written", before, old)
	try("grown only", grown, old)
	try("all data", all, old)
	try("all data, growth missing", all[:len(before)], old)
	for range 2 {
		try("some pages", mix(page), old)
		try("some sectors", mix(sector), old)
		try("some sectors, growth missing", mix(sector)[:len(before)], old)
		torn := bytes.Clone(all)
		for _, at := range meta {
			copy(torn[at:at+rnd.IntN(100)], after[at:])
		}
		try("torn meta page", torn, old, now)
	}
	try("all", after, now)
	try("all, garbage behind", append(bytes.Clone(after), 1, 2, 3), now)
}

// A file that lost its end is refused, with advice, and not changed. An empty
// one is a new one.
func TestCutFile(t *testing.T) {
	image, holds := full(t)
	path := filepath.Join(t.TempDir(), "state.db")
	refused := 0
	for _, n := range []int{1, 100, 4095, 4096, 4097, 8192, 12288, 16384, 20480, 32768, len(image) / 2, len(image) - 4096, len(image) - 1} {
		if err := os.WriteFile(path, image[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Open(path, Options{})
		if err == nil { // what is missing was not in use
			if got := contents(t, s); got != holds {
				t.Errorf("cut to %d bytes the file holds\n%.300s, want\n%.300s", n, got, holds)
			}
			mustClose(t, s)
			continue
		}
		refused++
		wantAll(t, err, path, "damaged", "name another file", "move it away", "start position")
		if !bytes.Equal(readFile(t, path), image[:n]) {
			t.Errorf("cut to %d bytes: the refused file was changed", n)
		}
	}
	if refused < 10 {
		t.Errorf("%d cut files were refused", refused)
	}
	opens(t, "empty", path, nil, contents(t, open(t, filepath.Join(t.TempDir(), "new.db"))))
}

// A crash while the file is created leaves none, or one that can be opened.
func TestCreatedWhole(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "state.db")
	if err := os.WriteFile(path+".new-123", []byte("torn"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, path)
	names := func() (all []string) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			all = append(all, e.Name())
		}
		return all
	}
	if got := fmt.Sprint(names()); got != "[state.db state.db.holder]" {
		t.Errorf("the directory holds %s", got)
	}
	mustClose(t, s)
	holds := readFile(t, path)
	// Another process was quicker.
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, holds, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.create(); err != nil || !bytes.Equal(readFile(t, path), holds) {
		t.Errorf("create where a file is: %v", err)
	}
	mustClose(t, open(t, path))
}
