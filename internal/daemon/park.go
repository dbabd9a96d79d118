package daemon

import (
	"log/slog"
	"net/http"
	"net/url"
	"slices"

	"github.com/sluicehq/sluice/flow"
)

// ParkedRoute is the answer of POST /park.
type ParkedRoute struct {
	Route   string `json:"route"`
	State   string `json:"state"`            // of the route before; see [flow.State]
	Failing int    `json:"failing"`          // distinct items that it failed for, messages of queues among them
	Error   string `json:"error,omitempty"`  // the last
	Parked  int    `json:"parked"`           // records
	Pending int    `json:"pending"`          // records that are in a call: each is parked if that fails
	DryRun  bool   `json:"dryRun,omitempty"` // Parked and Pending are what would be
}

// RouteParker knows the routes of a daemon and parks their failing records.
type RouteParker interface {
	States() []flow.RouteState
	Park(route string, dryRun bool) (parked, pending int) // see [flow.Flow.Park]
}

// Parking serves POST /park?route=NAME to holders of the daemon's token: it parks
// the failing records of a route. Another server must check who may ask. With
// dryRun=1 it parks none. state is the path of the daemon's state file; requests
// for another file, or for another application, are refused as by [DeadLetters].
func Parking(state, application string, p RouteParker, logger *slog.Logger) http.Handler {
	return meantFor(state, application, queried(func(w http.ResponseWriter, _ *http.Request, q url.Values) error {
		return park(w, q, p, logger)
	}, "route", "dryRun"))
}

func park(w http.ResponseWriter, q url.Values, p RouteParker, logger *slog.Logger) error {
	a := ParkedRoute{Route: q.Get("route")}
	if err := switches(q, map[string]*bool{"dryRun": &a.DryRun}); err != nil {
		return err
	}
	states := p.States()
	i := slices.IndexFunc(states, func(s flow.RouteState) bool { return s.Route == a.Route })
	if i < 0 {
		return notFound(NoSuchRoute(a.Route, namesOf(states)))
	}
	s := states[i]
	a.State, a.Failing, a.Error = s.State.String(), s.Failing, text(s.Err)
	if a.Parked, a.Pending = p.Park(a.Route, a.DryRun); a.Parked+a.Pending > 0 && !a.DryRun {
		logger.Warn("failing records parked by hand", "route", a.Route, "count", a.Parked, "pending", a.Pending, "state", a.State, "error", a.Error)
	}
	return answer(w, a)
}
