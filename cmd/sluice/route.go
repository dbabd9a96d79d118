package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/daemon"
	"github.com/sluicehq/sluice/internal/holders"
	"github.com/sluicehq/sluice/internal/pauses"
	"github.com/sluicehq/sluice/internal/statestore"
)

const noFunctions = "the routes of a Lambda function cannot be paused, because the service would retry the batch and drop it at its age: disable the event source mapping instead"

func routeCommand(c *cli) *cobra.Command {
	return commandGroup(&cobra.Command{
		Use:   "route",
		Short: "Pause, slow and resume routes",
		Long: `Pause, slow and resume routes of the running daemon. With a state table the command
changes the table, and all workers follow within seconds.

The records of a paused route wait, in order, and other routes go on. But a shard's
position stands still. Its other routes wait, too, when its window is full (4,096
records) or the shard ends (within 4 hours). The stream forgets a record 24 hours
after its change: sluice route list shows how long that is.

The routes of a Lambda function cannot be paused. Disable its event source mapping.`,
		Example: `  sluice route list
  sluice route pause search --for 1h
  sluice route slow search --concurrency 4 --for 1h
  sluice route resume search`,
	}, routeListCommand(c), routePauseCommand(c), routeSlowCommand(c), routeResumeCommand(c))
}

// routePlace is where the routes are that a command is about.
type routePlace struct {
	letterPlace
	json bool
}

func newRoutePlace(c *cli, cmd *cobra.Command, changes bool) *routePlace {
	p := &routePlace{letterPlace: letterPlace{c: c, routes: true, changes: changes}}
	fs := cmd.Flags()
	fs.BoolVar(&p.json, "json", false, "print a JSON object")
	p.addDaemonFlag(fs)
	fs.StringVar(&p.state, "state", "", stateUsage)
	p.addApplicationFlag(fs)
	return p
}

func routeListCommand(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the routes, and which are paused or slowed",
		Long: `List the routes, with their pauses. A daemon also shows how many records wait, and when
the stream forgets the oldest.`,
		Example: `  sluice route list --json | jq '.routes[] | select(.paused).route'`,
	}
	p := newRoutePlace(c, cmd, false)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return p.with(cmd.Context(), func(r routesOpen) error {
			all, err := r.list(cmd.Context())
			if err != nil {
				return err
			}
			if p.json {
				return printJSON(c.stdout, all)
			}
			t := &table{heads: []string{"ROUTE", "STATE", "WAITING", "THROTTLE"}}
			for _, one := range all.Routes {
				t.row(one.Route, cmp.Or(one.State, "-"), one.Waiting, cmp.Or(one.Text(), "-"))
			}
			return t.print(c.stdout, c.stderr, "--json has all of it")
		})
	}
	return cmd
}

func routePauseCommand(c *cli) *cobra.Command {
	return throttling(c, &cobra.Command{
		Use:   "pause ROUTE",
		Short: "Pause a route for a time",
		Long: `Pause a route for a time, of 12 hours at most. Calls that run end; no other begins.
The route goes on by itself. Exit code 3: the pause is stored, but no worker runs.`,
		Example: `  sluice route pause 'new search' --for 1h`,
	}, false)
}

func routeSlowCommand(c *cli) *cobra.Command {
	return throttling(c, &cobra.Command{
		Use:   "slow ROUTE",
		Short: "Slow a route for a time",
		Long: `Slow a route for a time, of 12 hours at most. Say how many calls may run at a time, how
many records a second, or both. Each worker counts its own. Limits of the configuration
stay. Exit code 3: that is stored, but no worker runs.`,
		Example: `  sluice route slow search --concurrency 4 --for 1h
  sluice route slow search --rate 20 --for 30m`,
	}, true)
}

