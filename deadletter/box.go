package deadletter

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/state"
)

// Box keeps the dead letters of one application. A flow parks records in it. It
// knows which items it holds, even after a restart. All methods are safe for
// concurrent use. Several processes may share an application's letters if none holds
// items (ParkItem of flow.Options), and if each calls Adopt when it takes a shard over.
// A letter that one process deletes while another stores it anew may stay or go.
type Box struct {
	letters state.Letters
	app     string
	signer  signer // nil: only this program can write the letters
	held    held
	parked  parked
	shared  bool                                                                    // several processes have the store
	redrive chan struct{}                                                           // full while a redrive or purge runs
	claim   func(context.Context) (held context.Context, release func(), err error) // nil: no other process redrives

	// changing keeps the stored letters and the held items consistent. A put
	// takes one unit, so many run at a time. A delete takes all units, because
	// it must know what it deletes. Loading the held items takes all too. It is
	// not a mutex: the store is slow, and callers have contexts.
	changing *semaphore.Weighted
}

const everyPut = math.MaxInt64 // all of Box.changing

// signer is a store whose letters others may write.
type signer interface {
	Sign(letter []byte) []byte
	Verify(letter []byte) error
}

// NewBox returns a box over the letters of an application.
//
// A store whose letters others may write, such as a queue, has two more methods:
// Sign(letter []byte) []byte and Verify(letter []byte) error. The box then redrives
// a letter that Verify refuses only if [How.Unsigned] names it. It signs each
// letter that it stores, unless the letter replaces an unverified one. A wrapper of
// such a store must pass both methods on.
func NewBox(letters state.Letters, app string) *Box {
	b := &Box{letters: letters, app: app, redrive: make(chan struct{}, 1), changing: semaphore.NewWeighted(everyPut)}
	b.signer, _ = letters.(signer)
	b.parked.listing = make(chan struct{}, 1)
	_, b.shared = letters.(interface{ SilentAfter() time.Duration })
	return b
}

// Exclusive makes Redrive, RedriveAll and Purge call claim first, unless they only show
// what they would do. claim claims the dead letters for one of them at a time, of all
// processes that share them; held ends when the claim is lost, and release ends it. Call
// Exclusive before them.
func (b *Box) Exclusive(claim func(ctx context.Context) (held context.Context, release func(), err error)) {
	b.claim = claim
}

// Application returns the name of the letters' application.
func (b *Box) Application() string { return b.app }

// ErrNotFound is the error for an unknown id.
var ErrNotFound = errors.New("no such dead letter")

// Park stores the failure of rec. Flows call it.
func (b *Box) Park(ctx context.Context, rec *sluice.Record, f sluice.Failure) error {
	e := newEntry(rec, f, time.Now())
	return b.locked(ctx, 1, func() error { return b.putLocked(ctx, e, rec) })
}

// ID returns the id of the entry in which Park keeps rec for a route.
func (b *Box) ID(rec *sluice.Record, route string) string {
	e := Entry{Raw: rec.Raw(), EventID: rec.EventID, StreamARN: rec.StreamARN, Sequence: rec.Sequence}
	return id(&e, route)
}

// locked calls f, which takes n units of changing.
func (b *Box) locked(ctx context.Context, n int64, f func() error) error {
	if err := b.changing.Acquire(ctx, n); err != nil {
		return fmt.Errorf("wait for changes of the dead letters: %w", err)
	}
	defer b.changing.Release(n)
	return f()
}

// putLocked stores e, and then holds its item. A crash in between does no harm: the
// held items are read from the entries.
func (b *Box) putLocked(ctx context.Context, e Entry, rec *sluice.Record) error {
	b.parked.add(e.ID)
	l := labelOf(e.Route, rec)
	if err := b.store(ctx, &e, l); err != nil {
		return err
	}
	b.held.add(e.ID, l)
	return nil
}

