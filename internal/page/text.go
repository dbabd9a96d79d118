package page

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/sluicehq/sluice/internal/holders"
)

// Text answers with the status of d as text.
func Text(d Daemon) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		st := d.Status()
		st.Tables = worstOf(d.Tables(), worst)
		st.Text(w)
	})
}

// Text writes the status for people. Errors are in one line each, or indented: no line of
// an error passes for one of the text.
func (st Status) Text(w io.Writer) {
	line := func(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }
	line("%s, version %s, running for %v", st.Application, st.Version, time.Since(st.Started).Round(time.Second))
	if st.Worker != "" {
		line("worker %s, configuration %s", st.Worker, st.Config)
	}
	if st.Ready {
		line("ready")
	} else {
		line("NOT READY")
		for _, r := range st.Reasons {
			line("  %s", indented(r))
		}
	}
	if st.Reload != nil {
		line("%s", indented(st.Reload.Text()))
	}
	line("\nheld items: %d (sluice status --held)", st.Held)
	if st.Unknown != "" {
		line("%s", firstLine(st.Unknown))
	}
	letters := 0
	for _, c := range st.DeadLetters {
		letters += c.N
	}
	counted := ""
	if age := time.Since(st.CountedAt); st.CountedAt.IsZero() {
		counted = " (not counted yet)"
	} else if age > countOld {
		counted = fmt.Sprintf(" (counted %v ago)", age.Round(time.Second))
	}
	line("dead letters: %d%s", letters, counted)
	for _, c := range st.DeadLetters {
		line("  %d of table %s, route %s (%s)", c.N, c.Table, cmp.Or(c.Route, "-"), c.Kind)
	}
	line("gaps that nobody has acknowledged: %d", st.Gaps)
	for _, r := range st.Routes {
		r.text(w)
	}
	for _, t := range st.Tables {
		t.text(w)
	}
	for _, q := range st.Queues {
		line("\nqueue %s: %s in hand, the oldest for %v", q.Queue, plural(q.InHand, "message"), duration(q.OldestSeconds))
	}
	for _, f := range st.Backfills {
		how := fmt.Sprintf("%d of about %d items settled", f.Settled, f.Expected)
		if f.Finished {
			how = "finished, " + plural(int(f.Settled), "item")
		}
		line("\nbackfill of table %s: %s", f.Table, how)
	}
	for _, c := range st.Cascades {
		line("\ncascade of %s: %s of table %s deleted in %v", firstLine(c.Parent), plural(c.Deleted, "row"), c.Table, duration(c.Seconds))
	}
}

// countOld is the age of the count of dead letters that the text shows.
const countOld = 5 * time.Second

// text says how the route is, here and at other workers, unless it works well.
func (r Route) text(w io.Writer) {
	if r.Throttle != nil || badness(r) > 0 {
		fmt.Fprintf(w, "route %s: ", r.Route)
		if r.Throttle != nil {
			fmt.Fprintf(w, "%s; ", r.Throttle.Text)
		}
		fmt.Fprintln(w, howItIs(r.State, r.Since, r.Failing, r.Waiting, r.Limit, r.Error))
	}
	for _, at := range r.Troubles() {
		fmt.Fprintf(w, "route %s at worker %s: %s\n", r.Route, at.Worker, howItIs(at.State, time.Time{}, at.Failing, at.Waiting, 0, at.Error))
	}
}

func howItIs(state string, since time.Time, failing, waiting, limit int, err string) string {
	text, fails := state, plural(failing, "item")+" failing"
	switch {
	case state == "works" && failing > 0: // too few items for a trouble of the route
		text = fails
	case state == "works" && err != "":
		text = "works, after an error"
	case state != "works":
		if !since.IsZero() {
			text += " since " + since.Format(time.RFC3339)
		}
		if failing > 0 {
			text += ", " + fails
		}
	}
	if waiting > 0 {
		text += ", " + plural(waiting, "record") + " waiting"
	}
	if limit > 0 {
		text += ", " + plural(limit, "call") + " at a time"
	}
	if err != "" {
		text += ": " + firstLine(err)
	}
	return text
}

