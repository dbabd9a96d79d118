package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/reindex"
	"github.com/sluicehq/sluice/sinks/opensearch"
)

// reindexing has the flags that all steps share.
type reindexing struct {
	search
	ttl, longest time.Duration
	newBodies    bool
	asJSON       bool
}

func reindexCommand(c *cli) *cobra.Command {
	r := &reindexing{search: search{route: routeFlag{cli: c}}}
	cmd := &cobra.Command{
		Use:   "reindex",
		Short: "Replace the index behind an alias, without downtime",
		Long: `Replace the index behind an alias by one with another mapping, while it is searched
and written to. sluice run and Indices.Follow write to both; stop other writers.

  start, swap, then finish; or rollback, and swap again; abandon gives up

You can repeat a step. The mapping is the sink's file for the alias, or in --indices.

` + routeHelp + `

` + searchHelp,
		Example: `  sluice reindex start --route products
  sluice reindex swap --route products
  sluice reindex finish --route products --delete`,
	}
	f := cmd.PersistentFlags()
	r.addConnection(f)
	f.StringVar(&r.index, "index", "", "the `alias`")
	r.route.add(cmd, f)
	r.route.instead = describing
	f.DurationVar(&r.ttl, "ttl", reindex.DefaultTTL, "longest time that writers cache the alias")
	f.DurationVar(&r.longest, "longest", time.Minute, "longest time of one write; finish and abandon wait for it")
	f.BoolVar(&r.newBodies, "new-bodies", false, "do not compare bodies: the projection changed too")
	f.BoolVar(&r.asJSON, "json", false, "print JSON, one object a line")
	return commandGroup(cmd, r.start(), r.status(),
		r.step("swap", "Point the alias to the new index", "force", "swap without a comparison", reindex.Reindex.Swap),
		r.step("rollback", "Point the alias to the old index again", "", "", func(x reindex.Reindex, ctx context.Context, _ bool) error {
			return x.Rollback(ctx)
		}),
		r.step("finish", "Stop the writes to the old index", "delete", "delete the old index", reindex.Reindex.Finish),
		r.step("abandon", "Stop the writes to the new index, before a swap", "delete", "delete the new index", reindex.Reindex.Abandon))
}

// reindex connects: to what the file's route projects into, which is returned,
// too, or to what flags say.
func (r *reindexing) reindex(cmd *cobra.Command) (reindex.Reindex, *opensearch.Client, *projected, error) {
	none := reindex.Reindex{}
	p, err := r.route.find(cmd)
	if err != nil {
		return none, nil, nil, err
	}
	var client *opensearch.Client
	alias := r.index
	switch {
	case p != nil && literal(p.index) == nil:
		err = fmt.Errorf("route %s: its index %s is a template: name one of its aliases by --index, with the other flags", p.built.Name, p.index)
	case p != nil:
		alias, client = p.index, p.built.Projection.Client
	default:
		if err = missing("index", alias); err == nil {
			client, err = r.client(cmd.Context())
		}
	}
	if err != nil {
		return none, nil, nil, err
	}
	return reindex.Reindex{
		Alias: alias, Cluster: client.Indices(), Get: client.Get,
		TTL: r.ttl, Longest: r.longest, NewBodies: r.newBodies,
		Step: func(what string) { fmt.Fprintln(r.route.cli.stderr, what) },
	}, client, p, nil
}

// filling is what fills the new index, and what that is made of.
func (r *reindexing) filling(cmd *cobra.Command, p *projected, folder string) (src *source, body []byte, err error) {
	if p == nil {
		if src, err = r.source(cmd.Context(), false); err == nil {
			err = missing("indices", folder)
		}
	} else {
		src, err = p.source(cmd.Context(), r.route.cli, false)
	}
	if err != nil {
		return nil, nil, err
	}
	if folder == "" {
		body, err = p.body()
		return src, body, err
	}
	if body, err = opensearch.IndexBody(os.DirFS(folder), src.index, opensearch.IndexOptions{Marks: marks(src.index, src.markField, src.forgetDeleted)}); err != nil {
		err = usage("--indices %s: %w", folder, err)
	}
	return src, body, err
}

