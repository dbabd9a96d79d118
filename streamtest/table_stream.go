package streamtest

import (
	"cmp"
	"fmt"
	"math/bits"
	"sort"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/views"
	"github.com/sluicehq/sluice/item"
)

// stream is one generation of a table's stream.
type stream struct {
	table      string
	generation int // number among the table's streams, from 1
	arn, label string
	view       item.View
	keySchema  []keyElement
	created    time.Time
	opaque     bool      // see TableOptions.OpaqueShardIDs
	disabled   time.Time // zero while it is enabled

	shards []*shard // by creation
	byID   map[string]*shard
	open   []*shard // at the last write, by their ranges of hashes, which cover every hash
	listed []*shard // not trimmed, in the order of DescribeStream

	numbers   int // sequence numbers assigned
	describes bucket
}

func (t *Table) newStream(view item.View, shards int) {
	now := t.s.now()
	t.s.generations[t.name]++
	st := &stream{table: t.name, generation: t.s.generations[t.name], view: view, keySchema: t.keySchema(), created: now, opaque: t.opaque, byID: make(map[string]*shard)}
	for at := now.UTC(); ; at = at.Add(time.Millisecond) {
		st.label = at.Format("2006-01-02T15:04:05.000")
		st.arn = t.arn() + "/stream/" + st.label
		if t.s.byARN[st.arn] == nil {
			break
		}
	}
	width := ^uint64(0) / uint64(shards)
	for i := range shards {
		low := uint64(i) * (width + 1)
		high := low + width
		if i == shards-1 {
			high = ^uint64(0)
		}
		st.open = append(st.open, st.grow(now, "", low, high))
	}
	t.s.streams = append(t.s.streams, st)
	t.s.byARN[st.arn] = st
	t.stream = st
}

func (st *stream) enabled() bool { return st.disabled.IsZero() }

// gone reports whether the stream was disabled longer ago than the retention.
func (st *stream) gone(now time.Time, retention time.Duration) bool {
	return !st.enabled() && now.Sub(st.disabled) >= retention
}

func (st *stream) close(now time.Time, retention time.Duration) {
	st.disabled = now
	for _, sh := range st.open {
		sh.close(now, retention)
	}
}

// next assigns a sequence number larger than all earlier ones of the stream. It
// has the width of AWS's numbers and grows from 27 to 28 digits after a few
// records, so that comparing strings fails.
func (st *stream) next() sluice.Sequence {
	n := st.numbers
	st.numbers++
	return sluice.Sequence(fmt.Sprintf("%d%020d", 9_999_998+n/5, 4_285_332_514_440_945+7*n))
}

// StreamARN returns the ARN of the table's latest stream, or "".
func (t *Table) StreamARN() string {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	if t.stream == nil {
		return ""
	}
	return t.stream.arn
}

// DisableStream disables the table's stream: its shards close, and it stays
// readable for the retention.
func (t *Table) DisableStream() {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	t.mustStream("DisableStream").close(t.s.now(), t.s.limits.Retention)
}

// EnableStream gives the table a new stream, with one shard and its own ARN, and
// returns that ARN. An empty view is NEW_AND_OLD_IMAGES.
func (t *Table) EnableStream(view string) (arn string) {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	v, err := views.Parse(cmp.Or(view, item.BothImages.String()))
	switch {
	case err != nil:
		t.s.fatalf("EnableStream: table %s: %v", t.name, err)
	case t.deleted:
		t.s.fatalf("EnableStream: table %s was deleted", t.name)
	case t.stream != nil && t.stream.enabled():
		t.s.fatalf("EnableStream: table %s has a stream already", t.name)
	}
	t.newStream(v, 1)
	return t.stream.arn
}

// mustStream returns the stream, which must be enabled.
func (t *Table) mustStream(what string) *stream {
	if t.stream == nil || !t.stream.enabled() {
		t.s.fatalf("%s: table %s has no stream that is enabled", what, t.name)
	}
	return t.stream
}

// record puts the record of a change into the item's shard.
func (t *Table) record(old, image sluice.Item, ttl bool) sluice.Sequence {
	st := t.stream
	if st == nil || !st.enabled() {
		return ""
	}
	either := image
	if !image.Exists() {
		either = old
	}
	v, _ := attribute(either, t.keys[0])
	sh := st.shardFor(hash(appendValue(nil, v)))
	r := record{seq: st.next(), at: t.s.now(), keys: t.keysOf(either)}
	r.encode(st, old, image, ttl)
	sh.records = append(sh.records, r)
	t.log = append(t.log, logged{sh, len(sh.records) - 1})
	return r.seq
}

// shardFor returns the open shard whose range contains h.
func (st *stream) shardFor(h uint64) *shard {
	return st.open[sort.Search(len(st.open), func(i int) bool { return h <= st.open[i].high })]
}

// hash is FNV-1a with its bits mixed, the same in every process.
func hash(b []byte) uint64 {
	h := uint64(14695981039346656037)
	for _, c := range b {
		h = (h ^ uint64(c)) * 1099511628211
	}
	hi, lo := bits.Mul64(h^h>>32, 0x9e3779b97f4a7c15)
	return hi ^ lo
}
