package daemon

import (
	"cmp"
	"context"
	"crypto/rand"
	"io"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/access"
	"github.com/sluicehq/sluice/internal/buildversion"
	"github.com/sluicehq/sluice/internal/holders"
	"github.com/sluicehq/sluice/internal/letters"
	"github.com/sluicehq/sluice/internal/page"
	"github.com/sluicehq/sluice/internal/scrape"
	"github.com/sluicehq/sluice/internal/statestore"
	"github.com/sluicehq/sluice/metrics/prom"
)

// process is what lasts while generations of routes come and go.
type process struct {
	logger    *slog.Logger
	stderr    io.Writer
	registry  *prometheus.Registry
	counts    *prom.Metrics
	tracer    flow.Tracer // nil: none
	store     statestore.Store
	box       *letters.Box
	fleet     holders.Fleet // nil: the state is a file
	throttles *throttles
	pulse     *pulse
	parked    *letterCounts
	guard     *access.Guard // nil: nothing is served
	reloads   *reloads
	started   time.Time
	check     string // what to check when the state hangs

	current atomic.Pointer[shownGeneration]
}

// shownGeneration is a generation with its endpoints.
type shownGeneration struct {
	*generation
	endpoints http.Handler // nil: nothing is served
}

func (p *process) now() *generation { return p.current.Load().generation }
func (p *process) src() *sources    { return p.now().src }

// show makes g the generation that everybody sees. Redrives of it end with ctx.
func (p *process) show(ctx context.Context, g *generation) {
	p.throttles.use(g.src.group, g.src.poller != nil, g.src.consumer != nil || len(g.src.backfills.all) > 0)
	s := &shownGeneration{generation: g}
	if p.guard != nil {
		s.endpoints = p.endpoints(ctx, g)
	}
	p.current.Store(s)
}

// guardBy makes the guard of the endpoints.
func (p *process) guardBy(o Options, env func(string) string) error {
	token, file, err := o.token(env)
	if err != nil {
		return err
	}
	p.guard = access.NewGuard(cmp.Or(token, rand.Text()), o.AllowHosts...)
	switch {
	case token == "":
		p.logger.Info("the daemon refuses commands such as sluice status, because it has no token: set " + access.TokenEnv + " for the daemon and for the commands")
	case file != "":
		p.logger.Info("requests that read items or change something need the token of this file; commands on this machine find it", "file", file)
	}
	return nil
}

// listen serves the endpoints of the generation that is current.
func (p *process) listen(address string) (*server, error) {
	return serve(address, endpoints{
		"/": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			p.current.Load().endpoints.ServeHTTP(w, r)
		}),
		"GET /livez":    Livez(p.now().o.Application, func() string { return p.pulse.dead() }),
		"GET /startedz": startedz(func() string { return p.src().starting() }),
		"GET /metrics":  scrape.Handler(p.registry),
	}, p.unready, p.logger)
}

// unready says why the daemon does not do its work, in full to those with its token.
func (p *process) unready(r *http.Request) []string {
	src := p.src()
	reasons := whereToLook(src.unready(), len(src.waiting()))
	if !p.guard.Knows(r) {
		states := src.lastStates()
		reasons = append(forEverybody(reasons, states), src.calls.forEverybody(states, time.Now())...)
		reasons = append(reasons, src.checks.forEverybody()...)
	}
	return reasons
}

// status is what the process knows of itself, without the tables.
func (p *process) status(g *generation) page.Status {
	st := g.src.status()
	st.Application, st.Version, st.Config, st.Started = g.o.Application, buildversion.Get(), g.config, p.started
	st.DeadLetters, st.CountedAt = p.parked.get(0)
	st.Cascades, st.Reload = g.cascades.now(), p.reloads.last()
	return st
}

// endpoints show or change a generation.
func (p *process) endpoints(ctx context.Context, g *generation) http.Handler {
	o, src := g.o, g.src
	of := &letterServer{ctx: ctx, box: p.box, routes: g.m, fetch: Fetch(g.aws("dynamodb")), logger: p.logger}
	dlq, routes := of.handler(o.State), p.throttles.routes(o.State)
	seen := &shown{letterServer: of, o: o, src: src, status: func() page.Status { return p.status(g) }}
	if p.fleet != nil {
		seen.fleet = &fleetView{fleet: p.fleet, application: o.Application}
	}
	pages := page.New(seen, o.Application, p.fleet != nil)
	forOperators := endpoints{
		"GET /gaps":              listGaps(src, o.Repairs),
		"POST /gaps/acknowledge": acknowledgeGaps(src, p.logger),
		"/deadletters":           dlq, "/deadletters/": dlq,
		"POST /park": Parking(o.State, o.Application, src, p.logger),
		"/routes":    routes, "/routes/": routes,
		"POST /reload": p.reloads.handler(o.State, o.Application),
		"/api/":        pages,
	}
	if o.Pprof {
		forOperators["/debug/pprof/"] = profiles()
	}
	mux := http.NewServeMux()
	for pattern, h := range forOperators {
		mux.Handle(pattern, p.guard.Protect(h))
	}
	door := p.guard.ProtectOr(pages, page.Locked(p.unready))
	mux.Handle("/page/", door)
	mux.Handle("GET /page/static/", page.Static())
	mux.Handle("GET /{$}", wanted(door, p.guard.Protect(page.Text(seen))))
	mux.Handle("/session", p.guard.Sessions())
	mux.Handle("/session/", p.guard.Sessions())
	return mux
}
