package boltstate

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/sluicehq/sluice/state"
)

// spoiler damages pages of an image in the ways of a disk.
type spoiler struct {
	image []byte
	pages []int // where those that were written begin
	rnd   *rand.Rand
}

func newSpoiler(image []byte, seed uint64) *spoiler {
	s := &spoiler{image: image, rnd: rand.New(rand.NewPCG(3, seed))}
	for at := 0; at < len(image); at += os.Getpagesize() {
		if binary.NativeEndian.Uint64(image[at:]) == uint64(at/os.Getpagesize()) {
			s.pages = append(s.pages, at)
		}
	}
	return s
}

func (s *spoiler) spoil() []byte {
	page := os.Getpagesize()
	spoiled := bytes.Clone(s.image)
	at := s.pages[s.rnd.IntN(len(s.pages))]
	switch s.rnd.IntN(4) {
	case 0: // the header
		spoiled[at+s.rnd.IntN(16)] ^= 1 << s.rnd.IntN(8)
	case 1: // the elements
		spoiled[at+16+s.rnd.IntN(256)] ^= 1 << s.rnd.IntN(8)
	case 2: // another page's
		copy(spoiled[at:at+page], s.image[s.pages[s.rnd.IntN(len(s.pages))]:])
	case 3: // never written
		clear(spoiled[at : at+page])
	}
	return spoiled
}

// Whatever stands in a page, Open returns, and so do all calls after it.
func TestDamagedPages(t *testing.T) { damagedPages(t, 75) }

func damagedPages(t *testing.T, files int) {
	image, _ := full(t)
	spoiler, path := newSpoiler(image, 4), filepath.Join(t.TempDir(), "state.db")
	var found [3]int
	for range files {
		if err := os.WriteFile(path, spoiler.spoil(), 0o600); err != nil {
			t.Fatal(err)
		}
		found[whatIsFound(t, path)]++
	}
	if found[refused]+found[letters] < files/3 || found[letters] == 0 {
		t.Errorf("of %d damaged files %d were refused, and letters were refused in %d", files, found[refused], found[letters])
	}
}

// A file with many letters, of which some page is damaged, is opened. The damage
// is found.
func TestDamagedLetters(t *testing.T) { damagedLetters(t, 75) }

func damagedLetters(t *testing.T, files int) {
	path := filepath.Join(t.TempDir(), "state.db")
	fill(t, path, 700, 1500)
	spoiler := newSpoiler(readFile(t, path), 5)
	var found [3]int
	for range files {
		if err := os.WriteFile(path, spoiler.spoil(), 0o600); err != nil {
			t.Fatal(err)
		}
		found[whatIsFound(t, path)]++
	}
	if found[letters] < files*3/5 {
		t.Errorf("of %d damaged files %d were refused, and letters were refused in %d", files, found[refused], found[letters])
	}
}

const (
	nothing = iota // what is damaged was not in use, or is within a key or a value
	refused        // by Open
	letters        // are refused, and all else is there
)

