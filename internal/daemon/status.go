package daemon

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/sources/poller"
)

// status is the content of the page at /.
type status struct {
	Application string             `json:"application"`
	Version     string             `json:"version"`
	Config      string             `json:"config"`           // fingerprint of the configuration
	Worker      string             `json:"worker,omitempty"` // its name in the state; empty without tables
	Started     time.Time          `json:"started"`
	Ready       bool               `json:"ready"`
	Reasons     []string           `json:"reasons"` // why it is not
	Tables      []tableStatus      `json:"tables"`
	Queues      []queueStatus      `json:"queues"`
	Backfills   []backfilling      `json:"backfills"`
	HeldLanes   int                `json:"heldLanes"`
	Routes      []routeStatus      `json:"routes"` // for which something fails, or that are overloaded, paused or slowed
	Gaps        int                `json:"gaps"`
	DeadLetters []deadletter.Count `json:"deadLetters"`
	CountedAt   time.Time          `json:"deadLettersCountedAt,omitzero"`
	Reload      *Reload            `json:"reload,omitempty"` // the last one; nil: none yet
}

type tableStatus struct {
	Table      string        `json:"table"`
	LagSeconds float64       `json:"lagSeconds"` // the largest of its shards
	Unsettled  uint64        `json:"unsettled"`
	OpenShards int           `json:"openShards"` // also those that other workers read, or that wait
	Shards     []shardStatus `json:"shards"`     // that this worker reads
}

type shardStatus struct {
	ID         string    `json:"id"`
	Position   string    `json:"position"` // sequence number of the last settled record
	LagSeconds float64   `json:"lagSeconds"`
	Unsettled  uint64    `json:"unsettled"`
	LastPoll   time.Time `json:"lastPoll"`
	Error      string    `json:"error,omitempty"` // of the last poll
}

type queueStatus struct {
	Queue         string  `json:"queue"`
	InHand        int     `json:"inHand"`
	OldestSeconds float64 `json:"oldestSeconds"`
}

type backfilling struct {
	Table    string `json:"table"`
	Items    int64  `json:"items"`
	Settled  int64  `json:"settled"`
	Expected int64  `json:"expected"`
	Finished bool   `json:"finished"`
}

type routeStatus struct {
	Route   string    `json:"route"`
	State   string    `json:"state"`
	Since   time.Time `json:"since"`
	Failing int       `json:"failingItems"`
	Waiting int       `json:"waitingRecords"`
	Limit   int       `json:"concurrencyLimit"` // 0: no limit was found, or it is an outage
	Error   string    `json:"error"`            // of the last call that failed

	Throttle *RouteStatus `json:"throttle,omitempty"` // while an operator has paused or slowed it
}

// status asks the sources.
func (s *sources) status() (st status) {
	st = status{
		Reasons: s.unready(), Tables: []tableStatus{}, Queues: []queueStatus{}, Backfills: []backfilling{}, Routes: []routeStatus{},
		HeldLanes: len(s.waiting()), Gaps: len(s.Gaps()),
	}
	if st.Ready = len(st.Reasons) == 0; st.Ready {
		st.Reasons = []string{}
	}
	if s.poller != nil {
		st.Worker, st.Tables = s.poller.Owner(), tablesOf(s.poller.Shards(), s.open.byTable())
	}
	if s.backfills != nil {
		for _, b := range s.backfills.all {
			p := b.Progress()
			st.Backfills = append(st.Backfills, backfilling{p.Table, p.Items, p.Settled, p.TableItems, p.Finished})
		}
	}
	if s.consumer != nil {
		for name, h := range s.consumer.Hands() {
			st.Queues = append(st.Queues, queueStatus{name, h.Messages, h.Oldest.Seconds()})
		}
		slices.SortFunc(st.Queues, func(a, b queueStatus) int { return strings.Compare(a.Queue, b.Queue) })
	}
	for _, r := range s.routes() {
		throttled := r.Throttle != (flow.Throttle{})
		if r.State == flow.Works && r.Failing == 0 && r.Err == nil && !throttled {
			continue
		}
		one := routeStatusOf(r)
		if throttled {
			t := s.throttles.status(r)
			one.Throttle = &t
		}
		st.Routes = append(st.Routes, one)
	}
	return st
}

