package boltstate

import (
	"context"
	"fmt"
	"io"

	"go.etcd.io/bbolt"
)

// letterCheck checks the pages of dead letters after Open, because that takes long
// with many letters. No letter changes before it has succeeded, so the pages stay
// as they are, and it needs no transaction. Until then readers check the pages
// that they read.
type letterCheck struct {
	*checker
	done chan struct{} // closed at the end
	err  error         // result; valid once done is closed
}

// The parts of a check. Tests count and delay the reads of each.
const (
	positionsPart = "positions"
	lettersPart   = "letters"
)

func (o Options) reader(part string, file io.ReaderAt) io.ReaderAt {
	if o.through == nil {
		return file
	}
	return o.through(part, file)
}

// checkLetters starts the rest of check c, for the letters in file.
func checkLetters(c *checker, o Options, file io.ReaderAt) *letterCheck {
	l := &letterCheck{checker: c, done: make(chan struct{})}
	if c == nil || len(c.later) == 0 {
		close(l.done)
		return l
	}
	l.file = file
	work := *c
	work.file = o.reader(lettersPart, file)
	go func() {
		defer close(l.done)
		if err := work.letters(); err != nil {
			l.err = fmt.Errorf("%w: %w", errDamaged, err)
		}
	}()
	return l
}

// end stops the check.
func (l *letterCheck) end() {
	if l.checker != nil {
		l.stop.Store(true)
	}
	<-l.done
}

// wait waits for the check and returns its result.
func (l *letterCheck) wait(ctx context.Context) error {
	select {
	case <-l.done:
		return l.err
	default:
	}
	select {
	case <-l.done:
		return l.err
	case <-ctx.Done():
		return fmt.Errorf("wait until the dead letters in the file are checked: %w", ctx.Err())
	}
}

// look checks the pages that are read to list n keys of b after from.
func (l *letterCheck) look(b *bbolt.Bucket, from string, n int) error {
	select {
	case <-l.done:
		return l.err
	default:
	}
	if b.RootPage() == 0 { // in a page that Open has checked
		return nil
	}
	if err := l.along(uint64(b.RootPage()), []byte(from), n); err != nil {
		return fmt.Errorf("%w: %w", errDamaged, err)
	}
	return nil
}

// DamagedLetters returns an error if the file is damaged where its dead letters
// are: they can then be neither read nor stored. It is nil while no damage is
// known. Open checks positions, and starts a check of letters.
func (s *Store) DamagedLetters() error {
	select {
	case <-s.letters.done:
		if s.letters.err != nil {
			return s.explain("use dead letters", s.letters.err)
		}
	default:
	}
	return nil
}
