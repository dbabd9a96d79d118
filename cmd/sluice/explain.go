package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/fatih/color"
	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/router"
)

type explainOptions struct {
	table, key, event string
	route             string
	payload, asJSON   bool
}

func explainCommand(c *cli) *cobra.Command {
	var o explainOptions
	cmd := &cobra.Command{
		Use:   "explain [file]",
		Short: "Show which routes a record takes, and what each would do",
		Long: `Show which routes a record takes, what each would do, and why others do not take it.
The command sends, writes and deletes nothing. It may read tables.

The input is a Lambda event, an answer of GetRecords, an array of EventBridge Pipes,
or records of sluice tail --json. Or name an item.`,
		Example: `  sluice explain record.json
  sluice explain --table orders --key '{"pk":"7"}' --event INSERT --payload`,
		RunE: func(cmd *cobra.Command, args []string) error { return c.explain(cmd.Context(), args, o) },
	}
	oneArgument(cmd, "%d files are named: want one", nil)
	f := cmd.Flags()
	f.StringVar(&o.table, "table", "", "`name` of the table (default: the only one)")
	f.StringVar(&o.key, "key", "", "key as `JSON`, such as '{\"pk\":\"1\"}'")
	f.StringVar(&o.event, "event", string(sluice.Modify), "INSERT, MODIFY, REMOVE or SNAPSHOT")
	f.StringVar(&o.route, "route", "", "only explain this `route`")
	f.BoolVar(&o.payload, "payload", false, "show the contents of messages and documents")
	f.BoolVar(&o.asJSON, "json", false, "print JSON, one object a line")
	completeBy(cmd, "event", fixed(string(sluice.Insert), string(sluice.Modify), string(sluice.Remove), string(sluice.Snapshot)))
	return cmd
}

func (c *cli) explain(ctx context.Context, args []string, o explainOptions) error {
	if o.key != "" && len(args) > 0 {
		return usage("want a file of records, or --key, not both")
	}
	_, app, err := c.loadApp(ctx, config.Setup{})
	if err != nil {
		return err
	}
	x := explainer{explainOptions: o, cli: c, app: app}
	if err := knownRoute(app, o.route); err != nil {
		return err
	}
	if o.key != "" {
		rec, err := x.itemRecord(ctx)
		if err != nil {
			return err
		}
		if err := x.record(ctx, rec); err != nil {
			return err
		}
		return x.result()
	}
	name := stdinName
	if len(args) == 1 {
		name = args[0]
	}
	in, err := c.input(name)
	if err != nil {
		return err
	}
	defer in.Close()
	if name == stdinName && isTerminal(c.stdin) {
		fmt.Fprintln(c.stderr, "reading records from the terminal: end with Ctrl-D, or name a file")
	}
	return x.all(ctx, in)
}

// explainer explains one record after the other.
type explainer struct {
	explainOptions
	cli    *cli
	app    *config.App
	n, bad int // records; records that could not be explained
}

func (x *explainer) all(ctx context.Context, in io.Reader) error {
	for rec, err := range readRecords(in) {
		if err != nil {
			return err
		}
		rec.Table = cmp.Or(rec.Table, x.table, onlyTable(x.app))
		if err := x.record(ctx, rec); err != nil {
			return err
		}
	}
	return x.result()
}

// onlyTable is the only table of a file; "" if there are others, or none.
func onlyTable(app *config.App) string {
	if len(app.Tables) == 1 {
		return tableName(app.Tables[0])
	}
	return ""
}

func (x *explainer) result() error {
	if x.bad > 0 {
		return fmt.Errorf("%d of %d records could not be explained", x.bad, x.n)
	}
	return nil
}

// explanation is the output for one record.
type explanation struct {
	Event    sluice.EventName `json:"event,omitempty"`
	EventID  string           `json:"eventID,omitempty"`
	Table    string           `json:"table,omitempty"`
	Type     string           `json:"type,omitempty"`
	Key      json.RawMessage  `json:"key,omitempty"`
	Sequence sluice.Sequence  `json:"sequence,omitempty"`
	Routes   []explainedRoute `json:"routes,omitempty"`
	Error    string           `json:"error,omitempty"` // why it takes no route, but becomes a dead letter
}

type explainedRoute struct {
	Route   string          `json:"route"`
	Kind    string          `json:"kind,omitempty"`
	Takes   bool            `json:"takes"`
	Why     string          `json:"why,omitempty"` // it does not
	Effects []config.Effect `json:"effects,omitempty"`
	Error   string          `json:"error,omitempty"` // of the explanation
}

func (x *explainer) record(ctx context.Context, rec *sluice.Record) error {
	x.n++
	e := x.explain(ctx, rec)
	if err := ctx.Err(); err != nil {
		return err
	}
	return printEither(x.cli.stdout, x.asJSON, e, x.text(rec, e))
}

// explain makes the explanation of one record.
func (x *explainer) explain(ctx context.Context, rec *sluice.Record) explanation {
	e := explanation{Event: rec.EventName, EventID: rec.EventID, Table: rec.Table, Sequence: rec.Sequence, Key: json.RawMessage(rec.Keys.Raw())}
	verdicts, err := x.app.Router.Explain(rec)
	if err != nil {
		e.Error = err.Error()
		x.bad++
	} else {
		e.Type, _ = x.app.Router.Type(rec)
	}
	for _, v := range verdicts {
		if x.route != "" && v.Route.Name != x.route {
			continue
		}
		r := x.explained(ctx, rec, v)
		if r.Error != "" {
			x.bad++
		}
		e.Routes = append(e.Routes, r)
	}
	return e
}