func (b *Box) store(ctx context.Context, e *Entry, l label) error {
	data, err := e.Append(nil)
	if err != nil {
		return err
	}
	if b.signer != nil && e.Unverified == "" {
		data = b.signer.Sign(data)
	}
	if labels, ok := b.letters.(state.Labels); ok {
		err = labels.PutLabelled(ctx, b.app, e.ID, data, l.append(nil))
	} else {
		err = b.letters.PutLetter(ctx, b.app, e.ID, data)
	}
	if err != nil {
		return err
	}
	b.held.replaced(e.ID)
	return nil
}

// List returns up to limit entries whose id is greater than after, ordered by id.
// It skips unreadable entries and names them in the error. last is the last id
// that List looked at; it is empty at the end.
func (b *Box) List(ctx context.Context, after string, limit int) (entries []Entry, last string, err error) {
	letters, err := b.letters.ListLetters(ctx, b.app, after, limit)
	if err != nil {
		return nil, "", err
	}
	var errs []error
	for _, l := range letters {
		last = l.ID
		e, err := b.parse(l.Data)
		if err != nil {
			errs = append(errs, unreadable(l.ID, err))
			continue
		}
		entries = append(entries, e)
	}
	return entries, last, errors.Join(errs...)
}

// unreadable adds the letter's id to err, once.
func unreadable(id string, err error) error {
	if strings.Contains(err.Error(), id) {
		return err
	}
	return fmt.Errorf("dead letter %s: %w", id, err)
}

// Get returns one entry, or [ErrNotFound].
func (b *Box) Get(ctx context.Context, id string) (Entry, error) {
	data, ok, err := b.letters.GetLetter(ctx, b.app, id)
	if err != nil {
		return Entry{}, err
	}
	if !ok {
		return Entry{}, fmt.Errorf("%w: %s", ErrNotFound, id)
	}
	e, err := b.parse(data)
	if err != nil {
		err = unreadable(id, err)
	}
	return e, err
}

// parse decodes a letter, and verifies it if others can write letters.
func (b *Box) parse(data []byte) (Entry, error) {
	e, err := Parse(data)
	if err != nil || b.signer == nil {
		return e, err
	}
	if err := b.signer.Verify(data); err != nil {
		e.Unverified = err.Error()
	}
	return e, nil
}

// Delete deletes one entry and its record for good, and no longer holds its item.
// A missing entry is not an error.
func (b *Box) Delete(ctx context.Context, id string) error {
	return b.locked(ctx, everyPut, func() error { return b.deleteLocked(ctx, id) })
}

// deleteKnown deletes e, unless its record has failed again since e was read:
// nobody has seen that failure, which has the same id.
func (b *Box) deleteKnown(ctx context.Context, e *Entry) (deleted bool, err error) {
	err = b.locked(ctx, everyPut, func() error {
		is, err := b.stillLocked(ctx, e)
		if err == nil && is == asRead {
			err = b.deleteLocked(ctx, e.ID)
		}
		deleted = err == nil && is != failedAnew
		return err
	})
	return deleted, err
}

// replace replaces e by its successors. It does nothing if the entry was deleted
// since it was read, or if its record has failed again.
func (b *Box) replace(ctx context.Context, e *Entry, by []Entry) (was still, err error) {
	err = b.locked(ctx, everyPut, func() (err error) {
		if was, err = b.stillLocked(ctx, e); err != nil {
			return fmt.Errorf("and the dead letter stays as it was, since it cannot be read again: %w", err)
		}
		if was != asRead {
			return nil
		}
		// Store new entries first: a crash in between repeats work and loses
		// nothing.
		for _, one := range by {
			if err := b.putLocked(ctx, one, one.Record()); err != nil {
				return fmt.Errorf("and its new error cannot be stored: %w", err)
			}
		}
		if slices.ContainsFunc(by, func(one Entry) bool { return one.ID == e.ID }) {
			return nil
		}
		if err := b.deleteLocked(ctx, e.ID); err != nil {
			return fmt.Errorf("the dead letter cannot be deleted, and what has succeeded will run again with it: %w", err)
		}
		return nil
	})
	return was, err
}

// still is the state of an entry since it was read.
type still int

