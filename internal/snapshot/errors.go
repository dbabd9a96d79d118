package snapshot

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sluicehq/sluice/internal/awserror"
	"github.com/sluicehq/sluice/internal/backoff"
)

// TableError says why a table could not be read.
type TableError struct {
	Table  string
	Action string // call to the service, such as dynamodb:Scan; may be empty
	Do     string // what to do about it
	Err    error
}

func (e *TableError) Error() string {
	msg := fmt.Sprintf("snapshot: table %q: ", e.Table)
	if e.Action != "" {
		msg += e.Action + ": "
	}
	msg += e.Err.Error()
	if e.Do != "" {
		msg = strings.TrimSuffix(msg, ".") + ". " + e.Do
	}
	return msg
}

func (e *TableError) Unwrap() error { return e.Err }

// ErrNoStream is wrapped when the application has stored no position of the
// table's stream, so that changes during the backfill would be lost.
var ErrNoStream = errors.New("no position of the table's stream is stored")

// ErrRecreated is wrapped when the table was deleted and created again while it
// was read.
var ErrRecreated = errors.New("the table is another than the one whose reading began")

// kind is the reaction that an error calls for.
type kind uint8

const (
	transient kind = iota // try again, backing off
	throttled             // try again, and less often
	refused               // credentials that are not accepted now: try again slowly
	fatal                 // no table, no permission, or a request that can never be: do not try again
)

// errDamaged is an answer that could not be decoded.
type errDamaged struct{ err error }

func (e *errDamaged) Error() string { return e.err.Error() }
func (e *errDamaged) Unwrap() error { return e.err }

// classify sorts an error of the service. What it does not know is transient.
func classify(err error) kind {
	switch awserror.Of(err) {
	case awserror.Throttled:
		return throttled
	case awserror.Missing, awserror.Denied, awserror.Invalid:
		return fatal
	case awserror.NotAccepted:
		return refused
	}
	return transient
}

// explain says which table an error is about, and what to do.
func (c *client) explain(action string, err error) error {
	e := &TableError{Table: c.name, Action: action, Err: err}
	switch awserror.Of(err) {
	case awserror.Missing:
		e.Do = "Is it spelt as in the service, and are Region and account the right ones" + c.where + "?"
	case awserror.Denied:
		e.Do = "Allow the action on the table, or use other credentials"
	case awserror.NotAccepted:
		e.Do = "The credentials are not accepted: check AWS_PROFILE, AWS_ACCESS_KEY_ID or the role"
	case awserror.NoCredentials:
		e.Do = "Give credentials by AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or the role of the machine; DynamoDB Local takes any"
	case awserror.Lost:
		if !errors.Is(err, context.Canceled) {
			e.Do = "Is the service running and reachable from here" + c.where + "?"
		}
	}
	return e
}

const (
	firstRetry = 100 * time.Millisecond // doubled each time
	lastRetry  = 30 * time.Second
	startRetry = 500 * time.Millisecond
)

// retryIn returns the delay before the next try, after so many failures of a call.
func retryIn(k kind, failures int) time.Duration {
	if k == refused {
		return backoff.Half(lastRetry, lastRetry, 1)
	}
	return backoff.Full(firstRetry, lastRetry, failures)
}
