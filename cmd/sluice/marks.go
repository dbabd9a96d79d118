package main

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/internal/backoff"
	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/docrules"
	"github.com/sluicehq/sluice/internal/docversion"
)

// marked returns a route for each index whose documents are versioned by sequence,
// and those whose indices are templates.
func marked(app *config.App) (routes, templates []config.BuiltRoute) {
	seen := map[string]bool{}
	for _, r := range app.Routes {
		p := r.Projection
		switch {
		case p == nil || p.Marks == nil:
		case strings.Contains(p.Options.Index, "{"):
			templates = append(templates, r)
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
	wait := 10 * time.Minute // the first time; a process may be restarted every hour
	for ; backoff.Sleep(ctx, wait) == nil; wait = time.Hour {
		for _, r := range routes {
			index := r.Projection.Options.Index
			n, err := r.Projection.Marks.Sweep(ctx, index, time.Now().Add(-keepTombstones), r.Projection.Sink.Write)
			switch {
			case ctx.Err() != nil:
			case err != nil:
				log.Warn("cannot delete old tombstones; next try in an hour", "index", index, "error", err)
			case n > 0:
				log.Info("old tombstones deleted", "index", index, "tombstones", n)
			}
		}
	}
}

// keepTombstones is the default age at which tombstones are deleted. It allows for
// a clock that is wrong by a day.
const keepTombstones = 48 * time.Hour

func sweepCommand(c *cli) *cobra.Command {
	var keep time.Duration
	var name string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "sweep",
		Short: "Delete old tombstones of projections by sequence",
		Long: `Delete old tombstones of projections with version: sequence. sluice run does that
every hour. Run this command if only Lambda functions write the documents, or if the
index name is a template.

Without its tombstone, a record that comes again can restore a deleted document.`,
		Example: `  sluice sweep`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if keep < docrules.LeastKept {
				return usage("--keep %v: want %v or more: without its tombstone, a redelivered record could restore a deleted document", keep, docrules.LeastKept)
			}
			return c.eachMarked(cmd.Context(), name, func(ctx context.Context, r config.BuiltRoute, index string) error {
				n, err := r.Projection.Marks.Sweep(ctx, index, time.Now().Add(-keep), r.Projection.Sink.Write)
				if err != nil {
					return err
				}
				stay, err := r.Projection.Marks.CountTombstones(ctx, index)
				if err != nil {
					return err
				}
				text := fmt.Sprintf("%s: %s deleted, %d younger than %v stay\n", index, plural(n, "tombstone", "tombstones"), stay, keep)
				return printEither(c.stdout, asJSON, map[string]any{"index": index, "tombstones": n, "younger": stay}, text)
			})
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.DurationVar(&keep, "keep", keepTombstones, "age at which tombstones are deleted: 25h or more")
	fs.StringVar(&name, "index", "", "`name` of the index or alias (default: all but templates)")
	fs.BoolVar(&asJSON, "json", false, "print JSON, one object a line")
	return cmd
}

func adoptCommand(c *cli) *cobra.Command {
	var name string
	var yes, asJSON bool
	cmd := &cobra.Command{
		Use:   "adopt",
		Short: "Prepare an existing index for version: sequence",
		Long: `Prepare an index that has documents for version: sequence. The command maps the field
of the marks, and makes the alias, which the index needs, hide tombstones.

First stop all writers of the index, and set version: sequence in the file. Afterwards
run sluice audit --repair: it deletes the documents of items deleted meanwhile.`,
		Example: `  sluice adopt --index orders`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if name == "" {
				return usage("--index is missing: name the index or alias")
			}
			return c.eachMarked(cmd.Context(), name, func(ctx context.Context, r config.BuiltRoute, index string) error {
				if err := c.confirm(yes, "Have all programs that write to %s been stopped?", index); err != nil {
					return err
				}
				created, err := r.Projection.Marks.Adopt(ctx, index)
				if err != nil {
					return err
				}
				high, err := highVersions(ctx, r.Projection, index)
				if err != nil {
					return err
				}
				text := index + " is ready for version: sequence"
				if created {
					text = fmt.Sprintf("%s did not exist: index %[1]s-000001 is created, and ready for version: sequence", index)
				}
				if high {
					text += "\nIts documents have greater versions than changes by sequence: most changes take three\nrequests in place of one. sluice reindex gives them lower versions (docs/projection.md)."
				}
				return printEither(c.stdout, asJSON, map[string]any{"adopted": index, "created": created, "highVersions": high}, text+"\n")
			})
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&name, "index", "", "`name` of the index or alias")
	fs.BoolVar(&yes, "yes", false, "do not ask")
	fs.BoolVar(&asJSON, "json", false, "print JSON, one object a line")
	return cmd
}

// highVersions reports whether some documents of an index have versions that no
// change by sequence has yet, such as times in nanoseconds: the index refuses the
// version of each change, and the sink has to compare.
func highVersions(ctx context.Context, p *config.Projected, index string) (bool, error) {
	docs, err := p.Client.Indices().Sample(ctx, index, 1000, false)
	greatest := docversion.Least(time.Now().UTC().Format("20060102T150405.000") + "-" + strings.Repeat("9", 40))
	return slices.ContainsFunc(docs, func(d document.Doc) bool { return d.Version > greatest }), err
}

// eachMarked calls f for each index of the configuration whose documents are
// versioned by sequence, or for the one of that name.
func (c *cli) eachMarked(ctx context.Context, name string, f func(context.Context, config.BuiltRoute, string) error) error {
	_, app, err := c.loadApp(ctx, config.Setup{})
	if err != nil {
		return err
	}
	routes, templates := marked(app)
	var names []string
	for _, r := range routes {
		index := r.Projection.Options.Index
		names = append(names, index)
		if name == "" || name == index {
			if err := f(ctx, r, index); err != nil || name != "" {
				return err
			}
		}
	}
	switch {
	case name != "" && len(templates) > 0:
		return f(ctx, templates[0], name)
	case name != "":
		return usage("--index: no route with version: sequence writes to %q%s; first set both in a route of the file (docs/projection.md)", name, didYouMean(name, names))
	case len(routes) == 0 && len(templates) > 0:
		return usage("--index is missing: the index names of the configuration are templates")
	case len(routes) == 0:
		return usage("no route has version: sequence")
	}
	return nil
}
