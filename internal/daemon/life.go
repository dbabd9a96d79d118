package daemon

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/term"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/backoff"
)

const (
	lifeOnTerminal = 10 * time.Second // between two lines
	lifeInLog      = time.Minute
)

// life counts what routes have handled, for lines that say that the daemon lives.
type life struct {
	routes   []routeLife // by their index
	unrouted atomic.Int64
	terminal io.Writer // nil: the log alone
}

type routeLife struct {
	name            string
	handled, parked atomic.Int64 // since the last line
	lag             atomic.Int64 // the largest of those, in nanoseconds; on a terminal alone
	begun           atomic.Bool  // it has handled a record
}

func newLife(m sluice.Matcher, o Options, stderr io.Writer) *life {
	l := &life{routes: make([]routeLife, len(m.Routes()))}
	for i, r := range m.Routes() {
		l.routes[i].name = r.Name
	}
	if file, ok := stderr.(interface{ Fd() uintptr }); ok && o.LogFormat == "text" && term.IsTerminal(int(file.Fd())) {
		l.terminal = stderr
	}
	return l
}

// handled counts a record: see flow.Hooks.
func (l *life) handled(_ context.Context, rec *sluice.Record, route *sluice.Route, r flow.Result, _ time.Duration, _ error) {
	switch {
	case route == nil && r == flow.Unrouted:
		l.unrouted.Add(1)
	case route == nil:
	case r == flow.Done || r == flow.Skipped:
		of := &l.routes[route.Index]
		of.handled.Add(1)
		if l.terminal != nil {
			l.shown(of, rec, r)
		}
	case r == flow.Parked:
		l.routes[route.Index].parked.Add(1)
	}
}

// shown shows a route's first record, and notes the lag of each.
func (l *life) shown(of *routeLife, rec *sluice.Record, r flow.Result) {
	if !of.begun.Load() && !of.begun.Swap(true) {
		l.first(rec, of.name, r)
	}
	if rec.Origin != sluice.Live || rec.Created.IsZero() {
		return
	}
	lag := int64(time.Since(rec.Created))
	for old := of.lag.Load(); lag > old && !of.lag.CompareAndSwap(old, lag); old = of.lag.Load() {
	}
}

// first shows a route's first record.
func (l *life) first(rec *sluice.Record, route string, r flow.Result) {
	what := string(rec.EventName)
	if rec.Table != "" {
		what += " of table " + rec.Table
	}
	if rec.Origin == sluice.Live && !rec.Created.IsZero() { // to the second, as the service has it
		what += fmt.Sprintf(", %v after it", max(0, time.Since(rec.Created)).Round(time.Second))
	}
	fmt.Fprintf(l.terminal, "%s  route %s: first record %s: %s\n", clock(), route, r, what)
}

func clock() string { return time.Now().Format(time.TimeOnly) }

// watch writes a line every 10 s on a terminal, and else one a minute to the log,
// until ctx ends. lag is nil where no stream is read; waiting counts items.
func (l *life) watch(ctx context.Context, logger *slog.Logger, lag func() time.Duration, waiting func() int) {
	every := lifeInLog
	if l.terminal != nil {
		every = lifeOnTerminal
	}
	for backoff.Sleep(ctx, every) == nil {
		if l.terminal == nil {
			handled, parked := l.reset()
			args := []any{"handled", handled, "parked", parked, "unrouted", l.unrouted.Swap(0), "waiting", waiting()}
			if lag != nil {
				args = append(args, "lag", lag().Round(time.Second))
			}
			logger.Info("the last minute", args...)
			continue
		}
		text := l.summary(every)
		if lag != nil {
			text += fmt.Sprintf("; oldest unsettled %v", lag().Round(time.Second))
		}
		if n := waiting(); n > 0 {
			text += fmt.Sprintf("; %s (sluice status --held)", plural(n, "waiting item"))
		}
		fmt.Fprintf(l.terminal, "%s  %s\n", clock(), text)
	}
}

// reset returns the counts of all routes, and sets them to 0.
func (l *life) reset() (handled, parked int64) {
	for i := range l.routes {
		handled += l.routes[i].handled.Swap(0)
		parked += l.routes[i].parked.Swap(0)
	}
	return handled, parked
}

// summary says what each route did, and sets the counts to 0.
func (l *life) summary(within time.Duration) string {
	var parts []string
	for i := range l.routes {
		r := &l.routes[i]
		handled, parked := r.handled.Swap(0), r.parked.Swap(0)
		if handled == 0 && parked == 0 {
			continue
		}
		part := r.name + " " + rate(handled, within)
		var more []string
		if lag := time.Duration(r.lag.Swap(0)).Round(time.Second); lag > 0 {
			more = append(more, "lag "+lag.String())
		}
		if parked > 0 {
			more = append(more, fmt.Sprintf("%d parked", parked))
		}
		if len(more) > 0 {
			part += " (" + strings.Join(more, ", ") + ")"
		}
		parts = append(parts, part)
	}
	if n := l.unrouted.Swap(0); n > 0 {
		parts = append(parts, "no route "+rate(n, within))
	}
	if len(parts) == 0 {
		return "no records"
	}
	return strings.Join(parts, ", ")
}

func rate(n int64, within time.Duration) string {
	perSecond := float64(n) / within.Seconds()
	if perSecond >= 10 || perSecond == 0 {
		return fmt.Sprintf("%.0f/s", perSecond)
	}
	return fmt.Sprintf("%.1f/s", perSecond)
}
