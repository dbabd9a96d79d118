package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/sluicehq/sluice/internal/backoff"
	"github.com/sluicehq/sluice/internal/page"
	"github.com/sluicehq/sluice/internal/statestore"
)

// reloads replaces the configuration of a running process, one reload after another.
type reloads struct {
	p     *process
	life  context.Context // ends with the process
	up    chan struct{}   // closed when the process has begun
	turn  chan struct{}   // holds a value while a reload runs
	ready chan *change

	mu    sync.Mutex
	ended *page.Reload // the last one; nil: none yet
}

// change is a generation that is ready to replace the current one.
type change struct {
	next *generation
	done chan error // gets why it could not
}

func newReloads(life context.Context, p *process) *reloads {
	return &reloads{p: p, life: life, up: make(chan struct{}), turn: make(chan struct{}, 1), ready: make(chan *change)}
}

// last returns the last reload; nil: none yet.
func (l *reloads) last() *page.Reload {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended
}

// errEnds says that a reload failed after the old routes have ended.
var errEnds = errors.New("the process ends")

var errFixed = errors.New("the routes of this program are code, and cannot be reloaded: restart it")

// reload reads the configuration, checks it, and replaces the current one. by is who
// asks. Whatever fails before the replacement changes nothing.
func (l *reloads) reload(by string) (page.Reload, error) {
	if l.p.now().app.Reloading == nil {
		l.p.logger.Info("nothing is reloaded", "by", by, "error", errFixed)
		return page.Reload{Error: errFixed.Error()}, errFixed
	}
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-l.life.Done():
		return page.Reload{}, errStopping
	}
	begun := time.Now()
	outcome, err := l.try()
	if l.life.Err() != nil {
		return page.Reload{}, errStopping
	}
	r := &page.Reload{Outcome: outcome, At: time.Now(), Config: l.p.now().config}
	logger := everyLine(l.p.logger).With("by", by, "config", r.Config)
	switch outcome {
	case page.Reloaded:
		logger.Info("reloaded: the new configuration runs", "routes", len(l.p.now().m.Routes()), "took", time.Since(begun).Round(time.Millisecond))
	case page.Unchanged:
		logger.Info("the configuration has not changed: nothing is reloaded")
	default:
		r.Error = plain(err)
		what := "the configuration cannot be reloaded: the old one goes on"
		if errors.Is(err, errEnds) {
			what = "the reload has failed, and the process ends"
		}
		logger.Error(what, "error", r.Error)
	}
	l.p.counts.Reloaded(outcome)
	l.mu.Lock()
	l.ended = r
	l.mu.Unlock()
	return *r, err
}

func (l *reloads) try() (outcome string, err error) {
	now := l.p.now()
	from := now.app.Reloading
	if digest, err := from.Digest(); err == nil && digest == from.Loaded { // else Load says why
		return page.Unchanged, nil
	}
	next := &generation{}
	if next.app, next.o, next.env, err = from.Load(l.life); err != nil {
		return page.Failed, err
	}
	next.app = next.app.withDefaults()
	next.o = next.o.withDefaults(next.app)
	if err := next.o.validate(); err != nil {
		return page.Failed, err
	}
	if next.o.State, err = findState(next.o.State); err != nil {
		return page.Failed, err
	}
	if fixed := now.fixed(next); len(fixed) > 0 {
		return page.Failed, fmt.Errorf("these settings cannot change while the daemon runs: %s: restart it", strings.Join(fixed, ", "))
	}
	next.o.startTimeout, next.o.lockTimeout = now.o.startTimeout, now.o.lockTimeout
	if err := next.route(l.life, l.p); err != nil {
		return page.Failed, err
	}
	if err := next.source(l.life, l.p); err != nil {
		return page.Failed, err
	}
	if err := next.src.prepare(l.life); err != nil {
		next.src.ended()
		return page.Failed, err
	}
	c := &change{next, make(chan error, 1)}
	select {
	case l.ready <- c:
	case <-l.life.Done():
		return page.Failed, errStopping
	}
	select {
	case err = <-c.done:
	case <-l.life.Done():
		err = errStopping
	}
	if err != nil {
		return page.Failed, fmt.Errorf("%w: %w", errEnds, err)
	}
	return page.Reloaded, nil
}

// fixed names the settings that differ in next and cannot change in a running process.
func (g *generation) fixed(next *generation) (names []string) {
	o, n := g.o, next.o
	differs := func(name string, old, new any) {
		if !reflect.DeepEqual(old, new) {
			names = append(names, name)
		}
	}
	differs("name", o.Application, n.Application)
	differs("daemon.state", o.State, n.State)
	differs("daemon.listen", o.Listen, n.Listen)
	differs("daemon.tokenFile", o.TokenFile, n.TokenFile)
	differs("daemon.allowHosts", o.AllowHosts, n.AllowHosts)
	differs("daemon.logFormat", o.LogFormat, n.LogFormat)
	differs("tracing.parent", g.o.TraceParent, next.o.TraceParent)
	differs("daemon.logLevel", o.LogLevel, n.LogLevel)
	if _, inTable := statestore.Table(o.State); inTable { // which stays open
		access := func(g *generation) any {
			return []any{g.o.AWS, g.o.Region, g.o.Endpoint, g.env(endpointVar("dynamodb"))}
		}
		differs("aws", access(g), access(next))
		differs("source.aws", g.o.Source, next.o.Source) // else shards of another account stay claimed
	}
	return names
}

// hangup reloads at a SIGHUP, which may come before the process has begun.
func (l *reloads) hangup() {
	select {
	case <-l.up:
		_, _ = l.reload("SIGHUP") // logs
	case <-l.life.Done():
	}
}

// watch reloads when the files have changed, until ctx ends. It compares their content,
// twice the same: an editor may write a file in parts, and Kubernetes replaces a
// directory by a symbolic link. After watchRetry it tries a refused file again, because a
// service may have been down.
func (l *reloads) watch(ctx context.Context) {
	if from := l.p.now().app.Reloading; from == nil || !from.Watch {
		return
	}
	seen := l.p.now().app.Reloading.Loaded
	tried, refused := seen, time.Time{}
	for backoff.Sleep(ctx, watchEvery) == nil {
		before := seen
		var err error
		if seen, err = l.p.now().app.Reloading.Digest(); err != nil {
			seen = err.Error()
		}
		// It runs, perhaps by a reload at a signal. After a failure the reload says so.
		if last := l.last(); seen == l.p.now().app.Reloading.Loaded && (last == nil || last.Outcome != page.Failed) {
			tried, refused = seen, time.Time{}
			continue
		}
		if again := !refused.IsZero() && time.Since(refused) >= watchRetry; seen == before && (seen != tried || again) {
			tried, refused = seen, time.Time{}
			if _, err := l.reload("--watch"); err != nil { // which logs it
				refused = time.Now()
			}
		}
	}
}

var (
	watchEvery = 2 * time.Second // between two looks at the files
	watchRetry = time.Minute
)

// handler answers POST /reload once the reload has ended.
func (l *reloads) handler(state, application string) http.Handler {
	return meantFor(state, application, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // the old routes may drain for the whole grace
		r, err := l.reload("HTTP")
		switch {
		case errors.Is(err, errStopping):
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		case err != nil:
			http.Error(w, r.Error, http.StatusUnprocessableEntity)
		default:
			page.WriteJSON(w, r)
		}
	}))
}