func (x *explainer) explained(ctx context.Context, rec *sluice.Record, v router.Verdict) explainedRoute {
	built := x.app.Route(v.Route.Name)
	r := explainedRoute{Route: v.Route.Name, Kind: built.Kind, Takes: v.Takes}
	if !v.Takes {
		r.Why = x.why(rec, v)
		return r
	}
	failed := v.Err
	if failed == nil && built.When != nil {
		_, failed = built.When(rec)
	}
	if failed != nil { // the route takes it, to park it
		r.Error = failed.Error()
		return r
	}
	if built.Explain == nil {
		r.Effects = []config.Effect{{Does: "runs: what it would do cannot be told"}}
		return r
	}
	effects, err := built.Explain(ctx, rec)
	switch {
	case sluice.IsSkip(err):
		r.Effects = []config.Effect{{Does: "does nothing: " + err.Error()}}
	case err != nil:
		r.Error = err.Error()
	case len(effects) == 0:
		r.Effects = []config.Effect{{Does: nothing(built.Kind)}}
	default:
		if !x.payload {
			for i := range effects {
				effects[i].Detail = ""
			}
		}
		r.Effects = effects
	}
	return r
}

// nothing says that a route of the kind takes a record, and does nothing.
func nothing(kind string) string {
	if kind == "project" {
		return "writes nothing: the document would be as it is"
	}
	return "does nothing: the change makes no difference to it"
}

// why is the reason that a record does not take a route, in the words of the
// file.
func (x *explainer) why(rec *sluice.Record, v router.Verdict) string {
	f := x.app.Route(v.Route.Name).Written
	switch {
	case v.Err != nil:
		return v.Err.Error()
	case v.Redriven:
		return "it refuses redriven records: redrive is not set"
	case v.Pattern:
		typ, _ := x.app.Router.Type(rec)
		typ = cmp.Or(typ, "(no type)")
		return fmt.Sprintf("on: no pattern is for %s#%s", typ, rec.EventName)
	}
	switch v.Filter {
	case "When":
		return "when refused it: " + f.When
	case "Changed":
		return fmt.Sprintf("changed refused it: none of %v has changed", []string(f.Changed))
	case "ChangedIgnoring":
		return fmt.Sprintf("changedIgnoring refused it: nothing but %v has changed", []string(f.ChangedIgnoring))
	case "ExcludeTTL":
		return "ttl: exclude refused it: the time to live deleted the item"
	case "OnlyTTL":
		return "ttl: only refused it: the time to live has not deleted the item"
	case "Regions":
		return fmt.Sprintf("regions refused it: the change was made in none of %v", []string(f.Regions))
	}
	return v.Filter + " refused it"
}

// itemRecord reads an item as it is now, and makes the record of it.
func (x *explainer) itemRecord(ctx context.Context) (*sluice.Record, error) {
	table := cmp.Or(x.table, onlyTable(x.app))
	if table == "" {
		return nil, usage("--table is missing: the file does not name one table alone")
	}
	event, err := itemEvent(x.event)
	if err != nil {
		return nil, err
	}
	key, err := parseKey(x.key)
	if err != nil {
		return nil, usage("--key: %w", err)
	}
	at := x.app.AWS("dynamodb")
	it, key, err := readItem(ctx, at, table, key)
	if err != nil {
		return nil, err
	}
	if !it.Exists() {
		return nil, errors.New("table " + table + ": there is no item with the key " + keyText(key))
	}
	rec := recordOf(event, at.Region, table, key, it)
	if event != sluice.Snapshot {
		rec.Origin = sluice.Replayed // its predecessor is unknown, so no record counts as unchanged
	}
	return rec, nil
}

// text is an explanation for people.
func (x *explainer) text(rec *sluice.Record, e explanation) string {
	p := x.cli.paint()
	var b strings.Builder
	if x.n > 1 {
		b.WriteByte('\n')
	}
	typ := cmp.Or(e.Type, "-")
	fmt.Fprintf(&b, "%s  %s  %s\n", p.event(e.Event), p.bold(plain(typ)), keyText(rec.Keys))
	if e.Error != "" {
		fmt.Fprintf(&b, "  %s %s\n", p.bad("takes no route, and fails for good:"), plain(e.Error))
	}
	for _, r := range e.Routes {
		if r.Takes {
			fmt.Fprintf(&b, "  %s %s%s\n", p.good("takes"), p.in(plain(r.Route), color.FgCyan), kind(r))
			for _, effect := range r.Effects {
				fmt.Fprintf(&b, "        %s\n", effectText(effect))
			}
		} else {
			fmt.Fprintf(&b, "  %s %s%s: %s\n", p.faint("not  "), plain(r.Route), kind(r), p.faint(plain(r.Why)))
		}
		if r.Error != "" {
			fmt.Fprintf(&b, "        %s %s\n", p.bad("would fail:"), plain(r.Error))
		}
	}
	return b.String()
}

func kind(r explainedRoute) string {
	if r.Kind == "" {
		return ""
	}
	return " (" + r.Kind + ")"
}

func effectText(e config.Effect) string {
	text := plain(e.Does)
	if e.Key != "" && !strings.Contains(e.Does, e.Key) {
		text += ", " + plain(e.Key)
	}
	if e.Detail != "" {
		text += "\n          " + plain(e.Detail)
	}
	return text
}