func (r *reindexing) start() *cobra.Command {
	var folder string
	var skip bool
	cmd := &cobra.Command{
		Use:   "start",
		Short: "Make the new index, write to both, fill it and compare",
		Long: `Make the new index, have writers write to both, fill it from the tables, and compare
the two. Searches still use the old one. Exit code 1 also means that the two differ.`,
		Example: `  sluice reindex start --route products --json | jq '.differences[].id'`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			if byFlags, err := r.route.byFlags(cmd.Flags()); err == nil && byFlags { // all missing flags at once
				if _, _, err := r.filling(cmd, nil, folder); err != nil {
					return err
				}
			}
			x, client, p, err := r.reindex(cmd)
			if err != nil {
				return err
			}
			src, body, err := r.filling(cmd, p, folder)
			if err != nil {
				return err
			}
			x.Body = body
			if err := src.check(ctx); err != nil {
				return err
			}
			sink, err := opensearch.New(client, opensearch.Options{})
			if err != nil {
				return err
			}
			x.Scan, x.Project, x.Write, x.MarkField, x.SkipFailed = src.scan, src.project, sink.Write, src.markField, skip
			left := leftOut{w: r.route.cli.stderr}
			x.Failed = left.add
			x.Progress = func(b reindex.Backfilled) {
				fmt.Fprintf(r.route.cli.stderr, "%s read, %s written\n", plural(int(b.Items), "item", "items"), plural(int(b.Documents), "document", "documents"))
			}
			c, err := x.Start(ctx)
			left.end()
			switch {
			case err != nil:
				return stopped(ctx, incomplete(err), "the new index was filled and compared: the same command goes on, or fills it anew; sluice reindex abandon gives it up")
			case !c.Equal():
				err = differing(&reindex.NotEqualError{Comparison: c})
			}
			if err == nil || r.asJSON {
				err = errors.Join(err, r.tellComparison(c))
			}
			return err
		},
	}
	r.addProjection(cmd.Flags())
	cmd.Flags().StringVar(&folder, "indices", "", "`folder` with indices/<alias>.json, the new mappings")
	_ = cmd.MarkFlagDirname("indices")
	cmd.Flags().BoolVar(&skip, "skip-failed", false, "skip items that cannot be projected or written")
	return cmd
}

func (r *reindexing) status() *cobra.Command {
	return &cobra.Command{
		Use:     "status",
		Short:   "Show the step of the reindex",
		Long:    "Show the step, the index behind the alias, and the other index.",
		Example: `  sluice reindex status --route products --json | jq -r .stage`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			x, _, _, err := r.reindex(cmd)
			if err != nil {
				return err
			}
			return r.tell(cmd.Context(), x)
		},
	}
}

// tell prints how far the reindex is.
func (r *reindexing) tell(ctx context.Context, x reindex.Reindex) error {
	st, err := x.Status(ctx)
	if err != nil {
		return err
	}
	line := fmt.Sprintf("%s: %v, leads to %s", st.Alias, st.Stage, st.Current)
	if st.Other != "" {
		line += ", the other index is " + st.Other
	}
	return r.route.cli.answer(r.asJSON, st, "%s\n", line)
}

// tellComparison prints what was found of the two indices.
func (r *reindexing) tellComparison(c reindex.Comparison) error {
	line := struct {
		Current          string               `json:"current"`
		Other            string               `json:"other"`
		Equal            bool                 `json:"equal"`
		CurrentDocuments int64                `json:"currentDocuments"`
		OtherDocuments   int64                `json:"otherDocuments"`
		Compared         int                  `json:"compared"`
		Differences      []reindex.Difference `json:"differences"`
	}{c.Current, c.Other, c.Equal(), c.Counts[0], c.Counts[1], c.Sampled, append([]reindex.Difference{}, c.Differences...)}
	return r.route.cli.answer(r.asJSON, line, "%s\n", plainLines(c.String()))
}

// leftOut prints the first items that do not get into the index, and counts the
// others: a wrong template leaves out all of them.
type leftOut struct {
	w io.Writer
	n int
}

const leftOutLines = 20

func (l *leftOut) add(key sluice.Item, err error) {
	if l.n++; l.n <= leftOutLines {
		fmt.Fprintf(l.w, "left out: %s: %s\n", plain(string(key.Raw())), plain(err.Error()))
	}
}

func (l *leftOut) end() {
	if l.n > leftOutLines {
		fmt.Fprintf(l.w, "left out: %d more\n", l.n-leftOutLines)
	}
}

// incomplete adds to an error of filling the index the flag that skips documents
// which do not fit.
func incomplete(err error) error {
	if !errors.As(err, new(*reindex.IncompleteError)) {
		return err
	}
	return fmt.Errorf("%w by --skip-failed", err)
}

// differing says what to do about indices that differ.
func differing(err error) error {
	if !errors.As(err, new(*reindex.NotEqualError)) {
		return err
	}
	return fmt.Errorf(`%w
What may be the cause, and what to do:
  dead letters of the routes, which sluice dlq list shows: mend and redrive them, and swap then;
    those that only the new mapping takes: swap --force, finish, and redrive them then
  changes that are not handled yet: wait until the daemon has no lag, and swap then
  a writer that does not write to both indices: have it write by Indices.Follow, as sluice run does;
    then sluice audit --repair, and swap
swap --force leaves the comparison out: searches see the new index as it is.`, err)
}

// step makes the command of a step that has one option at most.
func (r *reindexing) step(name, short, option, usage string, do func(reindex.Reindex, context.Context, bool) error) *cobra.Command {
	var set bool
	cmd := &cobra.Command{
		Use:     name,
		Short:   short,
		Long:    short + ".",
		Example: fmt.Sprintf("  sluice reindex %s --route products", name),
		RunE: func(cmd *cobra.Command, _ []string) error {
			x, _, _, err := r.reindex(cmd)
			if err != nil {
				return err
			}
			if err := do(x, cmd.Context(), set); err != nil {
				return stopped(cmd.Context(), differing(err), "it was done: the same command goes on; sluice reindex status says how far it is")
			}
			return r.tell(cmd.Context(), x) // also where nothing was to be done
		},
	}
	if option != "" {
		cmd.Flags().BoolVar(&set, option, false, usage)
	}
	return cmd
}
