package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/handlers/cascade"
	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/daemon"
	"github.com/sluicehq/sluice/internal/page"
)

func runCommand(c *cli) *cobra.Command {
	var o daemon.Options
	var watch bool
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Read the tables' streams and queues, and handle their records",
		Long: `Read the tables' streams and the queues, and handle their records, until SIGTERM or
SIGINT.

` + daemon.Help,
		Example: `  sluice run --config /etc/sluice/orders.yaml --state /var/lib/sluice/state.db`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			app, o, env, err := c.program(cmd.Context(), cmd.Flags(), false)
			if err != nil {
				return err
			}
			return daemon.Run(cmd.Context(), app, o, env, c.stderr)
		},
	}
	o.AddFlags(cmd.Flags())
	addWatch(cmd.Flags(), &watch)
	return cmd
}

func addWatch(fs *pflag.FlagSet, watch *bool) {
	fs.BoolVar(watch, "watch", false, "reload the configuration when its files change ($"+watchEnv+")")
}

const watchEnv = "SLUICE_WATCH"

// program returns a daemon as its file, its flags and the environment describe it.
// connect also asks the services.
func (c *cli) program(ctx context.Context, flags *pflag.FlagSet, connect bool) (run daemon.App, o daemon.Options, env func(string) string, err error) {
	loaded, _ := c.digest() // before the file is read; load reports the error
	cfg, err := c.load()
	if err != nil {
		return run, o, nil, err
	}
	// A copy of the flags, as the environment and the file fill what they leave out.
	fs := pflag.NewFlagSet("run", pflag.ContinueOnError)
	o.AddFlags(fs)
	var watch bool
	addWatch(fs, &watch)
	flags.Visit(func(f *pflag.Flag) {
		if to := fs.Lookup(f.Name); to != nil { // else it is one of every command
			err = errors.Join(err, copyFlag(to, f))
		}
	})
	fromFile(fs.Changed, &o, cfg)
	if err := errors.Join(err, o.FromEnv(fs, c.env)); err != nil {
		return run, o, nil, err
	}
	if v := c.env(watchEnv); v != "" && !fs.Changed("watch") {
		if watch, err = strconv.ParseBool(v); err != nil {
			return run, o, nil, usage("%s=%q: want true or false", watchEnv, v)
		}
	}
	// Somebody who names the queues leaves those of the file's cascades to others.
	queues := fs.Changed("queue") || c.env("SLUICE_QUEUES") != ""
	// The file's handlers work on the tables that are read.
	cfg.Source.Tables, cfg.Source.Queues = o.Tables, o.Queues
	app, err := c.build(ctx, cfg, config.Setup{}) // tells its queues, and mistakes, before anything begins
	if err == nil && connect {
		err = errors.Join(c.checkState(cfg), c.connect(ctx, cfg, app))
	}
	if err != nil {
		return run, o, nil, err
	}
	if !queues {
		o.Queues = app.Queues
	}
	path, _ := c.path()
	o.StartName = "source.start of " + path + ":"
	if err := c.reach(&o, cfg); err != nil {
		return run, o, nil, err
	}
	o.Consumed = app.Consumed
	o.Repairs, o.Config = c.repairs(cfg), cfg.Fingerprint()
	if url := c.env(endpointVar("dynamodb")); o.Endpoint == "" || o.Endpoint == url { // else a flag has set it
		o.EndpointName = c.endpointName("dynamodb", cfg)
	}
	run = c.daemonApp(cfg, &o)
	run.Reloading = &daemon.Reloading{Watch: watch, Loaded: loaded, Digest: c.digest, Load: func(ctx context.Context) (daemon.App, daemon.Options, func(string) string, error) {
		return c.program(ctx, flags, true)
	}}
	return run, o, c.envWith(cfg), nil
}

// copyFlag gives a flag the value of another.
func copyFlag(to, from *pflag.Flag) error {
	to.Changed = true
	if list, ok := from.Value.(pflag.SliceValue); ok {
		return to.Value.(pflag.SliceValue).Replace(list.GetSlice())
	}
	return to.Value.Set(from.Value.String())
}

// digest identifies the content of the configuration and of the files that it names.
func (c *cli) digest() (string, error) {
	path, _ := c.path()
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is no regular file: it is read once", path)
	}
	return config.Digest(path, c.lookup)
}