// whatIsFound opens a damaged file, makes all calls, and says what came of it.
func whatIsFound(t *testing.T, path string) int {
	t.Helper()
	r := newReads()
	s, err := Open(path, Options{through: r.through})
	if err != nil {
		wantAll(t, err, path, "damaged")
		return refused
	}
	defer mustClose(t, s)
	s.db.NoSync, s.db.NoGrowSync = true, true
	told := func(errs ...error) {
		t.Helper()
		for _, err := range errs {
			if err != nil {
				wantAll(t, err, path, "damaged", "move it away")
			}
		}
	}
	read := func() error {
		_, err1 := s.ListLetters(ctx(), "app", "", 1000)
		_, err2 := s.ListLabels(ctx(), "app", "", 1000)
		_, _, err3 := s.GetLetter(ctx(), "app", letterID(300))
		_, _, err4 := s.GetLetter(ctx(), "app", "010")
		told(err1, err2, err3, err4)
		return errors.Join(err1, err2, err3, err4)
	}
	before := read() // while the check goes on
	_, err1 := s.Start(ctx(), stream, state.Start{Position: "TRIM_HORIZON"})
	_, err2 := s.Shards(ctx(), stream)
	sh, err3 := s.Claim(ctx(), stream, "another", "", "me")
	told(err1, err2, err3)
	l := state.Lease{Stream: stream, ShardID: "another", Owner: "me", Epoch: sh.Epoch}
	told(s.Checkpoint(ctx(), []state.Checkpoint{{Lease: l, Position: position(7)}})...)
	close(r.letters)
	<-s.letters.done
	told(s.DamagedLetters())
	err = s.PutLetter(ctx(), "app", letterID(301), make([]byte, 5000))
	told(err, s.DeleteLetter(ctx(), "app", letterID(302)), s.LabelLetters(ctx(), "app", func(string, []byte) []byte { return nil }))
	after := read()
	if s.DamagedLetters() == nil { // then bbolt finds nothing, either
		if err := errors.Join(before, err, after); err != nil {
			t.Errorf("the check has found nothing, and %v", err)
		}
		if err := s.db.View(func(tx *bbolt.Tx) error {
			var all []error
			for err := range tx.Check() {
				all = append(all, err)
			}
			return errors.Join(all...)
		}); err != nil {
			t.Errorf("the check has found nothing, and bbolt %v", err)
		}
		return nothing
	}
	if err == nil || after == nil {
		t.Errorf("letters are damaged, %v, and can be used: %v, %v", s.DamagedLetters(), err, after)
	}
	return letters
}

// A page of letters that cannot be read is damage, too.
func TestLettersThatCannotBeRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	fill(t, path, 300, 2500)
	s, err := Open(path, Options{through: func(part string, file io.ReaderAt) io.ReaderAt {
		if part == positionsPart {
			return file
		}
		return readerAt(func([]byte, int64) (int, error) { return 0, errDisk })
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer mustClose(t, s)
	<-s.letters.done
	if err := s.PutLetter(ctx(), "app", "id", nil); !errors.Is(err, errDisk) || !errors.Is(s.DamagedLetters(), errDisk) {
		t.Errorf("%v, %v", err, s.DamagedLetters())
	}
}

var errDisk = errors.New("the disk fails")

// A list of free pages that is wrong of letters is found: a page that is in use
// would be written over, and one that is missing was of letters that are lost.
func TestDamagedListOfFreePages(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	fill(t, path, 300, 2500)
	image := readFile(t, path)
	var list, root int64
	s := open(t, path)
	if err := s.letters.wait(ctx()); err != nil {
		t.Fatal(err)
	}
	err := s.db.View(func(tx *bbolt.Tx) error {
		size := int64(s.db.Info().PageSize)
		root = int64(find(tx, []byte("app"), lettersBucket).RootPage())
		for _, meta := range []int64{0, size} {
			if u64(image[meta+metaTx:]) == uint64(tx.ID()) {
				list = int64(u64(image[meta+metaFreelist:])) * size
			}
		}
		return nil
	})
	mustClose(t, s)
	if err != nil || list == 0 || binary.NativeEndian.Uint16(image[list+10:]) == 0 {
		t.Fatalf("a list at %d, %v", list, err)
	}
	inUse, lost := bytes.Clone(image), bytes.Clone(image)
	binary.NativeEndian.PutUint64(inUse[list+headerSize:], uint64(root))
	binary.NativeEndian.PutUint16(lost[list+10:], binary.NativeEndian.Uint16(image[list+10:])-1)
	for _, tt := range []struct {
		image []byte
		says  string
	}{{inUse, "is in use, and on the list of free pages"}, {lost, "is neither in use nor free"}} {
		if err := os.WriteFile(path, tt.image, 0o600); err != nil {
			t.Fatal(err)
		}
		if whatIsFound(t, path) != letters {
			t.Errorf("a page that %s was not found", tt.says)
		}
		if err := os.WriteFile(path, tt.image, 0o600); err != nil { // without the commits since
			t.Fatal(err)
		}
		s := open(t, path)
		<-s.letters.done
		wantAll(t, s.DamagedLetters(), tt.says)
		mustClose(t, s)
	}
}
