package page

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"time"

	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/letters"
)

// chosen are the letters that a form is about: those with these ids, or with none
// all that a filter selects.
type chosen struct {
	IDs    []string
	All    bool
	Until  string // of all: only letters that were parked before this time
	Search search
	filter deadletter.Filter
}

// choice reads a form. No letter that was not chosen may be changed: an empty choice
// is an error.
func choice(r *http.Request) (c chosen, err error) {
	c.IDs, c.All = r.PostForm["id"], r.PostForm.Get("all") == "1"
	if c.filter, c.Search, err = filterOf(r.PostForm); err != nil {
		return c, err
	}
	if until := r.PostForm.Get("until"); until != "" {
		if c.filter.Until, err = time.Parse(time.RFC3339Nano, until); err != nil {
			return c, &Error{http.StatusBadRequest, err}
		}
	}
	switch {
	case c.All:
		c.IDs = nil
		switch c.filter.Kind {
		case "":
			c.filter.Kind = "record"
			c.Search.Set("kind", "record")
		case "gap":
			return c, &Error{http.StatusBadRequest, errNoGaps}
		}
	case len(c.IDs) == 0:
		return c, &Error{http.StatusBadRequest, errors.New("no dead letter is selected: go back and select some")}
	}
	return c, nil
}

var errNoGaps = errors.New("gaps are acknowledged one by one, on the page Gaps: each says how to repair the loss")

const (
	shownOutcomes = 200 // of a confirmation
	confirmFor    = 20 * time.Second
)

// confirmed reads a form that confirm made: later letters are not meant.
func confirmed(r *http.Request) (chosen, error) {
	c, err := choice(r)
	if err == nil && c.All && c.filter.Until.IsZero() {
		err = &Error{http.StatusBadRequest, errors.New("the form does not say until when: go back and confirm it")}
	}
	return c, err
}

// confirm shows what a redrive or a purge would do. It changes nothing.
func (s *server) confirm(w http.ResponseWriter, r *http.Request) error {
	c, err := choice(r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), confirmFor)
	defer cancel()
	if c.All {
		c.filter.Until = time.Now()
		c.Until = c.filter.Until.Format(time.RFC3339Nano)
	}
	body := struct {
		chosen
		N        int
		Counted  bool
		Outcomes []deadletter.Outcome
		Report   deadletter.Report
		More     int
		Problem  string
	}{chosen: c, N: len(c.IDs)}
	switch r.PostForm.Get("do") {
	case "redrive":
		how := deadletter.How{DryRun: true, Told: func(o deadletter.Outcome) {
			if len(body.Outcomes) < shownOutcomes {
				body.Outcomes = append(body.Outcomes, o)
			} else {
				body.More++
			}
		}}
		if c.All || len(c.IDs) == 1 { // a count of each id would read all letters each time
			if body.Report, err = s.Redrive(ctx, c.IDs, c.filter, how); err != nil && len(body.Outcomes) == 0 {
				body.Problem = err.Error()
			}
			body.N, body.Counted = len(body.Outcomes)+body.More, true
			if ctx.Err() != nil {
				body.Problem = "counting took too long: choose fewer by a filter"
			}
		}
		return show(w, http.StatusOK, "redrive", s.frame("Redrive", "letters", body))
	case "purge":
		if body.N, err = s.Purge(ctx, c.IDs, c.filter, true); err != nil {
			body.Problem = err.Error()
		}
		return show(w, http.StatusOK, "purge", s.frame("Purge", "letters", body))
	}
	return &Error{http.StatusBadRequest, errors.New("the form names no action: want redrive or purge")}
}

const lineFor = time.Minute // to read a line: see package daemon

// redrive redrives the chosen letters, and shows each outcome as it comes.
func (s *server) redrive(w http.ResponseWriter, r *http.Request) error {
	c, err := confirmed(r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), filterMost)
	defer cancel()
	control := http.NewResponseController(w)
	secure(w)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	write := func(part string, v any) {
		_ = control.SetWriteDeadline(time.Now().Add(lineFor))
		if err := pages["result"].ExecuteTemplate(w, part, v); err != nil || control.Flush() != nil && ctx.Err() == nil {
			cancel() // who asked has gone: the redrive ends between two letters
		}
	}
	f := s.frame("Redrive", "letters", nil)
	write("begin", f)
	report, err := s.Redrive(ctx, c.IDs, c.filter, deadletter.How{Earlier: r.PostForm.Get("earlier") == "1", Told: func(o deadletter.Outcome) { write("outcome", o) }})
	problem := ""
	switch {
	case ctx.Err() != nil:
		problem = fmt.Sprintf("it was ended after %v, or because this page was closed: the rest is still parked", filterMost)
	case err != nil:
		problem = err.Error()
	}
	write("end", struct {
		deadletter.Report
		Problem string
	}{report, problem})
	return nil
}

// purge deletes the chosen letters.
func (s *server) purge(w http.ResponseWriter, r *http.Request) error {
	c, err := confirmed(r)
	if err != nil {
		return err
	}
	n, err := s.Purge(r.Context(), c.IDs, c.filter, false)
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(lineFor)) // it may have waited for a redrive
	problem := ""
	if err != nil {
		problem = err.Error()
	}
	return show(w, http.StatusOK, "purged", s.frame("Purged", "letters", struct {
		N       int
		Problem string
	}{n, problem}))
}

// describe is a filter in words.
func (s search) Describe() string {
	q := maps.Clone(s.Values)
	if q.Get("kind") == "record" {
		q.Del("kind")
	}
	if len(q) == 0 {
		return "every dead letter"
	}
	f, _, _ := filterOf(q)
	return "every dead letter with " + letters.Query(f).Encode()
}
