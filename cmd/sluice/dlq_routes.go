package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/daemon"
)

// ofTables is the routes of a file for the tables and queues of the file. A dead
// letter of another application may name a route as this one does: it would be
// handled by the wrong one, and deleted.
func ofTables(cfg *config.Config, app *config.App, file string) sluice.Matcher {
	return daemon.OfTables{Matcher: app.Router, Tables: tablesOf(cfg), Queues: app.Queues, Refuse: func(kind, name string, known []string) error {
		return fmt.Errorf("%s %s is none of %s (%s): name the configuration that the dead letter is of by --config, or write the %[1]s under source.%[1]ss", kind, name, file, strings.Join(known, ", "))
	}}
}

// warnOfRoute warns if there is a configuration without a route of that name. That
// is not an error: dead letters may be of a former route, and a program has routes
// outside of the configuration.
func (p *letterPlace) warnOfRoute(ctx context.Context, name string) {
	if name == "" || p.file != "" {
		return
	}
	cfg, err := p.c.loadMaybe()
	if err != nil || cfg == nil {
		return // reported where it matters
	}
	app, err := p.c.buildToCheck(ctx, cfg)
	if err != nil {
		return
	}
	names := mapped(app.Routes, func(r config.BuiltRoute) string { return r.Name })
	if path, _ := p.c.path(); !slices.Contains(names, name) {
		fmt.Fprintf(p.c.stderr, "warning: %s has no route %q%s\n", path, name, didYouMean(name, names))
	}
}

// noneOfRoute says, when no dead letter has a route, which routes they have.
func (c *cli) noneOfRoute(ctx context.Context, l *lettersOpen, name string) error {
	counts, err := l.api.counts(ctx)
	if err != nil {
		return err
	}
	var names []string
	for _, one := range counts.Counts {
		switch {
		case one.Route == name:
			return nil // the other filters leave its letters out
		case one.Route != "" && !slices.Contains(names, one.Route):
			names = append(names, one.Route)
		}
	}
	have := "it has none of any route"
	if len(names) > 0 {
		have = "it has some of " + strings.Join(names, ", ")
	}
	fmt.Fprintf(c.stderr, "no dead letter of the route %q is in %s: %s\n", name, l.where, have)
	return nil
}
