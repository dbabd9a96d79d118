package sluice

import (
	"errors"
	"time"

	"github.com/sluicehq/sluice/internal/outcomes"
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
		case *permanentError, *outcomes.Retry, *outcomes.Overloaded, *Remaining:
			return false
		}
	}
	return false
}

// RetryAfter asks for another call after d or later. err is the reason.
func RetryAfter(d time.Duration, err error) error { return &outcomes.Retry{After: d, Err: err} }

// Overloaded says that a service refused a call for load: an HTTP 429, a throttled
// write, a full queue. Sluice retries the record as after a plain error. The flow
// also lowers the number of concurrent calls of the route until fewer are refused.
// Use Overloaded only for explicit refusals: a timeout or a 500 is a plain error.
// Inside [RetryAfter] it also sets the delay. Overloaded(nil) is nil.
func Overloaded(err error) error {
	if err == nil {
		return nil
	}
	return &outcomes.Overloaded{Err: err}
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
	return errors.As(err, new(*permanentError))
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
