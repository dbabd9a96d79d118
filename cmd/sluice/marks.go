package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/config"
	"github.com/sluicehq/sluice/sinks/opensearch/indices"
)

// marked are the indices whose documents are versioned by sequence, by name, each
// with one of its routes. Those whose names are templates are left out.
func marked(app *config.App) (routes []config.BuiltRoute, templates bool) {
	seen := map[string]bool{}
	for _, r := range app.Routes {
		p := r.Projection
		switch {
		case p == nil || p.Marks == nil:
		case strings.Contains(p.Options.Index, "{"):
			templates = true
		case !seen[p.Options.Index]:
			seen[p.Options.Index] = true
			routes = append(routes, r)
		}
	}
	return routes, templates
}

// sweepEvery deletes old tombstones, until ctx ends.
func sweepEvery(ctx context.Context, app *config.App, log *slog.Logger) {
	routes, _ := marked(app)
	if len(routes) == 0 {
		return
	}
	tick := time.NewTicker(10 * time.Minute) // the first time; a process may be restarted every hour
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			tick.Reset(time.Hour)
		}
		for _, r := range routes {
			index := r.Projection.Options.Index
			n, err := r.Projection.Marks.Sweep(ctx, index, time.Now().Add(-keepTombstones), r.Projection.Sink.Write)
			switch {
			case ctx.Err() != nil:
			case err != nil:
				log.Warn("old tombstones are not deleted; tried again in an hour", "index", index, "error", err)
			case n > 0:
				log.Info("old tombstones deleted", "index", index, "tombstones", n)
			}
		}
	}
}

// keepTombstones is how long tombstones stay, unless somebody says otherwise. It
// leaves a day for clocks that are wrong.
const keepTombstones = 48 * time.Hour

func sweepCommand(c *cli) *cobra.Command {
	var keep time.Duration
	var name string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "sweep",
		Short: "Delete old tombstones of projections by sequence",
		Long: `Delete the tombstones that projections with version: sequence leave in the place of
deleted documents, once they are old. sluice run does so every hour; run this where
a Lambda function writes the documents, or where the name of an index is a
template.

A tombstone that was written over in the meantime stays. Exit codes: 0 done;
1 failed; 2 wrong usage.`,
		Example: `  sluice sweep
  sluice sweep --index orders-eu --keep 72h
  sluice sweep --json | jq .tombstones`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if keep < indices.LeastKept {
				return usage("--keep %v: want %v or more: a stream holds records for a day, and one that comes again after its tombstone was deleted brings the document back", keep, indices.LeastKept)
			}
			return c.eachMarked(cmd.Context(), name, func(ctx context.Context, r config.BuiltRoute, index string) error {
				n, err := r.Projection.Marks.Sweep(ctx, index, time.Now().Add(-keep), r.Projection.Sink.Write)
				if err != nil {
					return err
				}
				if asJSON {
					return json.NewEncoder(c.stdout).Encode(map[string]any{"index": index, "tombstones": n})
				}
				_, err = fmt.Fprintf(c.stdout, "%s: %s deleted\n", index, plural(n, "tombstone", "tombstones"))
				return err
			})
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.DurationVar(&keep, "keep", keepTombstones, "how long tombstones stay")
	fs.StringVar(&name, "index", "", "the index or alias of this `name` alone (default: all whose names are no templates)")
	fs.BoolVar(&asJSON, "json", false, "print one JSON object for each index")
	return cmd
}

func adoptCommand(c *cli) *cobra.Command {
	var name string
	var yes, asJSON bool
	cmd := &cobra.Command{
		Use:   "adopt",
		Short: "Have an index that is there take documents by version: sequence",
		Long: `Have an index that holds documents already take those of projections with version:
sequence. It gets the field of the marks and a note of how it is versioned, and its
alias leaves tombstones out of searches.

Stop all programs that write to it before: what they write has no mark, and every
change goes over it. Afterwards run sluice audit --repair, which finds documents
whose items were deleted while nobody wrote.

Exit codes: 0 done; 1 failed; 2 wrong usage.`,
		Example: `  sluice adopt --index orders
  sluice adopt --index orders --yes`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if name == "" {
				return usage("say by --index which index or alias")
			}
			return c.eachMarked(cmd.Context(), name, func(ctx context.Context, r config.BuiltRoute, index string) error {
				if err := c.confirm(yes, "Does no other program write to %s any more?", index); err != nil {
					return err
				}
				if err := r.Projection.Marks.Adopt(ctx, index); err != nil {
					return err
				}
				if asJSON {
					return json.NewEncoder(c.stdout).Encode(map[string]any{"adopted": index})
				}
				_, err := fmt.Fprintf(c.stdout, "%s takes documents by sequence\n", index)
				return err
			})
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&name, "index", "", "the index or alias of this `name`")
	fs.BoolVar(&yes, "yes", false, "do not ask")
	fs.BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// eachMarked calls f for each index of the configuration whose documents are
// versioned by sequence, or for the one of that name.
func (c *cli) eachMarked(ctx context.Context, name string, f func(context.Context, config.BuiltRoute, string) error) error {
	_, app, err := c.loadApp(ctx)
	if err != nil {
		return err
	}
	routes, templates := marked(app)
	var names []string
	for _, r := range routes {
		index := r.Projection.Options.Index
		names = append(names, index)
		if name == "" || name == index {
			if err := f(ctx, r, index); err != nil {
				return err
			}
			if name != "" {
				return nil
			}
		}
	}
	switch {
	case name != "" && templates:
		for _, r := range app.Routes {
			if p := r.Projection; p != nil && p.Marks != nil && strings.Contains(p.Options.Index, "{") {
				return f(ctx, r, name)
			}
		}
	case name != "":
		return usage("--index: no route with version: sequence writes to %q%s", name, didYouMean(name, names))
	case len(routes) == 0 && templates:
		return usage("the names of the indices are templates: say by --index which one")
	case len(routes) == 0:
		return usage("no route has version: sequence")
	}
	return nil
}
