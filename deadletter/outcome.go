package deadletter

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sluicehq/sluice"
)

// Result is the result of redriving one entry.
type Result string

const (
	Done     Result = "done"      // succeeded; deleted
	Failed   Result = "failed"    // failed again; kept
	Refused  Result = "refused"   // not run, because of Error; kept
	Waiting  Result = "waiting"   // not run, because earlier changes of its item stay parked; kept
	IsGap    Result = "gap"       // has no record; kept
	WouldRun Result = "would run" // in a dry run
)

// Outcome describes the redrive of one entry.
type Outcome struct {
	ID      string   `json:"id"`
	Result  Result   `json:"result"`
	Routes  []string `json:"routes,omitempty"`  // that ran, or would run
	Error   string   `json:"error,omitempty"`   // without the fields above
	Note    string   `json:"note,omitempty"`    // further information, such as that another record was run instead
	Earlier []string `json:"earlier,omitempty"` // ids of the entries that it waits for
}

func (h *How) tell(o Outcome) {
	if h.Told != nil {
		h.Told(o)
	}
}

// say sets the error, without the parts that o already has: the id, the result,
// and the route if it is the only one.
func (o *Outcome) say(err error) {
	if err == nil {
		return
	}
	if one, ok := err.(*routeError); ok && len(o.Routes) == 1 {
		err = one.err
	}
	o.Error = strings.TrimPrefix(err.Error(), ErrRefused.Error()+": ")
}

// fetch reads e's record again, and notes its kind in o.
func fetch(ctx context.Context, e *Entry, f Fetch, o *Outcome) (*sluice.Record, error) {
	if f == nil {
		return nil, fmt.Errorf("%w: its record of %d bytes was too large to be kept, and nothing says how to read it again", ErrRefused, e.Ref.Bytes)
	}
	rec, err := f(ctx, e)
	switch {
	case errors.Is(err, ErrGone):
		return nil, fmt.Errorf("%w: its record of %d bytes was too large to be kept: %w; compare what was made of the item with the table, which has it no more, then delete the dead letter", ErrRefused, e.Ref.Bytes, err)
	case err != nil:
		return nil, fmt.Errorf("its record of %d bytes was too large to be kept, and cannot be read again: %w", e.Ref.Bytes, err)
	}
	rec.Origin = sluice.Redriven
	if e.Stands(rec) {
		o.Note = "the stream has forgotten the record, which was too large to be kept: the item as it is now, as a SNAPSHOT record, takes its place"
	} else {
		o.Note = "the record, which was too large to be kept, is read again"
	}
	return rec, nil
}
