package deadletter

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice"
)

// Handled says that a route has succeeded with rec or skipped it. It deletes the
// letters in which rec was parked for this route, or for all routes. So no
// redrive runs a change that was handled since: a process that ends between
// Park and the storing of its position reads the record again. Call it before
// the record's position is stored, for each record: without a letter for rec it
// answers from memory, or asks the store for two ids, for 10 s at most.
func (b *Box) Handled(ctx context.Context, rec *sluice.Record, route string) error {
	if b.until.read.Load() && !b.until.concerns(rec) { // without a context: this is on the way of every record
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, handledTimeout)
	defer cancel()
	if !b.until.read.Load() {
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

// until bounds the records that have a letter: none that was created later has.
type until struct {
	read atomic.Bool  // the store was asked
	at   atomic.Int64 // Unix nanoseconds
}

const (
	handledTimeout = 10 * time.Second
	maxSkew        = time.Hour // by which our clock may be behind the one that dates records
)

// concerns reports whether there may be a letter of rec.
func (u *until) concerns(rec *sluice.Record) bool {
	at := u.at.Load()
	return at != math.MinInt64 && (rec.Created.IsZero() || rec.Created.UnixNano() <= at)
}

// readUntil asks whether there are letters of an earlier process.
func (b *Box) readUntil(ctx context.Context) error {
	letters, err := b.letters.ListLetters(ctx, b.app, "", 1)
	if err != nil {
		return err
	}
	if len(letters) > 0 {
		b.until.raise(time.Now().Add(maxSkew))
	}
	b.until.read.Store(true)
	return nil
}

// raise says that a record of this time has a letter; the zero time is not known.
func (u *until) raise(created time.Time) {
	at := int64(math.MinInt64 + 1)
	if !created.IsZero() {
		at = created.UnixNano()
	}
	for was := u.at.Load(); was < at && !u.at.CompareAndSwap(was, at); was = u.at.Load() {
	}
}
