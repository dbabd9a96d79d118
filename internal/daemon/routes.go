package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/pauses"
	"github.com/sluicehq/sluice/state"
)

// Routes is the answer of GET /routes.
type Routes struct {
	Routes []RouteStatus `json:"routes"`
}

// RouteStatus is one route, as one daemon knows it, or as the state has it.
type RouteStatus struct {
	Route       string    `json:"route"`
	State       string    `json:"state,omitempty"` // see [flow.State]; empty if no daemon was asked, or it has no such route
	Failing     int       `json:"failingItems"`
	Waiting     int       `json:"waitingRecords"`
	Paused      bool      `json:"paused"`
	Concurrency int       `json:"concurrency,omitempty"` // calls at a time of each worker, while it is slowed
	Rate        float64   `json:"rate,omitempty"`        // records a second of each worker, while it is slowed
	Since       time.Time `json:"since,omitzero"`        // of the pause
	LeftSeconds float64   `json:"leftSeconds,omitempty"` // until the route goes on by itself
	// TrimSeconds is the time until the stream forgets the oldest record that waits for
	// the paused or slowed route; nil: none waits.
	TrimSeconds *float64 `json:"trimSeconds,omitempty"`
}

// Throttled reports whether an operator has paused or slowed the route.
func (r RouteStatus) Throttled() bool { return r.Paused || r.Concurrency > 0 || r.Rate > 0 }

// Text says in a few words what an operator has decided, and how long it lasts; "" if
// nothing.
func (r RouteStatus) Text() string {
	var how []string
	if r.Concurrency > 0 {
		how = append(how, plural(r.Concurrency, "call")+" at a time")
	}
	if r.Rate > 0 {
		how = append(how, fmt.Sprintf("%v records a second", r.Rate))
	}
	text := "slowed to " + strings.Join(how, ", ")
	if r.Paused {
		text = "paused"
	} else if len(how) == 0 {
		return ""
	}
	text += " for " + seconds(r.LeftSeconds).String()
	if r.TrimSeconds != nil {
		text += ", and the stream forgets the oldest waiting record in " + time.Duration(*r.TrimSeconds*float64(time.Second)).Round(time.Minute).String()
	}
	return text
}

// RouteChange is the answer of POST /routes/pause, slow and resume.
type RouteChange struct {
	RouteStatus
	Before  *RouteStatus `json:"before,omitempty"`  // the pause that it replaced or ended
	Warning string       `json:"warning,omitempty"` // why workers follow late, or none follows
	Idle    bool         `json:"idle,omitempty"`    // it is stored, and no worker runs
}

// StatusOf is what a stored pause says of its route.
func StatusOf(p pauses.Pause, left time.Duration) RouteStatus {
	return RouteStatus{
		Route: p.Route, Paused: p.Paused(), Concurrency: p.Concurrency, Rate: p.Rate,
		Since: p.Since, LeftSeconds: left.Round(time.Second).Seconds(),
	}
}

// ChangeOf is what a change of the stored pauses returned, without the route as it is now.
func ChangeOf(before *pauses.Pause, err error) (RouteChange, error) {
	var c RouteChange
	if errors.Is(err, pauses.ErrDeaf) {
		c.Warning, err = err.Error(), nil
	}
	if before != nil {
		was := StatusOf(*before, max(0, time.Until(before.Until())))
		c.Before = &was
	}
	return c, err
}

func (t *throttles) status(s flow.RouteState) RouteStatus {
	r := RouteStatus{Route: s.Route}
	if p, left, ok := t.pauseOf(s.Route); ok {
		r = StatusOf(p, left)
	}
	r.State, r.Failing, r.Waiting = s.State.String(), s.Failing, s.Waiting
	if left, ok := s.TimeToTrim(); ok {
		seconds := left.Round(time.Second).Seconds()
		r.TrimSeconds = &seconds
	}
	return r
}

