package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/internal/audit"
	"github.com/sluicehq/sluice/run"
)

func auditCommand(c *cli) *cobra.Command {
	s := &search{env: c.env, route: routeFlag{cli: c}}
	var repair, trust, asJSON bool
	var maxDeletes int
	var sample float64
	var settle time.Duration
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Compare a table with the index that its items are projected into",
		Long: `Compare a table with its index while both are written to, and print what stays
different: documents that are missing, stale, different, ghosts or ahead. A
repair writes the first three and deletes ghosts, which are documents without an
item; without --repair what it would do is printed. It exits with 0 when the two are equal, with 3 when they are not, also when that was
repaired, and with 1 when it could not be found out.

` + routeHelp + `
All routes of the file that project into the same index are looked at together,
by whichever template or alias they reach it, with all tables of the file; where
one of them leaves tombstones, ghosts are not looked for. An item that the filters
of a route leave out is not to be in the index. A projection that flags describe
is one of all attributes.

Before its first write, a repair looks whether table and index belong together. If
the index has few documents of the table's items, and more documents without an
item, it writes and deletes nothing. --trust-tables says that they are the right
ones. docs/audit.md has the exact rule.

A repair deletes at most 1,000 ghosts and 5 % of the documents (or one), or as many
as --max-deletes says; with more it deletes none. It deletes none either while more
than half of the documents have no item, unless --trust-tables is given, too.
docs/audit.md says which documents are taken for those of another application.

Of each kind of drift, 20 lines are printed; --json prints all.

` + searchHelp,
		Example: `  sluice audit
  sluice audit --route products --repair
  sluice audit --table products --index products --id '{id}' --version-attribute rev
  sluice audit --table products --index products --id '{id}' --version-attribute rev --sample 0.01
  sluice audit --table products --index products --id '{id}' --version-sequence --repair --json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			if sample <= 0 || sample > 1 {
				return &run.UsageError{Err: fmt.Errorf("--sample: %v is not above 0 and up to 1", sample)}
			}
			if settle <= 0 {
				return &run.UsageError{Err: fmt.Errorf("--settle: %v is not above 0", settle)}
			}
			if maxDeletes < 0 {
				return usage("--max-deletes: %d is below 0", maxDeletes)
			}
			src, client, err := s.connect(cmd, true)
			if err != nil {
				return err
			}
			bar := newCounting(c.stderr, "items and documents looked at")
			out := &report{w: c.stdout, json: asJSON, from: src.place()}
			a := audit.Audit{
				Scan: src.scan, Project: src.project, Read: src.store.Get, Get: client.Get, List: list(client, src.index),
				Indices: literal(src.index), Marks: src.marks(client), Sample: sample, Settle: settle,
				MaxDeletes: maxDeletes, TrustTables: trust, Behind: behind(client), Foreign: src.foreign,
				Found: func(d audit.Drift) {
					bar.clear()
					out.drift(d)
				},
				Progress: func(so audit.Result) { bar.to(int(so.Items + so.Listed)) },
			}
			if src.tombstones {
				a.List = nil
			}
			if repair {
				if a.Write, err = src.writer(client); err != nil {
					return err
				}
			}
			result, err := a.Run(ctx)
			bar.end()
			err = out.braked(stopped(ctx, err, "all was compared: the same command begins anew"))
			out.result(result, err)
			if err != nil {
				return err
			}
			if out.err != nil {
				return out.err
			}
			return verdict(result)
		},
	}
	f := cmd.Flags()
	s.addConnection(f)
	s.addProjection(f)
	s.route.add(cmd, f)
	f.StringVar(&s.index, "index", "", "`template` of the index' name, or an alias, as in the projection")
	s.route.instead = append(s.described(), "index")
	f.BoolVar(&repair, "repair", false, "repair what drifted")
	f.IntVar(&maxDeletes, "max-deletes", 0, "most `documents` that a repair deletes (default: 1000, and 5 % of the index)")
	f.BoolVar(&trust, "trust-tables", false, "repair also when the index has hardly any document of the tables' items")
	f.Float64Var(&sample, "sample", 1, "`share` of the items that are compared; ghosts are looked for with 1 only")
	f.DurationVar(&settle, "settle", 5*time.Second, "time that a change takes from the table to the index at most")
	f.BoolVar(&asJSON, "json", false, "print a JSON object for each drift, and one for the result")
	return cmd
}

// literal returns an index' name, unless it is a template.
func literal(index string) []string {
	for _, r := range index {
		if r == '{' {
			return nil
		}
	}
	return []string{index}
}
