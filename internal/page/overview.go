package page

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/holders"
)

const (
	worst     = 20 // rows of a list whose rest is a page of its own
	nearLoss  = 12 // hours to the loss of data that are worth a look,
	closeLoss = 6  // and that need somebody now
)

// overview is the first page.
type overview struct {
	Status
	Alarms  []alarm // the worst first
	Notes   []alarm // that somebody should know of
	Hours   Hours   // to the loss of data: the least of the tables
	Lag     float64 // the largest
	Rate    float64 // calls a second, of all routes
	Letters int
	Oldest  []holders.Item
	Shards  []Shard // that lag most, of all tables
	More    int     // shards that lag less
}

// alarm is something that is wrong.
type alarm struct {
	Text string
	Link string
}

func (s *server) overview(w http.ResponseWriter, _ *http.Request) error {
	return s.live(w, "overview", "Overview", s.seen())
}

// seen is the overview of now.
func (s *server) seen() overview {
	o := overview{Status: s.Status(), Hours: Unknown}
	o.Tables = s.Tables()
	for _, t := range o.Tables {
		o.Hours, o.Lag = o.Hours.less(t.HoursToLoss), max(o.Lag, t.LagSeconds)
		o.Shards = append(o.Shards, unsettled(t.Shards)...)
	}
	n := len(o.Shards)
	o.Shards = worstShards(o.Shards, worst)
	o.More = n - len(o.Shards)
	slices.SortStableFunc(o.Tables, func(a, b Table) int { return cmp.Compare(a.HoursToLoss, b.HoursToLoss) })
	slices.SortStableFunc(o.Routes, func(a, b Route) int {
		return cmp.Or(cmp.Compare(badness(b), badness(a)), cmp.Compare(b.Failing, a.Failing))
	})
	for _, r := range o.Routes {
		o.Rate += r.Rate()
	}
	for _, c := range o.DeadLetters {
		o.Letters += c.N
	}
	o.Oldest = s.Held(false).Held
	o.Oldest = o.Oldest[:min(len(o.Oldest), worst)]
	o.alarm(s.Gaps())
	return o
}

// alarm lists the troubles.
func (o *overview) alarm(gaps []Gap) {
	if o.Hours >= 0 && o.Hours < nearLoss {
		note := alarm{fmt.Sprintf("In %s the stream deletes records that are not handled: data is lost then", hours(o.Hours)), "#tables"}
		if o.Hours < closeLoss {
			o.Alarms = append(o.Alarms, note)
		} else {
			o.Notes = append(o.Notes, note)
		}
	}
	if o.Gaps > 0 { // the page of the gaps says which, and how to repair them
		o.Reasons = slices.DeleteFunc(slices.Clone(o.Reasons), func(reason string) bool {
			return strings.HasPrefix(reason, "records are lost: ") || slices.ContainsFunc(gaps, func(g Gap) bool { return g.Lost == reason })
		})
		o.Alarms = append(o.Alarms, alarm{plural(o.Gaps, "gap") + ": records were lost unread. Repair, then acknowledge", "/page/gaps"})
	}
	var outages, others []alarm
	for _, reason := range o.Reasons {
		if strings.HasPrefix(reason, "route ") {
			outages = append(outages, alarm{reason, "#routes"})
		} else {
			others = append(others, alarm{Text: reason})
		}
	}
	for _, r := range o.Routes {
		for _, state := range badStates {
			at := slices.DeleteFunc(r.Troubles(), func(other RouteAt) bool { return other.State != state })
			if len(at) == 0 {
				continue
			}
			note := alarm{fmt.Sprintf("route %q: %s at %s, such as %s", r.Route, state, plural(len(at), "other worker"), at[0].Worker), "#routes"}
			if strings.HasSuffix(state, "outage") {
				outages = append(outages, note)
			} else {
				o.Notes = append(o.Notes, note)
			}
		}
	}
	if o.Unknown != "" {
		o.Notes = append(o.Notes, alarm{o.Unknown, "/page/workers"})
	}
	o.Alarms = append(append(o.Alarms, outages...), others...)
	if o.Reload != nil && o.Reload.Outcome == Failed {
		o.Notes = append(o.Notes, alarm{Text: o.Reload.Text()})
	}
	if o.Ready && o.Held > 0 {
		o.Notes = append(o.Notes, alarm{plural(o.Held, "item") + " wait for a retry or a slow call", "/page/held"})
	}
	for _, r := range o.Routes {
		if r.Throttle != nil {
			o.Notes = append(o.Notes, alarm{"route " + r.Route + " is " + r.Throttle.Text, "/page/route?" + url.Values{"route": {r.Route}}.Encode()})
		}
	}
	if o.Letters > 0 {
		o.Notes = append(o.Notes, alarm{plural(o.Letters, "dead letter") + " wait for somebody", "/page/letters"})
	}
}

// Verdict is the whole page in a word.
func (o overview) Verdict() string {
	switch {
	case !o.Ready:
		return "not ready"
	case len(o.Alarms) > 0 || len(o.Notes) > 0:
		return "ready, look below"
	}
	return "ready"
}

// Level is how bad it is: good, look or bad.
func (o overview) Level() string {
	switch {
	case !o.Ready || len(o.Alarms) > 0:
		return "bad"
	case len(o.Notes) > 0:
		return "look"
	}
	return "good"
}

// badStates are the states of a route in trouble, the worst first; see [flow.State].
var badStates = []string{"outage", "partial outage", "recovering", "overloaded"}

// badness orders routes.
func badness(r Route) int {
	if i := slices.Index(badStates, r.State); i >= 0 {
		return 1 + len(badStates) - i
	}
	if r.Error != "" || r.Failing > 0 || r.Throttle != nil {
		return 1
	}
	return 0
}

// held shows the items that wait.
func (s *server) held(w http.ResponseWriter, r *http.Request) error {
	h := s.Held(false)
	all := h.Held
	if route := r.URL.Query().Get("route"); route != "" {
		all = slices.DeleteFunc(all, func(h holders.Item) bool { return h.Route != route })
	}
	p := paged(r, len(all))
	return s.live(w, "held", "Held items", struct {
		Held     []holders.Item
		Unlisted []string
		part
	}{all[p.From:p.To], h.Unlisted, p})
}

// letterLink is where the letters of a count are.
func letterLink(c deadletter.Count) string { return "/page/letters?" + countQuery(c).Encode() }