const (
	asRead still = iota
	deletedNow
	failedAnew
)

func (b *Box) stillLocked(ctx context.Context, e *Entry) (still, error) {
	now, err := b.Get(ctx, e.ID)
	switch {
	case errors.Is(err, ErrNotFound):
		return deletedNow, nil
	case err != nil:
		return asRead, err
	case !now.sameFailure(e):
		return failedAnew, nil
	}
	return asRead, nil
}

func (b *Box) deleteLocked(ctx context.Context, id string) error {
	if err := b.letters.DeleteLetter(ctx, b.app, id); err != nil {
		return err
	}
	b.held.remove(id)
	return nil
}

const page = 100 // entries read at a time

// Load reads which items are held. The first Holds does that otherwise. A program
// that parks whole items calls Load at its start, to learn of unreadable entries
// early.
func (b *Box) Load(ctx context.Context) error {
	if err := b.load(ctx); err != nil {
		return err
	}
	if all := b.held.unreadable(); len(all) > 0 {
		var errs []error
		for _, u := range all[:min(len(all), mostNamed)] {
			errs = append(errs, u.err)
		}
		if more := len(all) - len(errs); more > 0 {
			errs = append(errs, fmt.Errorf("and %d more", more))
		}
		return fmt.Errorf("which items are held cannot be told: %w", errors.Join(errs...))
	}
	return nil
}

// load is Load, but unreadable entries are not an error.
func (b *Box) load(ctx context.Context) error {
	if b.held.isLoaded() {
		return nil
	}
	return b.locked(ctx, everyPut, func() error {
		if err := b.loadLocked(ctx); err != nil {
			return fmt.Errorf("which items are held cannot be told: %w", err)
		}
		return nil
	})
}

func (b *Box) loadLocked(ctx context.Context) error {
	if b.held.isLoaded() {
		return nil
	}
	list, limit := b.letters.ListLetters, page
	labels, labelled := b.letters.(state.Labels)
	if labelled {
		if err := labels.LabelLetters(ctx, b.app, newLabel); err != nil {
			return err
		}
		list, limit = labels.ListLabels, 10*page
	}
	var damaged []unread
	for l, err := range b.each(ctx, list, limit) {
		if err == nil && labelled {
			if known, ok := parseLabel(l.Data); ok {
				b.held.add(l.ID, known)
				continue
			}
			l.Data, _, err = labels.GetLetter(ctx, b.app, l.ID)
		}
		if err != nil {
			return err
		}
		if e, err := Parse(l.Data); err != nil {
			damaged = append(damaged, newUnread(l, err))
		} else {
			b.held.add(e.ID, labelOf(e.Route, e.Record())) // a gap has no item
		}
	}
	b.held.setLoaded(damaged)
	return nil
}

// lister lists an application's letters with ids greater than after.
type lister func(ctx context.Context, app, after string, limit int) ([]state.Letter, error)

// each yields the letters that list lists, limit at a time. An error is the last.
func (b *Box) each(ctx context.Context, list lister, limit int) iter.Seq2[state.Letter, error] {
	return func(yield func(state.Letter, error) bool) {
		for after := ""; ; {
			letters, err := list(ctx, b.app, after, limit)
			if err != nil {
				yield(state.Letter{}, err)
			}
			if err != nil || len(letters) == 0 {
				return
			}
			for _, l := range letters {
				if after = l.ID; !yield(l, nil) {
					return
				}
			}
		}
	}
}

// newLabel labels a letter without a label. An unreadable letter gets none.
func newLabel(_ string, data []byte) []byte {
	e, err := Parse(data)
	if err != nil {
		return nil
	}
	l := labelOf(e.Route, e.Record())
	return l.append(nil)
}

// Holds reports whether an earlier change of rec's item is parked for route,
// or for all routes. A gap holds no item. It answers from memory.
func (b *Box) Holds(ctx context.Context, rec *sluice.Record, route string) (bool, error) {
	if err := b.Load(ctx); err != nil {
		return false, err
	}
	return b.held.holds(rec, route), nil
}
