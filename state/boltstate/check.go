package boltstate

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"sync/atomic"

	"go.etcd.io/bbolt"
)

// bbolt recovers from a commit that a crash cut short. It does not recover from a
// file that was truncated, copied while it was written, or damaged by its disk: it
// panics, loops, or crashes the process through its memory map. So check reads a
// page before bbolt does: positions when the file is opened, dead letters
// afterwards (see letterCheck).

var errDamaged = errors.New("its pages contradict each other")

// check checks a bbolt file without its dead letters. A missing or empty file is
// good: check returns nil.
func check(path string, o Options) (*checker, error) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return nil, nil //nolint:nilerr,nilnil // whoever creates it tells
	}
	var file *os.File
	db, err := bbolt.Open(path, 0, &bbolt.Options{ReadOnly: true, Timeout: o.LockTimeout,
		OpenFile: func(name string, flag int, mode os.FileMode) (_ *os.File, err error) {
			file, err = os.OpenFile(name, flag, mode)
			return file, err
		}})
	if err != nil {
		return nil, err
	}
	var c *checker
	err = db.View(func(tx *bbolt.Tx) error {
		info, err := file.Stat()
		if err != nil {
			return err
		}
		if info.Size() < tx.Size() {
			return fmt.Errorf("%w: it has %d bytes of %d", errDamaged, info.Size(), tx.Size())
		}
		size := int64(db.Info().PageSize)
		pages := uint64(tx.Size() / size)
		c = &checker{
			file: o.reader(positionsPart, file), pageSize: size, pages: pages, tx: uint64(tx.ID()),
			free: newPageSet(pages), seen: newPageSet(pages), stop: new(atomic.Bool),
		}
		if err := c.positions(uint64(tx.Cursor().Bucket().RootPage())); err != nil {
			return fmt.Errorf("%w: %w", errDamaged, err)
		}
		return nil
	})
	return c, errors.Join(err, db.Close())
}

// checker walks the tree's pages in the file. A page is a header {id uint64,
// flags, count uint16, overflow uint32}, count elements, and the keys and values
// to which they point.
type checker struct {
	file     io.ReaderAt
	pageSize int64
	pages    uint64 // page ids are below this
	tx       uint64 // transaction whose pages are checked
	listed   bool   // the file lists its free pages
	free     pageSet
	seen     pageSet      // each page has one parent; nil: not tracked
	later    []uint64     // root pages of buckets of letters, not checked yet
	stop     *atomic.Bool // stops the check

	// A walk along a range checks the keys from here on, until it has counted
	// this many above it.
	ranged bool
	from   []byte
	left   int
}

// pageSet is a set of page ids, one bit each.
type pageSet []uint64

func newPageSet(pages uint64) pageSet { return make(pageSet, pages/64+1) }
func (s pageSet) has(id uint64) bool  { return s[id/64]>>(id%64)&1 != 0 }
func (s pageSet) add(id uint64)       { s[id/64] |= 1 << (id % 64) }
func (c *checker) has(id uint64) bool { return id >= 2 && id < c.pages }
func (c *checker) read(b []byte, at int64) error {
	_, err := c.file.ReadAt(b, at)
	return err
}

const (
	headerSize   = 16
	branchPage   = 0x01
	leafPage     = 0x02
	freelistPage = 0x10

	elemSize   = 16
	bucketFlag = 0x01 // of a leaf's element
	bucketSize = 16   // {root page, sequence uint64}, before the page of a bucket without a root

	// In the body of pages 0 and 1.
	metaFreelist = headerSize + 32
	metaTx       = headerSize + 48

	mostDepth = 64 // of pages below one another
)

// place is the position of a key in the tree of buckets.
type place int

const (
	inRoot place = iota
	inApplications
	inApplication
	inLetters // or their labels
	elsewhere
)

// below returns the place of the keys in the bucket of this name.
func (p place) below(name []byte) place {
	switch {
	case p == inRoot && bytes.Equal(name, appsBucket):
		return inApplications
	case p == inApplications:
		return inApplication
	case p == inApplication && (bytes.Equal(name, lettersBucket) || bytes.Equal(name, labelsBucket)):
		return inLetters
	}
	return elsewhere
}

