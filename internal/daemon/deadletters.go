package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/daemons"
	"github.com/sluicehq/sluice/internal/letters"
	"github.com/sluicehq/sluice/internal/page"
)

// DeadLetterPage is the answer of GET /deadletters.
type DeadLetterPage = page.LetterList

// DeadLetterCounts is the answer of GET /deadletters/counts.
type DeadLetterCounts struct {
	Counts     []deadletter.Count `json:"counts"`
	Unreadable string             `json:"unreadable,omitempty"`
}

// DeadLetterLine is one line of the answer to a redrive: an outcome, or at last
// the report.
type DeadLetterLine struct {
	*deadletter.Outcome
	Report *deadletter.Report `json:"report,omitempty"`
	Fault  string             `json:"fault,omitempty"` // why the redrive itself ended, or could not read all
}

// DeadLetterDeletion is the answer of DELETE.
type DeadLetterDeletion struct {
	Deleted    int    `json:"deleted"` // or how many would be
	DryRun     bool   `json:"dryRun,omitempty"`
	Unreadable string `json:"unreadable,omitempty"` // entries that were left, or what failed
}

// letterServer answers for the dead letters of a daemon. A redrive runs beside
// its flows.
type letterServer struct {
	ctx    context.Context // ends with the daemon, and ends redrives
	box    *letters.Box
	routes sluice.Matcher
	fetch  deadletter.Fetch
	logger *slog.Logger
}

// DeadLetters serves the dead letters of a box under /deadletters, to holders of
// the daemon's token: it shows, redrives and deletes them. Another server must
// check who may ask. Redrives end with ctx. docs/dead-letters.md lists the
// requests. state is the path of box's file. A request whose header [StateHeader]
// names another file, or [ApplicationHeader] another application, is refused.
func DeadLetters(ctx context.Context, box *letters.Box, state string, m sluice.Matcher, fetch deadletter.Fetch, logger *slog.Logger) http.Handler {
	return (&letterServer{ctx: ctx, box: box, routes: m, fetch: fetch, logger: logger}).handler(state)
}

func (s *letterServer) handler(state string) http.Handler {
	filter := []string{"kind", "route", "table", "key", "since", "until", "error"}
	how := []string{"dryRun", "force", "allow", "unsigned"}
	mux := http.NewServeMux()
	mux.Handle("GET /deadletters", queried(s.list, append(filter, "after", "limit")...))
	mux.Handle("GET /deadletters/counts", queried(s.counts))
	mux.Handle("GET /deadletters/{id}", queried(s.show, "payload"))
	mux.Handle("POST /deadletters/redrive", queried(s.redriveAll, append(filter, how...)...))
	mux.Handle("POST /deadletters/{id}/redrive", queried(s.redrive, append(how, "earlier")...))
	mux.Handle("DELETE /deadletters", queried(s.purge, append(filter, "all", "dryRun")...))
	mux.Handle("DELETE /deadletters/{id}", queried(s.remove))
	return meantFor(state, s.box.Application(), mux)
}

// StateHeader is the header of a request that names the state file whose dead
// letters are meant, by its absolute path: on one machine there can be several
// daemons, and a wrong one must not delete its own.
const StateHeader = "Sluice-State"

// ApplicationHeader is the header of a request that names the application whose
// dead letters are meant, and of an answer that names the daemon's. /livez has it, too.
const ApplicationHeader = "Sluice-Application"

// meantFor refuses requests that are meant for another state file or application.
// Its answers name the application.
func meantFor(state, application string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(ApplicationHeader, application)
		if meant := r.Header.Get(ApplicationHeader); meant != "" && meant != application {
			http.Error(w, fmt.Sprintf("this daemon is of the application %q, not %q", application, meant), http.StatusMisdirectedRequest)
			return
		}
		if meant := r.Header.Get(StateHeader); meant != "" && !daemons.SameFile(meant, state) {
			http.Error(w, fmt.Sprintf("this daemon holds the state file %s, not %s", state, meant), http.StatusMisdirectedRequest)
			return
		}
		h.ServeHTTP(w, r)
	})
}

func badRequest(err error) error { return &page.Error{Status: http.StatusBadRequest, Err: err} }

func notFound(err error) error { return &page.Error{Status: http.StatusNotFound, Err: err} }

// queried serves requests whose query has these parameters at most. A filter that is
// misspelt must not choose all.
func queried(serve func(http.ResponseWriter, *http.Request, url.Values) error, known ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q, err := url.ParseQuery(r.URL.RawQuery)
		for name := range q {
			if err == nil && !slices.Contains(known, name) {
				err = fmt.Errorf("there is no parameter %q: want %s", name, strings.Join(known, ", "))
			}
		}
		if err != nil {
			err = badRequest(err)
		} else {
			err = serve(w, r, q)
		}
		if err != nil {
			http.Error(w, err.Error(), page.StatusOf(err))
		}
	})
}