// throttling makes cmd a command that pauses a route, or slows it.
func throttling(c *cli, cmd *cobra.Command, slows bool) *cobra.Command {
	fs := cmd.Flags()
	var length time.Duration
	var concurrency int
	var rate float64
	if slows {
		fs.IntVar(&concurrency, "concurrency", 0, "`calls` at a time, of each worker")
		fs.Float64Var(&rate, "rate", 0, "`records` a second, of each worker")
	}
	fs.DurationVar(&length, "for", 0, "`time` until the route goes on by itself, such as 1h; at most 12h")
	p := newRoutePlace(c, cmd, true)
	oneRoute(c, cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !fs.Changed("for") {
			return usage("say by --for how long, such as --for 1h: the stream forgets a record 24 hours after its change")
		}
		for name, value := range map[string]float64{"concurrency": float64(concurrency), "rate": rate} {
			if fs.Changed(name) && !(value > 0) {
				return usage("--%s: want more than 0; sluice route pause starts no call at all", name)
			}
		}
		if slows && concurrency == 0 && rate == 0 {
			return usage("say by --concurrency or --rate how slow")
		}
		pause := pauses.New(args[0], length, concurrency, rate)
		if err := pause.Check(); err != nil {
			return usage("--%w", err)
		}
		return p.with(cmd.Context(), func(r routesOpen) error {
			return p.report(r.set(cmd.Context(), pause))
		})
	}
	return cmd
}

func routeResumeCommand(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "resume ROUTE",
		Short:   "End the pause of a route",
		Long:    `End the pause of a route, or its slowing, before its time.`,
		Example: `  sluice route resume 'new search'`,
	}
	p := newRoutePlace(c, cmd, true)
	oneRoute(c, cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return p.with(cmd.Context(), func(r routesOpen) error {
			return p.report(r.end(cmd.Context(), args[0]))
		})
	}
	return cmd
}

// oneRoute has cmd take the name of one route.
func oneRoute(c *cli, cmd *cobra.Command) {
	cmd.ValidArgsFunction = firstArgument(c.routeNames())
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) != 1 || args[0] == "" {
			return usage("name one route, such as %s search --for 1h: sluice route list has the names", cmd.CommandPath())
		}
		return nil
	}
}

// report prints a change.
func (p *routePlace) report(r daemon.RouteChange, err error) error {
	if err != nil {
		return err
	}
	out := p.c.stdout
	if r.Warning != "" && !r.Idle {
		fmt.Fprintln(p.c.stderr, plain(r.Warning))
	}
	was, stored := "", ""
	if r.Idle {
		stored = "stored: "
	}
	if r.Before != nil && r.Before.LeftSeconds > 0 {
		was = " (was " + r.Before.Text() + ")"
	}
	switch {
	case p.json:
		err = printJSON(out, r)
	case r.Throttled():
		_, err = fmt.Fprintf(out, "%sroute %s is %s%s\n", stored, plain(r.Route), r.Text(), was)
		if err == nil && r.Paused && !r.Idle {
			_, err = fmt.Fprintln(out, "Its records wait, and positions of shards with it. Other routes of a shard go on until the shard ends or its window is full.")
		}
	case r.Before == nil:
		_, err = fmt.Fprintf(out, "route %s was not paused\n", plain(r.Route))
	default:
		_, err = fmt.Fprintf(out, "route %s is resumed%s\n", plain(r.Route), was)
	}
	if err == nil && r.Idle {
		err = &findings{r.Warning}
	}
	return err
}

// routesOpen are the routes of one application, of a daemon or in the state.
type routesOpen interface {
	list(ctx context.Context) (daemon.Routes, error)
	set(ctx context.Context, p pauses.Pause) (daemon.RouteChange, error)
	end(ctx context.Context, route string) (daemon.RouteChange, error)
}

// with runs do on the routes of the daemon, or else of the state.
func (p *routePlace) with(ctx context.Context, do func(routesOpen) error) error {
	if daemon.UnderLambda(p.c.env) {
		return errors.New(noFunctions)
	}
	if err := p.notEmpty(); err != nil {
		return err
	}
	if p.daemon != "" && p.state != "" {
		return usage("name one of --daemon and --state")
	}
	cfg, invalid := p.c.loadMaybe()
	o, store, err := p.find(ctx, cfg, invalid)
	if err != nil {
		return err
	}
	if o != nil {
		return errors.Join(do(daemonRoutes{o.api}), o.close())
	}
	return errors.Join(do(storedRoutes{store, p.name(cfg), cfg}), store.Close())
}

// daemonRoutes are the routes of a running daemon.
type daemonRoutes struct{ api *letterClient }

func (d daemonRoutes) list(ctx context.Context) (all daemon.Routes, err error) {
	err = d.api.get(ctx, "GET", "/routes", nil, &all)
	return all, err
}

