package boltstate

import (
	"context"
	"fmt"
	"io"

	"go.etcd.io/bbolt"
)

// letterCheck looks at the pages of dead letters behind Open, which takes long
// where there are many. Nobody changes a letter before it has ended well, so
// that the pages stay as they are, and it needs no transaction. Until then
// readers look for themselves at the pages that they read.
type letterCheck struct {
	*checker
	done chan struct{} // closed when it has ended
	err  error         // what it has found; good when done is closed
}

// The parts of a check, of which tests count and delay the reads.
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

// checkLetters begins the check that c has left, of letters in file.
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

// end gives the check up.
func (l *letterCheck) end() {
	if l.checker != nil {
		l.stop.Store(true)
	}
	<-l.done
}

// wait returns what the check has found, when it has ended.
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

// look looks at what is read to list n keys of b behind from.
func (l *letterCheck) look(b *bbolt.Bucket, from string, n int) error {
	select {
	case <-l.done:
		return l.err
	default:
	}
	if b.RootPage() == 0 { // within a page that Open has looked at
		return nil
	}
	if err := l.along(uint64(b.RootPage()), []byte(from), n); err != nil {
		return fmt.Errorf("%w: %w", errDamaged, err)
	}
	return nil
}

// DamagedLetters returns why dead letters can be neither read nor stored: the
// file is damaged where they are. It is nil as long as no damage is known: Open
// looks at positions, and what it starts looks at letters.
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