// switches reads parameters that are on or off.
func switches(q url.Values, into map[string]*bool) error {
	for name, on := range into {
		switch value := q.Get(name); value {
		case "", "0", "false":
		case "1", "true":
			*on = true
		default:
			return badRequest(fmt.Errorf("%s: %q is neither 1 nor 0", name, value))
		}
	}
	return nil
}

func answer(w http.ResponseWriter, v any) error {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // an error is the client's
	return nil
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func (s *letterServer) list(w http.ResponseWriter, r *http.Request, q url.Values) error {
	f, err := letters.ParseFilter(q, time.Now())
	if err != nil {
		return badRequest(err)
	}
	const most = 1000
	limit := 100
	if l := q.Get("limit"); l != "" {
		if limit, err = strconv.Atoi(l); err != nil || limit < 1 || limit > most {
			return badRequest(fmt.Errorf("limit: %q is not a number from 1 to %d", l, most))
		}
	}
	found, err := s.List(r.Context(), f, q.Get("after"), limit)
	if err != nil {
		return err
	}
	return answer(w, found)
}

// List implements [page.Letters].
func (s *letterServer) List(ctx context.Context, f deadletter.Filter, after string, limit int) (DeadLetterPage, error) {
	found := DeadLetterPage{DeadLetters: []letters.Outline{}}
	var unreadable []error
	for {
		entries, last, err := s.box.List(ctx, after, 100)
		if err != nil && last == "" && len(entries) == 0 {
			return found, err
		}
		unreadable = append(unreadable, err)
		for _, e := range entries {
			if !f.Matches(&e) {
				continue
			}
			if len(found.DeadLetters) == limit {
				found.Next, last = found.DeadLetters[limit-1].ID, ""
				break
			}
			found.DeadLetters = append(found.DeadLetters, letters.OutlineOf(&e, false))
		}
		if last == "" {
			found.Unreadable = text(errors.Join(unreadable...))
			return found, nil
		}
		after = last
	}
}

func (s *letterServer) counts(w http.ResponseWriter, r *http.Request, _ url.Values) error {
	counts, err := s.box.Counts(r.Context())
	if counts == nil {
		return err
	}
	return answer(w, DeadLetterCounts{Counts: counts, Unreadable: text(err)})
}

func (s *letterServer) show(w http.ResponseWriter, r *http.Request, q url.Values) error {
	var payload bool
	if err := switches(q, map[string]*bool{"payload": &payload}); err != nil {
		return err
	}
	e, err := s.Show(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	return answer(w, letters.OutlineOf(&e, payload))
}

// Show implements [page.Letters].
func (s *letterServer) Show(ctx context.Context, id string) (e deadletter.Entry, err error) {
	if id, err = s.box.Find(ctx, id); err != nil {
		return e, err
	}
	return s.box.Get(ctx, id)
}

func (s *letterServer) redrive(w http.ResponseWriter, r *http.Request, q url.Values) error {
	e, err := s.Show(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	return s.run(w, r, q, []string{e.ID}, deadletter.Filter{})
}

func (s *letterServer) redriveAll(w http.ResponseWriter, r *http.Request, q url.Values) error {
	f, err := letters.ParseFilter(q, time.Now())
	if err != nil {
		return badRequest(err)
	}
	return s.run(w, r, q, nil, f)
}

func (s *letterServer) logOutcome(o deadletter.Outcome, dryRun bool) {
	if !dryRun {
		s.logger.Info("dead letter redriven", "id", o.ID, "result", string(o.Result), "routes", o.Routes, "error", o.Error)
	}
}

// lineTimeout is how long a client may take to read a line of the response to a
// redrive or a purge, beyond its connection's buffer: nobody else can redrive
// meanwhile.
const lineTimeout = time.Minute

// run redrives, and writes a line for each outcome as it comes. A client that
// goes away or does not read, and the end of the daemon, end it between two
// entries; the log has each outcome.
func (s *letterServer) run(w http.ResponseWriter, r *http.Request, q url.Values, ids []string, f deadletter.Filter) error {
	how := deadletter.How{Fetch: s.fetch, Allow: q["allow"]}
	for _, prefix := range q["unsigned"] {
		switch id, err := s.box.Find(r.Context(), prefix); {
		case errors.Is(err, deadletter.ErrNotFound): // it was redriven, or deleted
		case err != nil:
			return err
		default:
			how.Unsigned = append(how.Unsigned, id)
		}
	}
	if err := switches(q, map[string]*bool{"dryRun": &how.DryRun, "force": &how.Force, "earlier": &how.Earlier}); err != nil {
		return err
	}
	if len(how.Allow)+len(how.Unsigned) > 0 && !how.DryRun {
		s.logger.Warn("dead letters are redriven although their routes or their signatures speak against it", "routes", how.Allow, "unsigned", how.Unsigned)
	}
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	defer context.AfterFunc(r.Context(), cancel)()
	control := http.NewResponseController(w)
	w.Header().Set("Content-Type", "application/x-ndjson")
	lines := json.NewEncoder(w)
	var broken error // why the client no longer reads
	tell := func(line DeadLetterLine) {
		if broken != nil {
			return
		}
		_ = control.SetWriteDeadline(time.Now().Add(lineTimeout))
		broken = lines.Encode(line)
		if err := control.Flush(); broken == nil && !errors.Is(err, http.ErrNotSupported) {
			broken = err
		}
	}
	how.Told = func(o deadletter.Outcome) {
		s.logOutcome(o, how.DryRun)
		if tell(DeadLetterLine{Outcome: &o}); broken != nil {
			cancel()
		}
	}
	report, err := redrive(ctx, s.box, s.routes, ids, f, how)
	if tell(DeadLetterLine{Report: &report, Fault: text(err)}); broken != nil && !how.DryRun {
		s.logger.Warn("who asked for the redrive of dead letters has not read the whole answer", "done", report.Done, "failed", report.Failed, "waiting", report.Waiting, "error", broken)
	}
	return nil
}

func (s *letterServer) purge(w http.ResponseWriter, r *http.Request, q url.Values) error {
	var all bool
	d := DeadLetterDeletion{}
	if err := switches(q, map[string]*bool{"all": &all, "dryRun": &d.DryRun}); err != nil {
		return err
	}
	f, err := letters.ParseFilter(q, time.Now())
	if err != nil {
		return badRequest(err)
	}
	if letters.ChoosesAll(f) && !all {
		return badRequest(errors.New("say which dead letters are to be deleted, by a filter or by all=1"))
	}
	d.Deleted, err = s.purgeAll(r.Context(), f, d.DryRun)
	d.Unreadable = text(err)
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(lineTimeout)) // it may have waited for a redrive
	return answer(w, d)
}

// purgeAll deletes the letters that f selects.
func (s *letterServer) purgeAll(ctx context.Context, f deadletter.Filter, dryRun bool) (n int, err error) {
	f.Kind = cmp.Or(f.Kind, "record") // a gap is acknowledged on purpose
	if n, err = s.box.Purge(ctx, f, dryRun); dryRun || n == 0 {
		return n, err
	}
	for name := range f.Key { // the log has no values of keys
		f.Key[name] = "…"
	}
	s.logger.Warn("dead letters deleted", "count", n, "filter", letters.Query(f).Encode())
	return n, err
}

func (s *letterServer) remove(w http.ResponseWriter, r *http.Request, _ url.Values) error {
	id, err := s.box.Find(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	if err := s.delete(r.Context(), id); err != nil {
		return err
	}
	return answer(w, DeadLetterDeletion{Deleted: 1})
}

func (s *letterServer) delete(ctx context.Context, id string) error {
	if err := s.box.Delete(ctx, id); err != nil {
		return err
	}
	s.logger.Warn("dead letter deleted", "id", id)
	return nil
}

// redrive redrives the letters with these ids, one after another, or without ids the
// letters that f selects. It does not return an error that an outcome reports.
func redrive(ctx context.Context, box *letters.Box, m sluice.Matcher, ids []string, f deadletter.Filter, how deadletter.How) (report deadletter.Report, err error) {
	if len(ids) == 0 {
		return box.RedriveAll(ctx, m, f, how)
	}
	told := how.Told
	how.Told = func(o deadletter.Outcome) {
		count(&report, o)
		told(o)
	}
	var errs []error
	for _, id := range ids {
		if ctx.Err() != nil {
			return report, errors.Join(append(errs, ctx.Err())...)
		}
		before := report.Failed + report.Waiting
		switch err := box.Redrive(ctx, m, id, how); {
		case report.Failed+report.Waiting > before:
		case len(ids) > 1 && errors.Is(err, deadletter.ErrNotFound): // redriven before a later one of its item, or by somebody else
		default:
			errs = append(errs, err)
		}
	}
	return report, errors.Join(errs...)
}

// count adds an outcome to a report.
func count(r *deadletter.Report, o deadletter.Outcome) {
	switch o.Result {
	case deadletter.Done:
		r.Done++
	case deadletter.Failed, deadletter.Refused:
		r.Failed++
	case deadletter.Waiting:
		r.Waiting++
	case deadletter.IsGap:
		r.Gaps++
	case deadletter.WouldRun:
		r.WouldRun++
	}
}