// positions checks every page except those of letters, which it adds to later.
// root is the root page of the file.
func (c *checker) positions(root uint64) error {
	if err := c.freelist(); err != nil {
		return err
	}
	if err := c.page(root, 0, inRoot, nil, nil); err != nil {
		return err
	}
	if !c.listed || len(c.later) == 0 { // bbolt itself finds free pages, or no check remains
		return c.letters()
	}
	return nil
}

// letters checks the pages of letters, and then whether a page is lost.
func (c *checker) letters() error {
	for ; len(c.later) > 0; c.later = c.later[1:] {
		if err := c.page(c.later[0], 0, inLetters, nil, nil); err != nil {
			return err
		}
	}
	for id := uint64(2); c.listed && id < c.pages; id++ {
		if !c.seen.has(id) && !c.free.has(id) {
			return fmt.Errorf("page %d is neither in use nor free", id)
		}
	}
	return nil
}

// along checks the pages of letters below root that bbolt reads to list n letters
// after from. It may run while letters runs.
func (c *checker) along(root uint64, from []byte, n int) error {
	one := checker{file: c.file, pageSize: c.pageSize, pages: c.pages, free: c.free, ranged: true, from: from, left: n}
	return one.page(root, 0, inLetters, nil, nil)
}

// open reads page id. It returns the page's header, the data read, and the page's
// end.
func (c *checker) open(id uint64) (h header, r region, end int64, err error) {
	if !c.has(id) {
		return h, r, 0, fmt.Errorf("page %d of %d", id, c.pages)
	}
	if c.stop != nil && c.stop.Load() {
		return h, r, 0, errStopped
	}
	r = region{int64(id) * c.pageSize, make([]byte, c.pageSize)}
	if err := c.read(r.buf, r.at); err != nil {
		return h, r, 0, err
	}
	copy(h[:], r.buf)
	if got := u64(h[:]); got != id {
		return h, r, 0, fmt.Errorf("page %d says that it is page %d", id, got)
	}
	last := id + uint64(u32(h[12:]))
	if last >= c.pages {
		return h, r, 0, fmt.Errorf("page %d of %d", last, c.pages)
	}
	for i := id; i <= last; i++ {
		if c.free.has(i) {
			return h, r, 0, fmt.Errorf("page %d is in use, and on the list of free pages", i)
		}
		if c.seen == nil {
			continue
		}
		if c.seen.has(i) {
			return h, r, 0, fmt.Errorf("page %d is in use twice", i)
		}
		c.seen.add(i)
	}
	return h, r, int64(last+1) * c.pageSize, nil
}

var errStopped = errors.New("the store was closed before its dead letters were checked")

// freelist reads the list of free pages.
func (c *checker) freelist() error {
	for _, meta := range []int64{0, c.pageSize} {
		var number, list [8]byte
		if err := errors.Join(c.read(number[:], meta+metaTx), c.read(list[:], meta+metaFreelist)); err != nil {
			return err
		}
		if u64(number[:]) != c.tx || u64(list[:]) == math.MaxUint64 { // the file has no list
			continue
		}
		h, r, end, err := c.open(u64(list[:]))
		if err != nil {
			return err
		}
		start := r.at + headerSize
		count := uint64(h.count())
		if count == math.MaxUint16 {
			if err := c.read(number[:], start); err != nil {
				return err
			}
			count, start = u64(number[:]), start+8
		}
		ids := make([]byte, 8*min(count, uint64(end-start)/8))
		if h.flags() != freelistPage || count > uint64(len(ids))/8 {
			return fmt.Errorf("page %d is no list of %d free pages", u64(list[:]), count)
		}
		if err := c.read(ids, start); err != nil {
			return err
		}
		for ; len(ids) > 0; ids = ids[8:] {
			id := u64(ids)
			if !c.has(id) {
				return fmt.Errorf("page %d of %d is free", id, c.pages)
			}
			if c.free.has(id) || c.seen.has(id) {
				return fmt.Errorf("page %d is free twice, or is the list of free pages", id)
			}
			c.free.add(id)
		}
		c.listed = true
		return nil
	}
	return nil
}

