package flow

import (
	"errors"
	"fmt"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/outcomes"
)

var (
	// errClosed is the error of Submit on a closed flow.
	errClosed = errors.New("flow: closed")
	// errDeadline is the error of a Stop flow that ended before its deadline.
	errDeadline = errors.New("flow: stopped ahead of the deadline")
	// errHeld is the error of a record parked behind an earlier change of its
	// item.
	errHeld = errors.New("flow: an earlier change of the item is parked")

	// errPaused is the cause of a Close that left records of paused routes.
	errPaused = errors.New("flow: a route is paused")

	// errHandedOver is the cause of a Close that left records to a new Group.
	errHandedOver = errors.New("flow: the routes are handed over")

	errDrained = errors.New("flow: time to drain is over")
	errNoCause = errors.New("flow: sluice.Remaining without an error")
)

// RecordError names the record that stopped or holds a flow.
type RecordError struct {
	Ordinal  uint64 // as Submit counts
	Route    string // empty when the record could not be decoded or matched
	Table    string
	ShardID  string
	Sequence sluice.Sequence
	Err      error
}

func (e *RecordError) Error() string {
	where := fmt.Sprintf("record %d (table %q, sequence %s)", e.Ordinal, e.Table, e.Sequence)
	if e.ShardID != "" {
		where = fmt.Sprintf("record %d (table %q, shard %s, sequence %s)", e.Ordinal, e.Table, e.ShardID, e.Sequence)
	}
	if e.Route == "" {
		return fmt.Sprintf("flow: %s: %v", where, e.Err)
	}
	return fmt.Sprintf("flow: %s, route %q: %v", where, e.Route, e.Err)
}

func (e *RecordError) Unwrap() error { return e.Err }

func recordError(t *task) *RecordError {
	rec := t.e.rec
	return &RecordError{
		Ordinal:  t.e.ord,
		Route:    t.failure.Route,
		Table:    rec.Table,
		ShardID:  rec.ShardID,
		Sequence: rec.Sequence,
		Err:      t.failure.Last,
	}
}

// verdict is the meaning of a handler's error.
type verdict struct {
	err   error
	kind  kind
	after time.Duration  // the least delay; 0 is the route's own backoff
	rest  sluice.Handler // replaces the handler
}

// judge interprets err.
func judge(err error) verdict {
	v := verdict{err: err, kind: failed}
	if sluice.IsSkip(err) {
		v.kind = skipped
		return v
	}
	if r, ok := errors.AsType[*sluice.Remaining](err); ok {
		v.rest, v.after = r.Rest, r.After
		if r.Err == nil {
			v.err = fmt.Errorf("%w: %w", errNoCause, err) // keeps the requested outcome
		}
	}
	if r, ok := errors.AsType[*outcomes.Retry](err); ok {
		v.after = max(v.after, r.After)
	}
	switch {
	case sluice.IsPermanent(err):
		v.kind = permanent
	case outcomes.IsOverloaded(err):
		v.kind = overloaded
	case v.after > 0:
		v.kind = wish
	}
	return v
}

func unknownRoute(r *sluice.Route) error {
	return fmt.Errorf("flow: Match returned route %q, which is not at index %d of the Matcher's Routes", r.Name, r.Index)
}
