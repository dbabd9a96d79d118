package streamtest

import (
	"time"

	"github.com/sluicehq/sluice"
)

// expire trims the records that are older than the retention.
func (sh *shard) expire(now time.Time, retention time.Duration) {
	n := sh.trimmed
	for n < len(sh.records) && now.Sub(sh.records[n].at) >= retention {
		n++
	}
	sh.trim(n)
}

// trim deletes the records before ordinal n.
func (sh *shard) trim(n int) {
	for ; sh.trimmed < n; sh.trimmed++ {
		sh.records[sh.trimmed].json = nil
	}
}

// gone reports whether the shard is closed and empty. A shard that was empty
// before it closed stays for the retention: its readers must learn of its end.
func (sh *shard) gone(now time.Time, retention time.Duration) bool {
	sh.expire(now, retention)
	switch {
	case sh.open() || sh.trimmed < len(sh.records):
		return false
	case sh.bare:
		return sh.dropped || now.Sub(sh.closed) >= retention
	}
	return true
}

// Trim trims the oldest n records of a shard before they are 24 hours old; a
// negative n is all of them. A closed, empty shard is no longer listed, and
// reading it returns ResourceNotFoundException. A poller ignores a trim of a shard
// whose id shows an age under 23 hours: let time pass, or set
// [TableOptions.OpaqueShardIDs].
func (t *Table) Trim(shardID string, n int) {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	sh := t.anyShard("Trim", shardID)
	left := len(sh.records) - sh.trimmed
	if n < 0 {
		sh.dropped = !sh.open()
		n = left
	}
	if n > left {
		t.s.fatalf("Trim: table %s: shard %s holds %d records, not %d", t.name, shardID, left, n)
	}
	sh.trim(sh.trimmed + n)
}

// TrimBefore trims all records of the latest stream that are older than seq, like
// Trim.
func (t *Table) TrimBefore(seq sluice.Sequence) {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	if t.stream == nil {
		t.s.fatalf("TrimBefore: table %s has no stream", t.name)
	}
	for _, sh := range t.stream.shards {
		n := sh.trimmed
		for n < len(sh.records) && sh.records[n].seq.Compare(seq) < 0 {
			n++
		}
		sh.trim(n)
	}
}
