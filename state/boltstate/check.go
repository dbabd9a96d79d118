package boltstate

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"go.etcd.io/bbolt"
)

// What a crash leaves of a commit bbolt copes with. A file that was cut short,
// copied while it was written, or spoiled by its disk it does not: it panics,
// goes round in circles, or ends the process by a fault of its memory map. So
// every page that is in use is looked at before bbolt reads any.

var errDamaged = errors.New("its pages contradict each other")

// check looks at a file of bbolt; one that is not there, or empty, is good.
func check(path string, timeout time.Duration) error {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return nil //nolint:nilerr // whoever creates it tells
	}
	var file *os.File
	db, err := bbolt.Open(path, 0, &bbolt.Options{ReadOnly: true, Timeout: timeout,
		OpenFile: func(name string, flag int, mode os.FileMode) (_ *os.File, err error) {
			file, err = os.OpenFile(name, flag, mode)
			return file, err
		}})
	if err != nil {
		return err
	}
	err = db.View(func(tx *bbolt.Tx) error {
		info, err := file.Stat()
		if err != nil {
			return err
		}
		if info.Size() < tx.Size() {
			return fmt.Errorf("%w: it has %d bytes of %d", errDamaged, info.Size(), tx.Size())
		}
		size := int64(db.Info().PageSize)
		c := checker{file: file, pageSize: size, pages: uint64(tx.Size() / size), seen: make(map[uint64]bool)}
		if err := errors.Join(c.freelist(uint64(tx.ID())), c.page(uint64(tx.Cursor().Bucket().RootPage()))); err != nil {
			return fmt.Errorf("%w: %w", errDamaged, err)
		}
		// Now that it cannot go astray: the order of keys, and whether a page
		// in use is on the list of the free ones.
		var first error
		for err := range tx.Check() {
			if first == nil {
				first = fmt.Errorf("%w: %w", errDamaged, err)
			}
		}
		return first
	})
	return errors.Join(err, db.Close())
}

// checker walks the pages of the tree as they are in the file. A page is a
// header {id uint64, flags, count uint16, overflow uint32}, count elements, and
// the keys and values that these point to.
type checker struct {
	file     io.ReaderAt
	pageSize int64
	pages    uint64          // below this
	seen     map[uint64]bool // each has one parent
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
)

// open reads the header of page id and returns where the page begins and ends.
func (c *checker) open(id uint64) (h header, start, end int64, err error) {
	if id < 2 || id >= c.pages {
		return h, 0, 0, fmt.Errorf("page %d of %d", id, c.pages)
	}
	start = int64(id) * c.pageSize
	if err := c.read(h[:], start); err != nil {
		return h, 0, 0, err
	}
	if got := u64(h[:]); got != id {
		return h, 0, 0, fmt.Errorf("page %d says that it is page %d", id, got)
	}
	last := id + uint64(u32(h[12:]))
	if last >= c.pages {
		return h, 0, 0, fmt.Errorf("page %d of %d", last, c.pages)
	}
	for i := id; i <= last; i++ {
		if c.seen[i] {
			return h, 0, 0, fmt.Errorf("page %d is in use twice", i)
		}
		c.seen[i] = true
	}
	return h, start, int64(last+1) * c.pageSize, nil
}

// freelist looks at the list of free pages as of transaction tx.
func (c *checker) freelist(tx uint64) error {
	for _, meta := range []int64{0, c.pageSize} {
		var number, list [8]byte
		if err := errors.Join(c.read(number[:], meta+metaTx), c.read(list[:], meta+metaFreelist)); err != nil {
			return err
		}
		if u64(number[:]) != tx || u64(list[:]) == math.MaxUint64 { // it has none
			continue
		}
		h, start, end, err := c.open(u64(list[:]))
		if err != nil {
			return err
		}
		count := uint64(h.count())
		if count == math.MaxUint16 {
			if err := c.read(number[:], start+headerSize); err != nil {
				return err
			}
			count = u64(number[:])
		}
		ids := make([]byte, 8*min(count, uint64(end-start-headerSize)/8))
		if h.flags() != freelistPage || count > uint64(len(ids))/8 {
			return fmt.Errorf("page %d is no list of %d free pages", u64(list[:]), count)
		}
		if h.count() == math.MaxUint16 {
			start += 8
		}
		if err := c.read(ids, start+headerSize); err != nil {
			return err
		}
		for ; len(ids) > 0; ids = ids[8:] {
			if id := u64(ids); id < 2 || id >= c.pages {
				return fmt.Errorf("page %d of %d is free", id, c.pages)
			}
		}
		return nil
	}
	return nil
}

// page looks at a page of the tree, and at all below it.
func (c *checker) page(id uint64) error {
	h, start, end, err := c.open(id)
	if err != nil {
		return err
	}
	return c.elements(h, start, end)
}

// elements looks at the page with the header h that lies from start to end.
func (c *checker) elements(h header, start, end int64) error {
	count := int64(h.count())
	if h.flags() != branchPage && h.flags() != leafPage || h.flags() == branchPage && count == 0 {
		return fmt.Errorf("a page of type %#x with %d elements at byte %d", h.flags(), count, start)
	}
	start += headerSize
	if start+count*elemSize > end {
		return fmt.Errorf("%d elements at byte %d", count, start)
	}
	elems := make([]byte, count*elemSize)
	if err := c.read(elems, start); err != nil {
		return err
	}
	for i := range count {
		e := elems[i*elemSize : (i+1)*elemSize]
		at := start + i*elemSize // what positions count from
		var to int64
		var err error
		if h.flags() == branchPage { // {pos, ksize uint32, page uint64}
			to = at + u32(e) + u32(e[4:])
			err = c.page(u64(e[8:]))
		} else { // {flags, pos, ksize, vsize uint32}
			to = at + u32(e[4:]) + u32(e[8:]) + u32(e[12:])
			if u32(e)&bucketFlag != 0 && to <= end {
				err = c.bucket(to-u32(e[12:]), to)
			}
		}
		if to > end {
			err = fmt.Errorf("an element at byte %d ends at byte %d of %d", at, to, end)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// bucket looks at a bucket, which has a root page or is one.
func (c *checker) bucket(start, end int64) error {
	var b [bucketSize]byte
	var h header
	if start+bucketSize > end {
		return fmt.Errorf("a bucket of %d bytes at byte %d", end-start, start)
	}
	if err := c.read(b[:], start); err != nil {
		return err
	}
	if root := u64(b[:]); root != 0 {
		return c.page(root)
	}
	if start += bucketSize; start+headerSize > end {
		return fmt.Errorf("a bucket of %d bytes at byte %d", end-start, start)
	}
	if err := c.read(h[:], start); err != nil {
		return err
	}
	return c.elements(h, start, end)
}

func (c *checker) read(b []byte, at int64) error {
	_, err := c.file.ReadAt(b, at)
	return err
}

type header [headerSize]byte

func (h *header) flags() uint16 { return binary.NativeEndian.Uint16(h[8:]) }
func (h *header) count() uint16 { return binary.NativeEndian.Uint16(h[10:]) }

func u64(b []byte) uint64 { return binary.NativeEndian.Uint64(b) }
func u32(b []byte) int64  { return int64(binary.NativeEndian.Uint32(b)) }
