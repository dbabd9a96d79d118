package streamtest

import (
	"fmt"
	"strings"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/flow"
)

// Result is the outcome of a Run.
type Result struct {
	// Outcomes are ordered by record, and then by route. A record that never
	// started has none.
	Outcomes []Outcome
	// Settled is the number of durable records, counted from the first.
	Settled int
	// Err is the reason why not all records are settled: a failure under
	// [flow.Stop], or the end of the context.
	Err error
}

// Outcome is the result of one route for one record.
type Outcome struct {
	Record *sluice.Record // the record given to Run
	Index  int            // of the record, from 0
	Route  string         // empty if the record has no route, or could not be decoded or matched

	// Result is Done, Skipped, Parked or Unrouted. Stopped ended a run with the
	// policy Stop. Retried was about to be retried when the run ended.
	Result flow.Result
	Calls  int     // of the route's handler
	Errs   []error // of failed calls, in order
	Err    error   // reason for Result: the skip, or the last failure; nil when it is done

	told   bool
	exited error // the handler ended its goroutine
}

// Of returns the outcomes of the i-th record.
func (r *Result) Of(i int) []Outcome {
	var of []Outcome
	for _, o := range r.Outcomes {
		if o.Index == i {
			of = append(of, o)
		}
	}
	return of
}

// String returns one line per outcome, such as
//
//	0 INSERT {"pk":"a"} order#INSERT: done
//	1 MODIFY {"pk":"a"} order#MODIFY: parked after 8 calls: no total
//
// and a last line if not all records are settled.
func (r *Result) String() string {
	var b strings.Builder
	for _, o := range r.Outcomes {
		b.WriteString(o.String() + "\n")
	}
	if r.Err != nil {
		fmt.Fprintf(&b, "%d settled: %s\n", r.Settled, firstLine(r.Err))
	}
	return b.String()
}

// String returns the outcome in one line.
func (o Outcome) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s", o.Index, o.Record.EventName)
	if o.Record.Keys.Exists() {
		fmt.Fprintf(&b, " %s", o.Record.Keys.AppendJSON(nil))
	}
	if o.Route != "" {
		b.WriteString(" " + o.Route)
	}
	fmt.Fprintf(&b, ": %v", o.Result)
	if o.Calls > 1 {
		fmt.Fprintf(&b, " after %d calls", o.Calls)
	}
	if skip, ok := o.Err.(*sluice.SkipError); ok {
		b.WriteString(": " + skip.Reason)
	} else if o.Err != nil {
		b.WriteString(": " + firstLine(o.Err))
	}
	return b.String()
}

// firstLine omits stacks.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// result returns the result of the tracks.
func (r *runner) result(settled int, err error) *Result {
	r.mu.Lock()
	defer r.mu.Unlock()
	res := &Result{Settled: settled, Err: err}
	for i, t := range r.order {
		for _, o := range t.outcomes {
			if o.Calls == 0 && !o.told {
				continue // matched, but never begun
			}
			out := *o
			out.Index = i
			if !o.told { // called, but not ended
				out.Result = flow.Retried
			}
			out.Errs = append([]error(nil), o.Errs...)
			res.Outcomes = append(res.Outcomes, out)
		}
	}
	return res
}
