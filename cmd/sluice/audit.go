package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/audit"
	"github.com/sluicehq/sluice/run"
)

var errDrift = &findings{"the table and the index are not equal"}

func auditCommand(c *cli) *cobra.Command {
	s := &search{env: c.env, route: routeFlag{cli: c}}
	var repair, asJSON bool
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

A repair deletes at most 1,000 ghosts and 5 % of the documents, or as many as
--max-deletes says; with more it deletes none. It deletes none either while the
table has no item for more than half of the documents: then it is likely to be
another table than the index's. docs/audit.md says which documents are taken for
those of another application.

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
			out := &report{w: c.stdout, json: asJSON}
			a := audit.Audit{
				Scan: src.scan, Project: src.project, Read: src.store.Get, Get: client.Get, List: list(client),
				Indices: literal(src.index), Marks: src.marks(client), Sample: sample, Settle: settle,
				MaxDeletes: maxDeletes, Behind: behind(client), Foreign: src.foreign,
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
			err = braked(stopped(ctx, err, "all was compared: the same command begins anew"))
			out.result(result, err)
			if err != nil {
				return err
			}
			if out.err != nil {
				return out.err
			}
			if !result.Clean() {
				return errDrift
			}
			return nil
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

// report prints what an audit finds.
type report struct {
	w    io.Writer
	json bool
	err  error
}

func (r *report) print(text string, v any) {
	if r.json {
		b, err := json.Marshal(v)
		if err != nil {
			r.err = err
			return
		}
		text = string(b)
	}
	if _, err := fmt.Fprintln(r.w, text); err != nil && r.err == nil {
		r.err = err
	}
}

func (r *report) drift(d audit.Drift) {
	line := struct {
		Drift    string          `json:"drift"`
		Index    string          `json:"index,omitempty"`
		ID       string          `json:"id,omitempty"`
		Routing  string          `json:"routing,omitempty"`
		Table    string          `json:"table,omitempty"`
		Key      json.RawMessage `json:"key,omitempty"`
		Want     int64           `json:"want,omitempty"`
		Have     int64           `json:"have,omitempty"`
		Path     string          `json:"path,omitempty"`
		Repaired bool            `json:"repaired"`
		Error    string          `json:"error,omitempty"`
	}{
		Drift: d.Kind.String(), Index: d.Ref.Index, ID: d.Ref.ID, Routing: d.Ref.Routing, Table: d.Table,
		Key: d.Key.Raw(), Want: d.Want, Have: d.Have, Path: d.Path, Repaired: d.Repaired,
	}
	if d.Err != nil {
		line.Error = d.Err.Error()
	}
	r.print(plain(d.String()), line)
}

// result prints what was compared, up to err if there is one: then nothing can be
// said of the rest, and what was found is never clean.
func (r *report) result(a audit.Result, err error) {
	text := fmt.Sprintf("%s, %s, %d listed: %d missing, %d stale, %d different, %d ghosts, %d ahead",
		plural(int(a.Items), "item", "items"), plural(int(a.Documents), "document", "documents"), a.Listed, a.Missing, a.Stale, a.Different, a.Ghosts, a.Ahead)
	for _, n := range []struct {
		n    int64
		what string
	}{
		{a.Unfenced, "unfenced"}, {a.Repaired, "repaired"}, {a.Refused, "not repaired"}, {a.Failed, "items cannot be projected"},
		{a.Busy, "changed at every look"}, {a.Unchecked, "not looked into"}, {a.Foreign, "of other applications"},
	} {
		if n.n > 0 {
			text += fmt.Sprintf(", %d %s", n.n, n.what)
		}
	}
	line := struct {
		Result audit.Result `json:"result"`
		Clean  bool         `json:"clean"`
		Error  string       `json:"error,omitempty"`
	}{Result: a, Clean: err == nil && a.Clean()}
	if errors.As(err, new(*audit.BrakeError)) {
		line.Error = err.Error() // all was compared
	} else if err != nil {
		if line.Error = err.Error(); !r.json && a.Drift() == 0 {
			return // the error is all that there is to say
		}
		text = "so far: " + text
	}
	if err == nil && a.Brake != nil {
		text += "\n--repair would stop: " + brakeText(a.Brake)
	}
	r.print(text, line)
}

// braked says of an audit that deletes nothing how it would.
func braked(err error) error {
	if b, ok := errors.AsType[*audit.BrakeError](err); ok {
		return &brakeError{b}
	}
	return err
}

type brakeError struct{ *audit.BrakeError }

func (e *brakeError) Error() string { return brakeText(e.BrakeError) }
func (e *brakeError) Unwrap() error { return e.BrakeError }

func brakeText(b *audit.BrakeError) string {
	switch {
	case b.Empty:
		return b.Error()
	case b.MostlyEmpty:
		return b.Error() + " by sluice reindex"
	}
	return fmt.Sprintf("%v: --max-deletes %d deletes them", b, b.Ghosts)
}