// daemonApp makes what runs the file.
func (c *cli) daemonApp(cfg *config.Config, o *daemon.Options) daemon.App {
	var explain func(context.Context, *sluice.Record) []daemon.Explained // made with the routes
	o.Explain = func(ctx context.Context, rec *sluice.Record) []daemon.Explained { return explain(ctx, rec) }
	return daemon.App{Name: "sluice", Routes: func(start context.Context, s daemon.Setup) (sluice.Matcher, error) {
		// The daemon runs the checks, and continues without a sink that is
		// down.
		app, err := cfg.Build(start, config.Setup{AWS: s.AWS, Accounts: s.Accounts, Logger: s.Logger, Metrics: s.Metrics, Cascade: func(g cascade.Progress) {
			s.Cascade(page.Cascade{Table: g.Table, Parent: g.Parent, Deleted: g.Deleted, PerSecond: g.Rate, Seconds: g.Took.Seconds()}, g.Done)
		}})
		if err != nil {
			return nil, err
		}
		for _, one := range app.Checks {
			s.Check(one.Sink, one.Check, one.Routes...)
		}
		explain = c.explains(app)
		s.Background(func(ctx context.Context) { sweepEvery(ctx, app, s.Logger) })
		return app.Router, nil
	}}
}

// explains returns what says for the page what each route would do with a record.
func (c *cli) explains(app *config.App) func(context.Context, *sluice.Record) []daemon.Explained {
	return func(ctx context.Context, rec *sluice.Record) (all []daemon.Explained) {
		x := explainer{cli: c, app: app} // one for each record, as it counts
		for _, r := range x.explain(ctx, rec).Routes {
			one := daemon.Explained{Route: r.Route, Kind: r.Kind, Takes: r.Takes, Why: r.Why, Error: r.Error}
			for _, effect := range r.Effects {
				one.Effects = append(one.Effects, effectText(effect))
			}
			all = append(all, one)
		}
		return all
	}
}

// routesOf makes a file's routes with a daemon's setup.
func routesOf(cfg *config.Config) func(context.Context, daemon.Setup) (sluice.Matcher, error) {
	return func(ctx context.Context, s daemon.Setup) (sluice.Matcher, error) {
		app, err := cfg.Build(ctx, config.Setup{AWS: s.AWS, Accounts: s.Accounts, Logger: s.Logger, Metrics: s.Metrics, Check: true})
		if err != nil {
			return nil, err
		}
		return app.Router, nil
	}
}

// envWith is the environment, with the file's endpoints where it names none.
func (c *cli) envWith(cfg *config.Config) func(string) string {
	return func(name string) string {
		service, isEndpoint := strings.CutPrefix(name, endpointVar(""))
		if v := c.env(name); v != "" || !isEndpoint {
			return v
		}
		return cfg.AWS.Endpoints[strings.ToLower(service)]
	}
}

// fromFile sets what no flag has set from the file; the environment, which goes
// before it, comes after.
func fromFile(flag func(name string) bool, o *daemon.Options, cfg *config.Config) {
	set(flag("application"), &o.Application, cfg.Name)
	if !flag("table") {
		o.Tables = cfg.Source.Tables
	}
	if !flag("queue") {
		o.Queues = cfg.Source.Queues
	}
	set(flag("start"), &o.Start, cfg.Source.Start)
	set(flag("backfill"), &o.Backfill, cfg.Source.Backfill)
	set(flag("backfill-units"), &o.BackfillUnits, cfg.Source.BackfillUnits)
	set(flag("state"), &o.State, cfg.Daemon.State)
	set(flag("listen"), &o.Listen, cfg.Daemon.Listen)
	set(flag("token-file"), &o.TokenFile, cfg.Daemon.TokenFile)
	if !flag("allow-host") {
		o.AllowHosts = cfg.Daemon.AllowHosts
	}
	set(flag("require-sinks"), &o.RequireSinks, cfg.Daemon.RequireSinks)
	set(flag("pprof"), &o.Pprof, cfg.Daemon.Pprof)
	set(flag("grace"), &o.Grace, time.Duration(cfg.Daemon.Grace))
	set(flag("log-format"), &o.LogFormat, cfg.Daemon.LogFormat)
	set(flag("log-level"), &o.LogLevel, cfg.Daemon.LogLevel)
	set(flag("dead-letter"), &o.DeadLetter, cfg.DeadLetter.Park)
	o.TraceParent = cfg.Tracing.Parent
	o.Limits = flow.Options{
		Concurrency: cfg.Limits.Concurrency, Window: cfg.Limits.Window, WindowBytes: cfg.Limits.WindowBytes,
		HeldBytes: cfg.Limits.HeldBytes, MaxAhead: cfg.Limits.MaxAhead, StuckAfter: time.Duration(cfg.Limits.StuckAfter),
		MaxAge: time.Duration(cfg.DeadLetter.MaxAge),
	}
	if cfg.Limits.Order == "shard" {
		o.Limits.Order = flow.ByShard
	}
}

// set sets a value of the file, unless a flag set it. A missing value keeps the
// default.
func set[T comparable](flagged bool, to *T, value T) {
	var zero T
	if !flagged && value != zero {
		*to = value
	}
}
