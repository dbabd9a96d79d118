package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/daemon"
)

func runCommand(c *cli) *cobra.Command {
	var o daemon.Options
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Read the tables' streams and queues, and handle their records",
		Long: `Read the tables' streams and the queues, and handle their records, until SIGTERM or
SIGINT.

` + daemon.Help,
		Example: `  sluice run --config /etc/sluice/orders.yaml --state /var/lib/sluice/state.db

  # From the oldest record that the streams still hold
  sluice run --start TRIM_HORIZON`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := c.load()
			if err != nil {
				return err
			}
			fromFile(cmd.Flags().Changed, &o, cfg)
			if err := o.FromEnv(cmd.Flags(), c.env); err != nil {
				return err
			}
			queues := cmd.Flags().Changed("queue") || c.env("SLUICE_QUEUES") != ""
			return c.daemon(cmd.Context(), cfg, o, queues)
		},
	}
	o.AddFlags(cmd.Flags())
	completeBy(cmd, "table", c.tableNames)
	return cmd
}

// daemon runs what the file describes. queues says that somebody has named the
// queues, so that those of the file's cascades are left to others.
func (c *cli) daemon(ctx context.Context, cfg *config.Config, o daemon.Options, queues bool) error {
	// The file's handlers work on the tables that are read.
	cfg.Source.Tables, cfg.Source.Queues = o.Tables, o.Queues
	app, err := c.build(ctx, cfg, false) // tells its queues, and mistakes, before anything begins
	if err != nil {
		return err
	}
	if !queues {
		o.Queues = app.Queues
	}
	path, _ := c.path()
	o.StartName = "source.start of " + path + ":"
	if err := c.reach(&o, cfg); err != nil {
		return err
	}
	o.Consumed = app.Consumed
	o.Repairs, o.Config = c.repairs(cfg), cfg.Fingerprint()
	if url := c.env(endpointVar("dynamodb")); o.Endpoint == "" || o.Endpoint == url { // else a flag has set it
		o.EndpointName = c.endpointName("dynamodb", cfg)
	}
	var explain func(context.Context, *sluice.Record) []daemon.Explained // made with the routes
	o.Explain = func(ctx context.Context, rec *sluice.Record) []daemon.Explained { return explain(ctx, rec) }
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	routes := func(start context.Context, s daemon.Setup) (sluice.Matcher, error) {
		// The daemon runs the checks, and continues without a sink that is
		// down.
		app, err := cfg.Build(start, config.Setup{AWS: s.AWS, Accounts: s.Accounts, Logger: s.Logger, Metrics: s.Metrics})
		if err != nil {
			return nil, err
		}
		for _, one := range app.Checks {
			s.Check(one.Sink, one.Check, one.Routes...)
		}
		if explain, err = c.explains(cfg, app); err != nil {
			return nil, err
		}
		go sweepEvery(ctx, app, s.Logger)
		return app.Router, nil
	}
	return daemon.Run(ctx, daemon.App{Name: "sluice", Routes: routes}, o, c.envWith(cfg), c.stderr)
}

// explains returns what says for the page what each route would do with a record.
func (c *cli) explains(cfg *config.Config, app *config.App) (func(context.Context, *sluice.Record) []daemon.Explained, error) {
	routes, err := fileRoutes(cfg, app)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, rec *sluice.Record) (all []daemon.Explained) {
		x := explainer{cli: c, app: app, routes: routes} // one for each record, as it counts
		for _, r := range x.explain(ctx, rec).Routes {
			one := daemon.Explained{Route: r.Route, Kind: r.Kind, Takes: r.Takes, Why: r.Why, Error: r.Error}
			for _, effect := range r.Effects {
				one.Effects = append(one.Effects, effectText(effect))
			}
			all = append(all, one)
		}
		return all
	}, nil
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
		if v := c.env(name); v != "" {
			return v
		}
		for service, url := range cfg.AWS.Endpoints {
			if name == endpointVar(service) {
				return url
			}
		}
		return ""
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