// routeStatusOf leaves out the limit in an outage: only probes are sent.
func routeStatusOf(r flow.RouteState) routeStatus {
	limit := r.Limit
	if r.State == flow.Outage {
		limit = 0
	}
	return routeStatus{r.Route, r.State.String(), r.Since, r.Failing, r.Waiting, limit, plain(r.Err), nil}
}

// awaited returns the unsettled work by source.
func (st *status) awaited() (all []string) {
	add := func(n int, one, of string) {
		if n > 0 {
			all = append(all, plural(n, one)+" of "+of)
		}
	}
	for _, t := range st.Tables {
		add(int(t.Unsettled), "record", "table "+t.Table)
	}
	for _, b := range st.Backfills {
		add(int(b.Items-b.Settled), "item", "the backfill of table "+b.Table)
	}
	for _, q := range st.Queues {
		add(q.InHand, "message", "queue "+q.Queue)
	}
	return all
}

// tablesOf groups shards by table. open are the open shards of each table.
func tablesOf(shards []poller.Status, open map[string]int) []tableStatus {
	byTable := make(map[string]*tableStatus)
	for table, n := range open {
		byTable[table] = &tableStatus{Table: table, OpenShards: n, Shards: []shardStatus{}}
	}
	for _, sh := range shards {
		t := byTable[sh.Shard.Table]
		if t == nil {
			t = &tableStatus{Table: sh.Shard.Table}
			byTable[t.Table] = t
		}
		one := shardStatus{ID: sh.Shard.ID, Position: sh.Position, LagSeconds: sh.Lag.Seconds(), Unsettled: sh.Unsettled, LastPoll: sh.LastPoll}
		if sh.Err != nil {
			one.Error = plain(sh.Err)
		}
		t.LagSeconds, t.Unsettled = max(t.LagSeconds, one.LagSeconds), t.Unsettled+one.Unsettled
		t.Shards = append(t.Shards, one)
		t.OpenShards = max(t.OpenShards, len(t.Shards)) // the lineage may be told later
	}
	tables := []tableStatus{}
	for _, name := range slices.Sorted(maps.Keys(byTable)) {
		tables = append(tables, *byTable[name])
	}
	return tables
}

// shownShards is how many shards of a table the text shows, with the largest lag
// first.
const shownShards = 20

// statusPage answers with what now returns.
func statusPage(now func() status) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		st := now()
		if wantsJSON(r) {
			writeJSON(w, st)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		var b strings.Builder
		st.text(&b)
		_, _ = w.Write([]byte(b.String()))
	})
}

