package main

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/internal/audit"
)

func auditCommand(c *cli) *cobra.Command {
	s := &search{route: routeFlag{cli: c}}
	var repair, trust, asJSON bool
	var maxDeletes int
	var sample float64
	var settle time.Duration
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Compare a table with its index, and repair it",
		Long: `Compare a table with its index while both change, and print the documents that stay
different: missing, stale, different, ghosts or ahead. --repair writes the first three
and deletes ghosts, which have no item.

Exit codes: 0 equal, 3 different, also when a repair succeeded, 1 not compared.

` + routeHelp + `

With more ghosts than --max-deletes, a repair deletes none. More: docs/audit.md.

` + searchHelp,
		Example: `  sluice audit --route products --repair
  sluice audit --table products --index products --id '{id}' --version-attribute rev --sample 0.01`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			if !(sample > 0 && sample <= 1) { // NaN neither
				return usage("--sample: %v is not above 0 and up to 1", sample)
			}
			if settle <= 0 {
				return usage("--settle: %v is not above 0", settle)
			}
			if maxDeletes < 0 {
				return usage("--max-deletes: %d is below 0", maxDeletes)
			}
			src, client, err := s.connect(cmd, true)
			if err != nil {
				return err
			}
			bar := newCounting(c.stderr, "items and documents looked at")
			out := &report{printer: printer{w: c.stdout, json: asJSON}, from: src.place()}
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
	f.StringVar(&s.index, "index", "", "index or alias, or a `template` such as 'orders-{region|lower}'")
	s.route.instead = append(s.described(), "index")
	f.BoolVar(&repair, "repair", false, "write and delete documents")
	f.IntVar(&maxDeletes, "max-deletes", 0, "most `documents` to delete (default: 1000, at most 5 %)")
	f.BoolVar(&trust, "trust-tables", false, "repair although table and index seem to differ")
	f.Float64Var(&sample, "sample", 1, "`share` of the items; below 1 finds no ghosts")
	f.DurationVar(&settle, "settle", 5*time.Second, "longest time from the table to the index")
	f.BoolVar(&asJSON, "json", false, "print JSON, one object a line")
	return cmd
}

// literal returns an index' name, unless it is a template.
func literal(index string) []string {
	if strings.Contains(index, "{") {
		return nil
	}
	return []string{index}
}
