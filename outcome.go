package sluice

import (
	"errors"
	"fmt"
	"time"
)

// Skip is the outcome of a handler that decided to do nothing. The record is
// settled, and counted under reason, a short constant phrase.
func Skip(reason string) error { return &SkipError{Reason: reason} }

// SkipError is the error of [Skip].
type SkipError struct{ Reason string }

func (e *SkipError) Error() string { return "skipped: " + e.Reason }

// IsSkip reports whether err is a [Skip], or only wraps one. A Skip joined with
// another error, or inside Permanent, RetryAfter, Overloaded or Remaining, settles
// nothing.
func IsSkip(err error) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		switch err.(type) { // the outermost outcome counts
		case *SkipError:
			return true
		case *permanentError, *RetryError, *overloadedError, *Remaining:
			return false
		}
	}
	return false
}

// RetryAfter asks for another call after d or later. err is the reason.
func RetryAfter(d time.Duration, err error) error { return &RetryError{After: d, Err: err} }

// RetryError is the error of [RetryAfter].
type RetryError struct {
	After time.Duration
	Err   error
}

func (e *RetryError) Error() string { return fmt.Sprintf("retry after %v: %v", e.After, e.Err) }
func (e *RetryError) Unwrap() error { return e.Err }

// Overloaded says that a service refused a call for load: an HTTP 429, a throttled
// write, a full queue. Sluice retries the record as after a plain error. The flow
// also lowers the number of concurrent calls of the route until fewer are refused.
// Use Overloaded only for explicit refusals: a timeout or a 500 is a plain error.
// Inside [RetryAfter] it also sets the delay. Overloaded(nil) is nil.
func Overloaded(err error) error {
	if err == nil {
		return nil
	}
	return &overloadedError{Err: err}
}

// overloadedError is the error of [Overloaded].
type overloadedError struct{ Err error }

func (e *overloadedError) Error() string { return e.Err.Error() }
func (e *overloadedError) Unwrap() error { return e.Err }

// IsOverloaded reports whether err is, or wraps, an Overloaded.
func IsOverloaded(err error) bool {
	var o *overloadedError
	return errors.As(err, &o)
}

// Permanent says that a retry cannot help. The record is parked as a dead letter
// without a retry. Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{Err: err}
}

// permanentError is the error of [Permanent].
type permanentError struct{ Err error }

func (e *permanentError) Error() string { return e.Err.Error() }
func (e *permanentError) Unwrap() error { return e.Err }

// IsPermanent reports whether err is, or wraps, a Permanent.
func IsPermanent(err error) bool {
	var p *permanentError
	return errors.As(err, &p)
}

// Remaining says that part of the work is durable. Later calls for the record go
// to Rest only; a nil Rest is the same handler. Err says what failed. After is the
// least delay; 0 is the route's own backoff.
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
// goroutine. It unwraps to nothing: a panic value is never an outcome.
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
