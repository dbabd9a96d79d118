package deadletter

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice"
)

// Handled notes that a route has succeeded with rec or skipped it. It deletes the
// letters of rec for this route and for all routes. So no redrive runs a change
// that was handled after its parking. That happens when a process ends between
// Park and storing the position, and reads the record again. Call Handled for each
// record before its position is stored. Without a letter for rec it answers from
// memory, or asks the store for two ids, for at most 10 s.
func (b *Box) Handled(ctx context.Context, rec *sluice.Record, route string) error {
	if b.until.known() && !b.until.concerns(rec) { // without ctx, because every record takes this path
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, handledTimeout)
	defer cancel()
	if !b.until.known() {
		if err := b.readUntil(ctx); err != nil || !b.until.concerns(rec) {
			return err
		}
	}
	for _, route := range []string{route, ""} {
		id := b.ID(rec, route)
		if _, ok, err := b.letters.GetLetter(ctx, b.app, id); !ok || err != nil {
			if err != nil {
				return err
			}
			continue
		}
		if err := b.Delete(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// Adopt notes that another process may have parked records of a shard that this one
// now reads. The next Handled asks the store for letters.
func (b *Box) Adopt() { b.until.adopted.Add(1) }

// until bounds the creation times of records with a letter.
type until struct {
	adopted atomic.Int64 // calls of Adopt
	read    atomic.Int64 // 1 + adopted when the store was read last
	at      atomic.Int64 // Unix nanoseconds
}

const (
	handledTimeout = 10 * time.Second
	maxSkew        = time.Hour // most by which this clock may lag behind the clock that dates records
)

// known reports whether the store was read since the last Adopt.
func (u *until) known() bool { return u.read.Load() > u.adopted.Load() }

// concerns reports whether rec may have a letter.
func (u *until) concerns(rec *sluice.Record) bool {
	at := u.at.Load()
	return at != math.MinInt64 && (rec.Created.IsZero() || rec.Created.UnixNano() <= at)
}

// readUntil looks for letters of an earlier process, or of another.
func (b *Box) readUntil(ctx context.Context) error {
	adopted := b.until.adopted.Load()
	letters, err := b.letters.ListLetters(ctx, b.app, "", 1)
	if err != nil {
		return err
	}
	if len(letters) > 0 {
		b.until.raise(time.Now().Add(maxSkew))
	}
	b.until.read.Store(adopted + 1)
	return nil
}

// raise notes that a record of this creation time has a letter; zero is unknown.
func (u *until) raise(created time.Time) {
	at := int64(math.MinInt64 + 1)
	if !created.IsZero() {
		at = created.UnixNano()
	}
	for was := u.at.Load(); was < at && !u.at.CompareAndSwap(was, at); was = u.at.Load() {
	}
}
