package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
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
			return cmp.Or(err, out.err, verdict(result))
		},
	}
	f := cmd.Flags()
	s.addConnection(f)
	s.addProjection(f)
	s.route.add(cmd, f)
	f.StringVar(&s.index, "index", "", "index or alias, or a `template` such as 'orders-{region|lower}'")
	s.route.instead = describing
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

// report prints the results of an audit.
type report struct {
	printer
	from  string // tables and index
	lines map[audit.Kind]int
}

// maxLines is how many lines each kind of drift has, unless they are for a program.
const maxLines = 20

func (r *report) drift(d audit.Drift) {
	if r.lines == nil {
		r.lines = map[audit.Kind]int{}
	}
	if r.lines[d.Kind]++; r.lines[d.Kind] > maxLines && !r.json {
		return
	}
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
		Key: d.Key.Raw(), Want: d.Want, Have: d.Have, Path: d.Path, Repaired: d.Repaired, Error: errorText(d.Err),
	}
	r.print(plain(d.String()), line)
}

// result prints the comparison, up to err if set. After an error the rest is
// unknown, and the result is never clean.
func (r *report) result(a audit.Result, err error) {
	r.more()
	text := fmt.Sprintf("%s, %s expected, %d in the index: %d missing, %d stale, %d different, %s, %d ahead",
		plural(int(a.Items), "item", "items"), plural(int(a.Documents), "document", "documents"), a.Listed,
		a.Missing, a.Stale, a.Different, plural(int(a.Ghosts), "ghost", "ghosts"), a.Ahead)
	text += more(a.Unfenced, "unfenced") + more(a.Repaired, "repaired") + more(a.Refused, "not repaired") + more(a.Failed, "not to be projected") +
		more(a.Busy, "changed at every look") + more(a.Unchecked, "not looked into") + more(a.Foreign, "of other applications")
	line := struct {
		Result audit.Result `json:"result"`
		Clean  bool         `json:"clean"`
		Error  string       `json:"error,omitempty"`
	}{Result: a, Clean: err == nil && a.Clean(), Error: errorText(err)}
	if err != nil && !errors.As(err, new(*audit.BrakeError)) { // else all was compared
		if !r.json && a.Drift() == 0 {
			return // the error is all that there is to say
		}
		text = "so far: " + text
	}
	switch {
	case err != nil:
	case a.Apart != nil:
		text += "\n--repair would stop: " + r.braked(a.Apart).Error()
	case a.Brake != nil:
		text += "\n--repair would stop: " + r.braked(a.Brake).Error()
	}
	r.print(text, line)
}

// more counts the lines that were left out.
func (r *report) more() {
	for _, kind := range slices.Sorted(maps.Keys(r.lines)) {
		if n := r.lines[kind] - maxLines; n > 0 && !r.json {
			r.print(fmt.Sprintf("%s: %d more; --json prints all", kind, n), nil)
		}
	}
}

// braked adds the result of the comparison, and the flag to continue, to the error
// of an audit that changes nothing.
func (r *report) braked(err error) error {
	hint := ""
	if errors.As(err, new(*audit.ApartError)) {
		hint = "; it is " + r.from + "; if they belong together: --trust-tables"
	}
	if b, ok := errors.AsType[*audit.BrakeError](err); ok {
		switch err = b; {
		case b.Empty:
			hint = fmt.Sprintf("; it is %s; if the table is the right one: --trust-tables --max-deletes %d deletes them", r.from, b.Ghosts)
		case b.MostlyEmpty:
			hint = fmt.Sprintf(" by sluice reindex; it is %s; if the table is the right one: --trust-tables --max-deletes %d deletes them", r.from, b.Ghosts)
		default:
			hint = fmt.Sprintf(": --max-deletes %d deletes them", b.Ghosts)
		}
	}
	if hint == "" {
		return err
	}
	return fmt.Errorf("%w%s", err, hint)
}

// place describes the compared places.
func (s *source) place() string {
	at := "Region " + s.cfg.Region
	if s.cfg.BaseEndpoint != nil {
		at = *s.cfg.BaseEndpoint
	}
	tables := "table "
	if len(s.tables) > 1 {
		tables = "tables "
	}
	return fmt.Sprintf("%s%s of DynamoDB at %s, and index %s", tables, strings.Join(s.tables, ", "), at, s.index)
}

// verdict is nil for a clean result.
func verdict(r audit.Result) error {
	switch {
	case r.Clean():
		return nil
	case r.Repaired == r.Drift() && r.Failed+r.Busy+r.Unchecked == 0:
		return &findings{"the table and the index were not equal; all drift is repaired"}
	}
	return &findings{"the table and the index are not equal"}
}