func (d daemonRoutes) set(ctx context.Context, p pauses.Pause) (r daemon.RouteChange, err error) {
	path, q := "/routes/pause", url.Values{"route": {p.Route}, "for": {p.For.String()}}
	if !p.Paused() {
		path = "/routes/slow"
	}
	if p.Concurrency > 0 {
		q.Set("concurrency", strconv.Itoa(p.Concurrency))
	}
	if p.Rate > 0 {
		q.Set("rate", strconv.FormatFloat(p.Rate, 'g', -1, 64))
	}
	err = d.api.get(ctx, "POST", path, q, &r)
	return r, err
}

func (d daemonRoutes) end(ctx context.Context, route string) (r daemon.RouteChange, err error) {
	err = d.api.get(ctx, "POST", "/routes/resume", url.Values{"route": {route}}, &r)
	return r, err
}

// storedRoutes are the pauses in a state, of the routes of a configuration.
type storedRoutes struct {
	store statestore.Store
	app   string
	cfg   *config.Config
}

// names are those of the file; none without a file.
func (s storedRoutes) names() []string {
	return mapped(cmp.Or(s.cfg, new(config.Config)).Routes, func(r config.Route) string { return r.Name })
}

func (s storedRoutes) list(ctx context.Context) (daemon.Routes, error) {
	all := daemon.Routes{Routes: mapped(s.names(), func(name string) daemon.RouteStatus { return daemon.RouteStatus{Route: name} })}
	stored, err := pauses.Read(ctx, s.store, s.app)
	if err != nil {
		return all, err
	}
	for _, p := range stored {
		left := time.Until(p.Until())
		if left <= 0 {
			continue
		}
		one := daemon.StatusOf(p, left)
		if i := slices.IndexFunc(all.Routes, func(r daemon.RouteStatus) bool { return r.Route == p.Route }); i >= 0 {
			all.Routes[i] = one
		} else {
			all.Routes = append(all.Routes, one)
		}
	}
	return all, nil
}

func (s storedRoutes) set(ctx context.Context, p pauses.Pause) (daemon.RouteChange, error) {
	switch names := s.names(); {
	case s.cfg == nil:
		return daemon.RouteChange{}, errors.New("the names of the routes are not known: name the configuration by --config, or the daemon by --daemon")
	case !slices.Contains(names, p.Route):
		return daemon.RouteChange{}, daemon.NoSuchRoute(p.Route, names)
	}
	idle, err := s.idle(ctx)
	if err != nil {
		return daemon.RouteChange{}, err
	}
	if idle && s.cfg.DeadLetter.Queue != "" { // a function's, not a daemon's
		return daemon.RouteChange{}, fmt.Errorf("no daemon runs these routes: %s", noFunctions)
	}
	r, err := daemon.ChangeOf(pauses.Set(ctx, s.store, s.app, p))
	r.RouteStatus = daemon.StatusOf(p, p.For)
	if idle {
		r.Idle, r.Warning = true, fmt.Sprintf("no worker of application %s runs: a worker that starts before the end follows, and a Lambda function does not", s.app)
	}
	return r, err
}

// idle reports that no worker runs the routes. It is not known of a daemon that reads
// only queues, which is in no table.
func (s storedRoutes) idle(ctx context.Context) (bool, error) {
	fleet, shared := s.store.(holders.Fleet)
	if !shared { // a daemon would hold the file
		return true, nil
	}
	if len(s.cfg.Source.Tables) == 0 {
		return false, nil
	}
	all, err := fleet.Workers(ctx, s.app)
	return !slices.ContainsFunc(all, func(w holders.Worker) bool { return w.State == holders.Living }), err
}

func (s storedRoutes) end(ctx context.Context, route string) (daemon.RouteChange, error) {
	r, err := daemon.ChangeOf(pauses.End(ctx, s.store, s.app, route))
	r.RouteStatus = daemon.RouteStatus{Route: route}
	if names := s.names(); err == nil && r.Before == nil && !slices.Contains(names, route) {
		if len(names) == 0 {
			return r, fmt.Errorf("no route %q is paused", route)
		}
		return r, daemon.NoSuchRoute(route, names)
	}
	return r, err
}
