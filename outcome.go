package sluice

import (
	"errors"
	"fmt"
	"time"
)

// Skip returns the outcome of a handler that decided to do nothing: the record
// is settled and counted apart under reason, a short constant phrase.
func Skip(reason string) error { return &SkipError{Reason: reason} }

// SkipError is what [Skip] returns.
type SkipError struct{ Reason string }

func (e *SkipError) Error() string { return "skipped: " + e.Reason }

// IsSkip reports whether err is a [Skip], or wraps one and says nothing else
// about the record: joined with another error, or inside a Permanent, RetryAfter,
// Overloaded or Remaining, a Skip settles nothing.
func IsSkip(err error) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		switch err.(type) { // the outermost outcome is what counts
		case *SkipError:
			return true
		case *permanentError, *RetryError, *overloadedError, *Remaining:
			return false
		}
	}
	return false
}

// RetryAfter asks for another call not before d has passed. err says why.
func RetryAfter(d time.Duration, err error) error { return &RetryError{After: d, Err: err} }

// RetryError is what [RetryAfter] returns.
type RetryError struct {
	After time.Duration
	Err   error
}

func (e *RetryError) Error() string { return fmt.Sprintf("retry after %v: %v", e.After, e.Err) }
func (e *RetryError) Unwrap() error { return e.Err }

// Overloaded says that what the handler called refused err for load: an HTTP
// 429, a throttled write, a full queue. The record is tried again, as after a
// plain error, and the flow lowers how many calls of the route run at a time
// until fewer are refused. Only a refusal that says so itself is overload: a
// time-out or a 500 is a plain error. Wrapped in [RetryAfter] it also says when
// to come back. Overloaded(nil) is nil.
func Overloaded(err error) error {
	if err == nil {
		return nil
	}
	return &overloadedError{Err: err}
}

// overloadedError is what [Overloaded] returns.
type overloadedError struct{ Err error }

func (e *overloadedError) Error() string { return e.Err.Error() }
func (e *overloadedError) Unwrap() error { return e.Err }

// IsOverloaded reports whether err, or an error that it wraps, is Overloaded.
func IsOverloaded(err error) bool {
	var o *overloadedError
	return errors.As(err, &o)
}

// Permanent says that err will not go away by itself: the record is never
// tried again, but parked as a dead letter. Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{Err: err}
}

// permanentError is what [Permanent] returns.
type permanentError struct{ Err error }

func (e *permanentError) Error() string { return e.Err.Error() }
func (e *permanentError) Unwrap() error { return e.Err }

// IsPermanent reports whether err, or an error that it wraps, is Permanent.
func IsPermanent(err error) bool {
	var p *permanentError
	return errors.As(err, &p)
}

// Remaining says that a part of the work is done and durable, and that only
// Rest is to be called for the record from now on; a nil Rest is the same
// handler again. Err says what failed; After is the least delay, 0 for the
// route's own backoff.
type Remaining struct {
	Rest  Handler
	After time.Duration
	Err   error
}

func (e *Remaining) Error() string {
	if e.Err == nil {
		return "work remains"
	}
	return e.Err.Error()
}
func (e *Remaining) Unwrap() error { return e.Err }

// PanicError is the error of a record whose handler panicked or ended its
// goroutine. It unwraps to nothing: what was thrown is never taken for an
// outcome.
type PanicError struct {
	Value any // nil when the goroutine was ended by runtime.Goexit
	Stack []byte
}

func (e *PanicError) Error() string {
	if e.Value == nil {
		return fmt.Sprintf("handler ended its goroutine (runtime.Goexit)\n\n%s", e.Stack)
	}
	return fmt.Sprintf("panic: %v\n\n%s", e.Value, e.Stack)
}
