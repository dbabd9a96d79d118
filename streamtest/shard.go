package streamtest

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
)

// shard is a part of a stream: the changes of the items whose hash is in its
// range, while it is open.
type shard struct {
	stream     *stream
	nth        int // number in the stream, by creation
	id, parent string
	created    time.Time
	closed     time.Time // zero while it is open
	low, high  uint64    // of the hashes of its items, both included
	start, end sluice.Sequence

	records []record // every record it ever held
	trimmed int      // number of oldest records that are trimmed
	bare    bool     // it was empty when it was closed
	dropped bool     // by Trim
	buried  bool     // trimmed completely

	hidden int // number of listings that still omit it
	reads  bucket
}

// ShardInfo describes a shard.
type ShardInfo struct {
	ID      string
	Parent  string // even if the parent was trimmed
	Open    bool
	Created time.Time
	// First and Last are the sequence numbers of its oldest record that is not
	// trimmed and of its newest; "" if it has none.
	First, Last sluice.Sequence
}

func (sh *shard) info() ShardInfo {
	i := ShardInfo{ID: sh.id, Parent: sh.parent, Open: sh.open(), Created: sh.created}
	if kept := sh.records[sh.trimmed:]; len(kept) > 0 {
		i.First, i.Last = kept[0].seq, kept[len(kept)-1].seq
	}
	return i
}

// grow adds a shard.
func (st *stream) grow(now time.Time, parent string, low, high uint64) *shard {
	sh := &shard{stream: st, nth: len(st.shards), parent: parent, created: now, low: low, high: high, start: st.next()}
	suffix := uint32(hash(fmt.Appendf(nil, "%s %d %d", st.table, st.generation, sh.nth)))
	told := now.UnixMilli()
	if st.opaque {
		told = 0
	}
	sh.id = fmt.Sprintf("shardId-%020d-%08x", told, suffix)
	st.shards = append(st.shards, sh)
	st.byID[sh.id] = sh
	i, _ := slices.BinarySearchFunc(st.listed, sh.id, func(sh *shard, id string) int {
		if listedBefore(sh.id, id) {
			return -1
		}
		return 1
	})
	st.listed = slices.Insert(st.listed, i, sh)
	return sh
}

// listedBefore is the order of DescribeStream: by the part of the ids after the
// time, so that children often come before their parents.
func listedBefore(a, b string) bool {
	return cmp.Or(strings.Compare(a[len(a)-8:], b[len(b)-8:]), strings.Compare(a, b)) < 0
}

func (sh *shard) open() bool { return sh.closed.IsZero() }

func (sh *shard) close(now time.Time, retention time.Duration) {
	if !sh.open() {
		return
	}
	sh.expire(now, retention)
	sh.bare = sh.trimmed == len(sh.records)
	sh.closed, sh.end = now, sh.start
	if n := len(sh.records); n > 0 {
		sh.end = sh.records[n-1].seq
	}
}

// Split closes a shard and gives it two children, each with half of its items,
// like DynamoDB when a partition grows.
func (t *Table) Split(shardID string) (left, right string) {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	sh := t.openShard("Split", shardID)
	if sh.low == sh.high {
		t.s.fatalf("Split: table %s: shard %s cannot be split any further", t.name, shardID)
	}
	children := t.replace(sh, sh.low+(sh.high-sh.low)/2, sh.high)
	return children[0].id, children[1].id
}

// Roll closes a shard and gives it one child, like DynamoDB every few hours.
func (t *Table) Roll(shardID string) (child string) {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	sh := t.openShard("Roll", shardID)
	return t.replace(sh, sh.high)[0].id
}

// replace closes the shard and makes children that divide its range of hashes;
// each ends at one of the highs.
func (t *Table) replace(sh *shard, highs ...uint64) []*shard {
	st, low, now := sh.stream, sh.low, t.s.now()
	sh.close(now, t.s.limits.Retention)
	var children []*shard
	for _, high := range highs {
		children = append(children, st.grow(now, sh.id, low, high))
		low = high + 1
	}
	i := slices.Index(st.open, sh)
	st.open = slices.Replace(st.open, i, i+1, children...)
	return children
}

func (t *Table) openShard(what, id string) *shard {
	sh := t.mustStream(what).byID[id]
	if sh == nil || !sh.open() {
		t.s.fatalf("%s: table %s has no open shard %q", what, t.name, id)
	}
	return sh
}

// Hide omits a shard from the next n DescribeStream responses that would list it.
func (t *Table) Hide(shardID string, n int) {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	sh := t.anyShard("Hide", shardID)
	if n < 0 {
		t.s.fatalf("Hide: table %s: %d listings", t.name, n)
	}
	sh.hidden = n
}

// anyShard returns a shard of the latest stream, open or closed.
func (t *Table) anyShard(what, id string) *shard {
	if t.stream == nil {
		t.s.fatalf("%s: table %s has no stream", what, t.name)
	}
	sh := t.stream.byID[id]
	if sh == nil || sh.gone(t.s.now(), t.s.limits.Retention) {
		t.s.fatalf("%s: table %s has no shard %q", what, t.name, id)
	}
	return sh
}

// list returns the shards that are not trimmed, in the order of DescribeStream.
// The slice is the caller's.
func (st *stream) list(now time.Time, retention time.Duration) []*shard {
	st.listed = slices.DeleteFunc(st.listed, func(sh *shard) bool {
		sh.buried = sh.gone(now, retention)
		return sh.buried
	})
	return slices.Clone(st.listed)
}

// seek returns the ordinal of the first record whose sequence number is at least
// seq, or greater than seq with after.
func (sh *shard) seek(seq sluice.Sequence, after bool) (int, *apiError) {
	last := sh.start
	if n := len(sh.records); n > 0 {
		last = sh.records[n-1].seq
	}
	switch {
	case !seq.Valid() || len(seq) < 21:
		return 0, invalid("Invalid SequenceNumber %q: 21 to 40 digits are needed", seq)
	case seq.Compare(sh.start) < 0 || seq.Compare(last) > 0:
		return 0, invalid("Invalid SequenceNumber for the shard: %s in %s", seq, sh.id)
	case sh.trimmed > 0 && seq.Compare(sh.records[sh.trimmed-1].seq) <= 0:
		return 0, trimmedAccess(sh)
	}
	return sort.Search(len(sh.records), func(i int) bool {
		c := sh.records[i].seq.Compare(seq)
		return c > 0 || c == 0 && !after
	}), nil
}