// page checks a page, depth pages below its bucket's root, and all pages below it.
// Its keys are in [lo, hi); nil is no bound.
func (c *checker) page(id uint64, depth int, p place, lo, hi []byte) error {
	if depth > mostDepth {
		return fmt.Errorf("page %d is below itself", id)
	}
	h, r, end, err := c.open(id)
	if err != nil {
		return err
	}
	return c.elements(h, r, r.at, end, depth, p, lo, hi)
}

// elements checks the page with header h from start to end.
func (c *checker) elements(h header, r region, start, end int64, depth int, p place, lo, hi []byte) error {
	count := int64(h.count())
	branch := h.flags() == branchPage
	if !branch && h.flags() != leafPage || branch && count == 0 {
		return fmt.Errorf("a page of type %#x with %d elements at byte %d", h.flags(), count, start)
	}
	elems, err := c.bytes(r, start+headerSize, count*elemSize, end)
	if err != nil {
		return err
	}
	keys, ends := make([][]byte, count), make([]int64, count)
	for i := range count {
		e, from := elems[i*elemSize:], start+headerSize+i*elemSize // base of the element's pos
		size := int64(0)                                           // of the value
		if branch {                                                // {pos, ksize uint32, page uint64}
			from += u32(e)
			keys[i], err = c.bytes(r, from, u32(e[4:]), end)
			from += u32(e[4:])
		} else { // {flags, pos, ksize, vsize uint32}
			from, size = from+u32(e[4:]), u32(e[12:])
			keys[i], err = c.bytes(r, from, u32(e[8:]), end)
			from += u32(e[8:])
		}
		if ends[i] = from + size; err == nil && ends[i] > end {
			err = fmt.Errorf("an element at byte %d ends at byte %d of %d", from, ends[i], end)
		}
		if err != nil {
			return err
		}
		if i > 0 && bytes.Compare(keys[i-1], keys[i]) >= 0 || i == 0 && bytes.Compare(keys[i], lo) < 0 || hi != nil && bytes.Compare(keys[i], hi) >= 0 {
			return fmt.Errorf("the keys of the page at byte %d are not in order", start)
		}
	}
	for i, e := int64(0), elems; i < count; i, e = i+1, e[elemSize:] {
		switch {
		case branch:
			next := hi
			if i+1 < count {
				next = keys[i+1]
			}
			if c.ranged && (c.left < 0 || next != nil && bytes.Compare(next, c.from) <= 0) {
				continue
			}
			err = c.page(u64(e[8:]), depth+1, p, keys[i], next)
		case u32(e)&bucketFlag != 0:
			err = c.bucket(r, p.below(keys[i]), ends[i]-u32(e[12:]), ends[i], depth)
		case c.ranged && bytes.Compare(keys[i], c.from) > 0:
			c.left--
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// bucket checks a bucket. It has a root page or is stored inline.
func (c *checker) bucket(r region, p place, start, end int64, depth int) error {
	b, err := c.bytes(r, start, bucketSize, end)
	if err != nil {
		return err
	}
	root := u64(b)
	if root != 0 && p == inLetters {
		c.later = append(c.later, root)
		return nil
	}
	if root != 0 {
		return c.page(root, depth+1, p, nil, nil)
	}
	var h header
	b, err = c.bytes(r, start+bucketSize, headerSize, end)
	if err != nil {
		return err
	}
	copy(h[:], b)
	return c.elements(h, r, start+bucketSize, end, depth+1, p, nil, nil)
}

// region is a part of the file that was read.
type region struct {
	at  int64
	buf []byte
}

// bytes returns n bytes of the file at at, which must not reach beyond end.
func (c *checker) bytes(r region, at, n, end int64) ([]byte, error) {
	if at+n > end {
		return nil, fmt.Errorf("%d bytes at byte %d, of which the last is %d", n, at, end)
	}
	if from := at - r.at; from+n <= int64(len(r.buf)) {
		return r.buf[from : from+n], nil
	}
	b := make([]byte, n)
	return b, c.read(b, at)
}

type header [headerSize]byte

func (h *header) flags() uint16 { return binary.NativeEndian.Uint16(h[8:]) }
func (h *header) count() uint16 { return binary.NativeEndian.Uint16(h[10:]) }

func u64(b []byte) uint64 { return binary.NativeEndian.Uint64(b) }
func u32(b []byte) int64  { return int64(binary.NativeEndian.Uint32(b)) }
