package streamtest

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Fault is a scripted failure of some calls. Of several matching faults the first
// registered applies; the others do not count the call.
type Fault struct {
	// Op, Table and Shard select calls: by operation such as "GetRecords", by
	// table, by shard. Empty is any; with Empty, Records or Loop, any call that
	// these fit.
	Op, Table, Shard string
	// After is the number of these calls that pass first. Times is the number
	// that fail then; 0 is all until the fault is removed.
	After, Times int

	// Error is the type of the error response, such as "InternalServerError".
	// Status is its HTTP status: by default 500 for InternalServerError, 503
	// for ServiceUnavailable, and 400. A Status without an Error responds like
	// a proxy, with a body that is not JSON.
	Error  string
	Status int

	// Delay is the time before the response. Its content is the state at the
	// call.
	Delay time.Duration
	// Hang never responds: the call ends with its context or the test.
	Hang bool
	// Cut breaks the connection in the middle of the response's body.
	Cut bool

	// Empty makes GetRecords respond without records and with an iterator at
	// the same place, which can happen before data.
	Empty bool
	// Records is the most records of a GetRecords response.
	Records int
	// Loop makes DescribeStream name the first shard as the last evaluated one,
	// so that paging does not end.
	Loop bool
}

// scripted is a fault and the number of calls it has seen.
type scripted struct {
	Fault
	seen int
}

// effect is the effect of a fault or of chaos on one call.
type effect struct {
	err   *apiError
	delay time.Duration
	hang  bool
	cut   bool

	empty   bool
	records int // at most; 0: no limit

	loop    bool
	listing listing
}

// Fail registers a fault. The returned function removes it.
func (s *Service) Fail(f Fault) (remove func()) {
	if err := f.validate(); err != nil {
		s.fatalf("Fail: %v", err)
	}
	f.Op = cmp.Or(f.Op, f.only())
	return register(&s.mu, &s.faults, &scripted{Fault: f})
}

// only is the operation that the fault's fields require, if any.
func (f *Fault) only() string {
	switch {
	case f.Empty || f.Records > 0:
		return getRecords
	case f.Loop:
		return describeStream
	}
	return ""
}

func (f *Fault) validate() error {
	all := slices.Sorted(slices.Values(slices.Concat(slices.Collect(maps.Values(operations))...)))
	switch only := f.only(); {
	case f.After < 0 || f.Times < 0 || f.Records < 0 || f.Delay < 0:
		return fmt.Errorf("a negative After, Times, Records or Delay: %+v", *f)
	case f.Op != "" && !slices.Contains(all, f.Op):
		return fmt.Errorf("Fault.Op is %q; want one of %s", f.Op, strings.Join(all, ", "))
	case only == getRecords && f.Loop, only != "" && f.Op != "" && f.Op != only:
		return errors.New("Fault.Empty and Records are of GetRecords, Loop is of DescribeStream")
	case only == "" && f.Error == "" && f.Status == 0 && f.Delay == 0 && !f.Hang && !f.Cut:
		return errors.New("a fault that does nothing")
	}
	return nil
}

// decide sets the effect on a call.
func (s *Service) decide(c *call) {
	for _, f := range s.faults {
		if f.takes(c) {
			c.do = f.effect()
			return
		}
	}
	c.do = s.chaos.effect(c)
}

// takes counts the call and reports whether the fault applies to it.
func (f *scripted) takes(c *call) bool {
	if f.Op != "" && f.Op != c.op || f.Table != "" && f.Table != c.note.Table || f.Shard != "" && f.Shard != c.note.Shard ||
		f.Times > 0 && f.seen >= f.After+f.Times {
		return false
	}
	f.seen++
	return f.seen > f.After
}

func (f *Fault) effect() effect {
	e := effect{delay: f.Delay, hang: f.Hang, cut: f.Cut, empty: f.Empty, records: f.Records, loop: f.Loop}
	if f.Error != "" || f.Status != 0 {
		e.err = failure(f.Error, f.Status)
	}
	return e
}

func failure(code string, status int) *apiError {
	if status == 0 {
		switch code {
		case "InternalServerError":
			status = http.StatusInternalServerError
		case "ServiceUnavailable":
			status = http.StatusServiceUnavailable
		}
	}
	return &apiError{code: code, message: "streamtest: a fault", status: status}
}
