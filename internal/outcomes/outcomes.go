// Package outcomes has the errors of handlers that only Sluice itself looks into.
// Handlers make them by the functions of package sluice.
package outcomes

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// Retry is the error of sluice.RetryAfter.
type Retry struct {
	After time.Duration
	Err   error
}

func (e *Retry) Error() string { return fmt.Sprintf("retry after %v: %v", e.After, e.Err) }
func (e *Retry) Unwrap() error { return e.Err }

// Overloaded is the error of sluice.Overloaded.
type Overloaded struct{ Err error }

func (e *Overloaded) Error() string { return e.Err.Error() }
func (e *Overloaded) Unwrap() error { return e.Err }

// IsOverloaded reports whether err is, or wraps, an Overloaded.
func IsOverloaded(err error) bool {
	return errors.As(err, new(*Overloaded))
}

// Panic is the error of a record whose handler panicked or ended its goroutine. It
// unwraps to nothing: a panic value is never an outcome.
type Panic struct {
	Value any // nil when the goroutine was ended by runtime.Goexit
	Stack []byte
}

func (e *Panic) Error() string {
	if e.Value == nil {
		return fmt.Sprintf("handler ended its goroutine (runtime.Goexit)\n\n%s", e.Stack)
	}
	return fmt.Sprintf("panic: %v\n\n%s", e.Value, e.Stack)
}

// Go runs f on a goroutine of its own, and sends its error. A panic of f, or the end of
// its goroutine, is a [*Panic].
func Go(f func() error) <-chan error {
	result := make(chan error, 1)
	go func() {
		var err error
		returned := false
		defer func() {
			if !returned { // panic, or Goexit, which recover cannot see
				err = &Panic{Value: recover(), Stack: debug.Stack()}
			}
			result <- err
		}()
		err = f()
		returned = true
	}()
	return result
}