// text lists the shards of this worker, with the largest lag first.
func (t Table) text(w io.Writer) {
	shown := plural(t.Open, "shard")
	if t.Reading < t.Open {
		shown = fmt.Sprintf("%d of %s", t.Reading, plural(t.Open, "open shard"))
	}
	fmt.Fprintf(w, "\ntable %s: %s, lag %v, %s unsettled\n", t.Table, shown, duration(t.LagSeconds), plural(int(t.Unsettled), "record"))
	shards := slices.DeleteFunc(slices.Clone(t.Shards), func(s Shard) bool { return !s.Reading })
	rows := columns(w)
	for _, s := range shards {
		polled := "never polled"
		if !s.LastPoll.IsZero() {
			polled = fmt.Sprintf("polled %v ago", time.Since(s.LastPoll).Round(time.Second))
		}
		fmt.Fprintf(rows, "  %s\tlag %v\t%d unsettled\t%s\t%s\n", s.ID, duration(s.LagSeconds), s.Unsettled, polled, firstLine(s.Error))
	}
	_ = rows.Flush()
	if more := t.Reading - len(shards); more > 0 {
		fmt.Fprintf(w, "  and %d that lag less\n", more)
	}
}

// Rates writes a row for each route: what it did in the last whole PointEvery, its calls
// at all workers.
func (st Status) Rates(w io.Writer) {
	rows := columns(w)
	fmt.Fprintln(rows, "ROUTE\tSTATE\tCALLS\tFAILED\tPARKED\tP50\tP99\tFAILING\tWAITING")
	for _, r := range st.Routes {
		state := r.State
		if r.Throttle != nil {
			state = "slowed"
			if r.Throttle.Paused {
				state = "paused"
			}
		}
		fmt.Fprintf(rows, "%s\t%s\t%s\t%d\t%d\t%s\t%s\t%d\t%d\n", r.Route, state, rate(r.Rate()), r.Last.Failed, r.Last.Parked, took(r.Last.P50), took(r.Last.P99), r.Failing, r.Waiting)
	}
	_ = rows.Flush()
}

// Text writes the items for people.
func (h HeldItems) Text(w io.Writer) {
	worker := slices.ContainsFunc(h.Held, func(i holders.Item) bool { return i.Worker != "" })
	rows := columns(w)
	if worker {
		fmt.Fprint(rows, "WORKER\t")
	}
	if len(h.Held) == 0 {
		fmt.Fprintln(rows, "no item is held")
	} else {
		fmt.Fprintln(rows, "TABLE\tSHARD\tSEQUENCE\tKEY\tROUTE\tATTEMPTS\tAGE\tBYTES\tERROR")
	}
	for _, l := range h.Held {
		why := firstLine(l.Error)
		if l.Stuck {
			why = strings.TrimSpace("its handler does not return " + why)
		}
		if worker {
			fmt.Fprintf(rows, "%s\t", cmp.Or(l.Worker, "this one"))
		}
		fmt.Fprintf(rows, "%s\t%s\t%s\t%s\t%s\t%d\t%v\t%d\t%s\n", l.Table, cmp.Or(l.Shard, "-"), cmp.Or(l.Sequence, "-"), cmp.Or(l.Key, "-"), cmp.Or(l.Route, "-"), l.Attempts, duration(l.AgeSeconds), l.Bytes, why)
	}
	_ = rows.Flush()
	for _, one := range h.Unlisted {
		fmt.Fprintln(w, firstLine(one))
	}
}

func columns(w io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(w, 0, 0, 2, ' ', 0) }

func duration(s float64) time.Duration {
	return time.Duration(s * float64(time.Second)).Round(time.Second)
}

// indented moves all lines but the first to the right: none passes for a line around it.
func indented(text string) string { return strings.ReplaceAll(text, "\n", "\n    ") }

// firstLine keeps a row in one line, and short.
func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	s = strings.ReplaceAll(s, "\t", " ")
	if r := []rune(s); len(r) > 200 {
		return string(r[:199]) + "…"
	}
	return s
}
