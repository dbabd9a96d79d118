package main

import (
	"context"
	"path"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/statestore"
	"github.com/sluicehq/sluice/sources/poller"
)

var completionEnd = time.Second // longest wait of a user at a shell; tests on a busy machine wait longer

const completionHelp = `Print a script with which your shell completes commands, flags and their values: the
routes, tables and queues of the configuration, the ids of dead letters, and the
tables and applications of a stopped daemon's state file.

Each shell has its own script. The help of its command says where to put it.`

// completeRest is for the flags and arguments that no command has spoken for: a
// shell proposes the names that are known, files where one is meant, and else
// nothing.
func (c *cli) completeRest(cmd *cobra.Command) {
	cmd.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	names := map[string]func() []string{
		"table": c.ofFile(sourceTables), "route": c.routeNames(), "type": c.ofFile(typeNames),
		"queue": c.ofFile(func(cfg *config.Config) []string { return cfg.Source.Queues }),
		"start": fixed(poller.TrimHorizon, poller.Latest), "kind": fixed("record", "gap"), "dead-letter": fixed("record", "item"),
		"log-format": fixed("text", "json"), "log-level": fixed("debug", "info", "warn", "error"), "opensearch-sign": fixed("es", "aoss"),
	}
	each := func(f *pflag.Flag) {
		_, spoken := cmd.GetFlagCompletionFunc(f.Name)
		value, _ := pflag.UnquoteUsage(f)
		switch {
		case spoken:
		case value == "file":
			_ = cmd.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault))
		case f.Name == "application":
			_ = cmd.RegisterFlagCompletionFunc(f.Name, c.completeApplications)
		case names[f.Name] != nil:
			completeBy(cmd, f.Name, names[f.Name])
		}
	}
	cmd.Flags().VisitAll(each)
	cmd.PersistentFlags().VisitAll(each)
	for _, sub := range cmd.Commands() {
		c.completeRest(sub)
	}
}

func fixed(values ...string) func() []string { return func() []string { return values } }

// ofFile are names that the file has, for a shell; none when it cannot be read.
func (c *cli) ofFile(names func(*config.Config) []string) func() []string {
	return func() (once []string) {
		cfg, err := c.loadMaybe()
		if err != nil || cfg == nil {
			return nil
		}
		for _, name := range names(cfg) {
			if name != "" && !slices.Contains(once, name) {
				once = append(once, name)
			}
		}
		return once
	}
}

func sourceTables(cfg *config.Config) []string { return cfg.Source.Tables }

// typeNames are the entity types that routes of the file name.
func typeNames(cfg *config.Config) (names []string) {
	for _, r := range cfg.Routes {
		names = append(names, r.Types()...)
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "*" })
}

// letterTables are what dead letters say that they are of.
func letterTables(cfg *config.Config) []string {
	names := tablesOf(cfg)
	for _, q := range cfg.Source.Queues {
		names = append(names, path.Base(q))
	}
	return names
}

// counterTables have the counters of the file's routes.
func counterTables(cfg *config.Config) (names []string) {
	for _, r := range cfg.Routes {
		if r.Count != nil {
			for _, n := range r.Count.Numbers {
				names = append(names, n.Table)
			}
		}
	}
	return names
}

// completeApplications proposes those of the state file that the command is about.
func (c *cli) completeApplications(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	var path string
	if f := cmd.Flag("state"); f != nil && f.Changed {
		path = f.Value.String()
	}
	return c.inState(cmd.Context(), path, func(ctx context.Context, store statestore.Store, _ *config.Config) []string {
		apps, _ := store.Applications(ctx)
		return apps
	}), cobra.ShellCompDirectiveNoFileComp
}

// inState finds names in a state file, unless a process holds it.
func (c *cli) inState(ctx context.Context, flag string, find func(context.Context, statestore.Store, *config.Config) []string) []string {
	return soon(ctx, func(ctx context.Context) []string {
		cfg, err := c.loadMaybe()
		if err != nil {
			return nil
		}
		store, err := c.openState(ctx, c.statePath(flag, cfg), cfg, time.Nanosecond)
		if err != nil {
			return nil
		}
		defer func() { _ = store.Close() }()
		return find(ctx, store, cfg)
	})
}

// soon returns what find returns within a second.
func soon[T any](ctx context.Context, find func(context.Context) []T) []T {
	ctx, cancel := context.WithTimeout(ctx, completionEnd)
	defer cancel()
	found := make(chan []T, 1)
	go func() { found <- find(ctx) }() // opening a file does not heed ctx
	select {
	case all := <-found:
		return all
	case <-ctx.Done():
		return nil
	}
}