func (st *status) text(b *strings.Builder) {
	line := func(format string, args ...any) { fmt.Fprintf(b, format+"\n", args...) }
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
	if r := st.Reload; r != nil {
		line("%s", indented(r.text()))
	}
	line("\nheld items: %d (/lanes)", st.HeldLanes)
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
		fmt.Fprintf(b, "route %s: ", r.Route)
		failing := plural(r.Failing, "item") + " failing"
		if r.Throttle != nil {
			fmt.Fprintf(b, "%s; ", r.Throttle.Text())
		}
		switch {
		case r.State != flow.Works.String():
			fmt.Fprintf(b, "%s since %s", r.State, r.Since.Format(time.RFC3339))
			if r.Failing > 0 {
				b.WriteString(", " + failing)
			}
		case r.Failing > 0: // too few items for a trouble of the route
			b.WriteString(failing)
		case r.Error == "":
			b.WriteString("works")
		default:
			b.WriteString("works, after an error")
		}
		if r.Waiting > 0 {
			fmt.Fprintf(b, ", %s waiting", plural(r.Waiting, "record"))
		}
		if r.Limit > 0 {
			fmt.Fprintf(b, ", %s at a time", plural(r.Limit, "call"))
		}
		if r.Error != "" {
			fmt.Fprintf(b, ": %s", firstLine(r.Error))
		}
		line("")
	}
	for _, t := range st.Tables {
		shown := plural(t.OpenShards, "shard")
		if n := len(t.Shards); n < t.OpenShards {
			shown = fmt.Sprintf("%d of %s", n, plural(t.OpenShards, "open shard"))
		}
		line("\ntable %s: %s, lag %s, %s unsettled", t.Table, shown, seconds(t.LagSeconds), plural(int(t.Unsettled), "record"))
		shards := slices.Clone(t.Shards)
		slices.SortStableFunc(shards, func(a, b shardStatus) int { return cmp.Compare(b.LagSeconds, a.LagSeconds) })
		w := rows(b)
		for _, sh := range shards[:min(len(shards), shownShards)] {
			fmt.Fprintf(w, "  %s\tlag %s\t%d unsettled\t%s\t%s\n", sh.ID, seconds(sh.LagSeconds), sh.Unsettled, polled(sh.LastPoll), firstLine(sh.Error))
		}
		_ = w.Flush()
		if more := len(shards) - shownShards; more > 0 {
			line("  and %d that lag less (?format=json shows all)", more)
		}
	}
	for _, q := range st.Queues {
		line("\nqueue %s: %s in hand, the oldest for %s", q.Queue, plural(q.InHand, "message"), seconds(q.OldestSeconds))
	}
	for _, f := range st.Backfills {
		how := fmt.Sprintf("%d of about %d items settled", f.Settled, f.Expected)
		if f.Finished {
			how = "finished, " + plural(int(f.Settled), "item")
		}
		line("\nbackfill of table %s: %s", f.Table, how)
	}
}

// indented is a text of which no line passes for one of the page.
func indented(text string) string { return strings.ReplaceAll(text, "\n", "\n    ") }

func seconds(s float64) time.Duration {
	return time.Duration(s * float64(time.Second)).Round(time.Second)
}

// plural counts things whose name gets an s when they are several.
func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// heldFlows are the held items as metrics take them.
func heldFlows(all []lane) []flow.Held {
	held := make([]flow.Held, len(all))
	for i, l := range all {
		held[i] = flow.Held{Route: l.Route, Age: l.age}
	}
	return held
}

func polled(last time.Time) string {
	if last.IsZero() {
		return "never polled"
	}
	return fmt.Sprintf("polled %v ago", time.Since(last).Round(time.Second))
}

// letterCounts counts dead letters for no more than a fiftieth of the time: each count
// reads all of them. While a count hangs, as on a dead disk, get returns the one before.
type letterCounts struct {
	count func(context.Context) ([]deadletter.Count, error)

	counting singleflight.Group

	mu    sync.Mutex
	last  []deadletter.Count
	at    time.Time // of last
	tried time.Time // end of the last count, which may have failed
	took  time.Duration
}

const (
	countEvery  = 30 * time.Second // for metrics; whoever asks for the status gets a new count
	countWithin = 2 * time.Second  // longest wait of a request
	countOld    = 5 * time.Second  // age that the status shows
)

// get returns the counts and their time. It counts anew if the last count is older than
// every.
func (l *letterCounts) get(every time.Duration) ([]deadletter.Count, time.Time) {
	if l.due(every) {
		select {
		case <-l.counting.DoChan("", func() (any, error) { l.read(every); return nil, nil }):
		case <-time.After(countWithin):
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last, l.at
}

func (l *letterCounts) due(every time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tried.IsZero() || time.Since(l.tried) >= max(every, 50*l.took)
}

func (l *letterCounts) read(every time.Duration) {
	if !l.due(every) { // another call has counted since this one looked
		return
	}
	begin := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	counts, err := l.count(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tried = time.Now()
	l.took = l.tried.Sub(begin)
	// The code that lists letters reports unreadable ones.
	if counts != nil || err == nil {
		l.last, l.at = counts, begin
	}
}