// list has the routes, and behind them the pauses of routes that this daemon does not
// have, for example since a reload renamed the route.
func (t *throttles) list() Routes {
	all := Routes{Routes: []RouteStatus{}}
	states := t.states()
	for _, s := range states {
		all.Routes = append(all.Routes, t.status(s))
	}
	t.mu.Lock()
	paused := slices.Sorted(maps.Keys(t.known))
	t.mu.Unlock()
	for _, route := range paused {
		if p, left, ok := t.pauseOf(route); ok && !slices.Contains(namesOf(states), route) {
			all.Routes = append(all.Routes, StatusOf(p, left))
		}
	}
	return all
}

// Pausing serves the routes of a group, whose pauses are in a store that no other process
// changes. file and application are as for [Parking].
func Pausing(file, application string, store state.Values, group *flow.Group, logger *slog.Logger) http.Handler {
	return newThrottles(store, application, group, false, false, logger).routes(file)
}

// routes serves the routes to holders of the daemon's token: GET /routes, and POST
// /routes/pause, slow and resume. Another server must check who may ask. It refuses
// requests as [DeadLetters] does.
func (t *throttles) routes(stateFile string) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /routes", queried(func(w http.ResponseWriter, _ *http.Request, _ url.Values) error {
		return answer(w, t.list())
	}))
	for action, parameters := range map[string][]string{"pause": {"route", "for"}, "slow": {"route", "for", "concurrency", "rate"}, "resume": {"route"}} {
		mux.Handle("POST /routes/"+action, queried(func(w http.ResponseWriter, r *http.Request, q url.Values) error {
			a, err := t.act(r.Context(), action, q)
			if err != nil {
				return err
			}
			return answer(w, a)
		}, parameters...))
	}
	return meantFor(stateFile, t.app, mux)
}

// parsePause reads the parameters of a request.
func parsePause(q url.Values, slow bool) (pauses.Pause, error) {
	length, err := time.ParseDuration(q.Get("for"))
	if err != nil {
		return pauses.Pause{}, fmt.Errorf("for: %q is no time: want one such as 1h, %v at most", q.Get("for"), pauses.Longest)
	}
	concurrency, rate := 0, 0.0
	if text := q.Get("concurrency"); text != "" {
		if concurrency, err = strconv.Atoi(text); err != nil || concurrency <= 0 {
			return pauses.Pause{}, fmt.Errorf("concurrency: %q: want 1 or more calls at a time", text)
		}
	}
	if text := q.Get("rate"); text != "" {
		if rate, err = strconv.ParseFloat(text, 64); err != nil || !(rate > 0) {
			return pauses.Pause{}, fmt.Errorf("rate: %q: want more than 0 records a second", text)
		}
	}
	if slow && concurrency == 0 && rate == 0 {
		return pauses.Pause{}, errors.New("want concurrency, rate, or both")
	}
	p := pauses.New(q.Get("route"), length, concurrency, rate)
	return p, p.Check()
}

// act pauses, slows or resumes a route.
func (t *throttles) act(ctx context.Context, action string, q url.Values) (a RouteChange, err error) {
	route := q.Get("route")
	change := func(ctx context.Context) (*pauses.Pause, error) { return pauses.End(ctx, t.store, t.app, route) }
	switch action {
	case "pause", "slow":
		p, err := parsePause(q, action == "slow")
		if err != nil {
			return a, badRequest(err)
		}
		change = func(ctx context.Context) (*pauses.Pause, error) { return pauses.Set(ctx, t.store, t.app, p) }
	case "resume":
	default:
		return a, notFound(fmt.Errorf("%q: want pause, slow or resume", action))
	}
	states := t.states()
	known := slices.ContainsFunc(states, func(s flow.RouteState) bool { return s.Route == route })
	if _, _, paused := t.pauseOf(route); !known && !paused { // a route that was renamed may be resumed
		return a, notFound(NoSuchRoute(route, namesOf(states)))
	}
	a, err = ChangeOf(t.change(ctx, change))
	a.RouteStatus = RouteStatus{Route: route}
	for _, s := range t.states() {
		if s.Route == route {
			a.RouteStatus = t.status(s)
		}
	}
	return a, err
}

func namesOf(states []flow.RouteState) (names []string) {
	for _, s := range states {
		names = append(names, s.Route)
	}
	return names
}
