package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/handlers/cascade"
	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/tally"
)

type cascadeOptions struct {
	route, key     string
	dryRun, asJSON bool
}

func cascadeCommand(c *cli) *cobra.Command {
	var o cascadeOptions
	cmd := &cobra.Command{
		Use:   "cascade",
		Short: "Delete the children of a parent that is gone",
		Long: `Delete the children of one deleted parent, as a route does: after a lost record, or a
deletion before the route existed. If the parent exists, the command exits with 1.

With a queue, it deletes up to threshold rows; sluice run deletes the rest. --key has
the parent's key, and other attributes that the route reads of it.`,
		Example: `  sluice cascade --key '{"map_id":"7"}' --dry-run`,
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.cascade(cmd.Context(), o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.route, "route", "", "`name` of the route (default: the only one of its kind)")
	f.StringVar(&o.key, "key", "", "key as `JSON`, such as '{\"pk\":\"1\"}'")
	f.BoolVar(&o.dryRun, "dry-run", false, "change nothing, show what would happen")
	f.BoolVar(&o.asJSON, "json", false, "print JSON, one object a line")
	completeBy(cmd, "route", c.routeNames("cascade"))
	return cmd
}

func (c *cli) cascade(ctx context.Context, o cascadeOptions) error {
	if o.key == "" {
		return usage("--key is missing: it is the parent's, such as '{\"pk\":\"1\"}'")
	}
	parent, err := parseKey(o.key)
	if err != nil {
		return usage("--key: %w", err)
	}
	var counts tally.Tally
	_, app, err := c.loadApp(ctx, config.Setup{Metrics: &counts})
	if err != nil {
		return err
	}
	r, err := route(app, o.route, "cascade", func(r config.BuiltRoute) bool { return r.Cascade != nil })
	if err != nil {
		return err
	}
	key := parent.Only(r.Cascade.Key()...)
	if key.Len() != len(r.Cascade.Key()) {
		return usage("--key: %s is no key of table %s: want %s", keyText(parent), r.Cascade.Table(), strings.Join(r.Cascade.Key(), " and "))
	}
	if o.dryRun {
		return keyHint(parent, c.planCascade(ctx, r.Cascade, parent, o.asJSON))
	}
	image := parent
	if parent.Len() == key.Len() {
		image = sluice.Item{} // what children need besides the key is not known
	}
	rec := recordOf(sluice.Remove, "local", r.Cascade.Table(), key, image)
	err = keyHint(parent, stopped(ctx, r.Cascade.Remove(ctx, rec), "all children were deleted: the same command goes on"))
	done := deletedOf(&counts)
	if sluice.IsSkip(err) {
		done.Skipped, err = strings.TrimPrefix(err.Error(), "skipped: "), nil
	}
	done.Error = errorText(err)
	err = cmp.Or(err, done.print(c.stdout, o.asJSON))
	if err == nil && done.stopped {
		return fmt.Errorf("table %s: the parent %s exists: its children stay until it is deleted", r.Cascade.Table(), keyText(key))
	}
	return err
}

// keyHint says what DynamoDB means when a key attribute has another type than in
// the table.
func keyHint(key sluice.Item, err error) error {
	if err == nil {
		return nil
	}
	for _, text := range []string{"does not match schema type", "does not match the schema", "Type mismatch for key"} {
		if strings.Contains(err.Error(), text) {
			return usage(`--key: an attribute of %s has another type in the tables: a text is {"id":"7"}, a number {"id":7}`, keyText(key))
		}
	}
	return err
}

// planCascade lists the rows.
func (c *cli) planCascade(ctx context.Context, cascade *cascade.Cascade, parent sluice.Item, asJSON bool) error {
	if !asJSON {
		_, err := cascade.DryRun(ctx, c.stdout, parent)
		return err
	}
	rows := 0
	for row, err := range cascade.Plan(ctx, parent) {
		if err != nil {
			return err
		}
		rows++
		line := struct {
			Table string          `json:"table"`
			Key   json.RawMessage `json:"key"`
		}{row.Table, json.RawMessage(row.Key.Raw())}
		if err := printLine(c.stdout, line); err != nil {
			return err
		}
	}
	return printLine(c.stdout, map[string]int{"rows": rows})
}

// deleted is the result of a cascade, by the children's table.
type deleted struct {
	Rows    map[string]int `json:"deleted"`
	Sent    map[string]int `json:"sent"`
	Skipped string         `json:"skipped,omitempty"`
	Error   string         `json:"error,omitempty"`
	stopped bool           // the parent is there
}

func deletedOf(t *tally.Tally) deleted {
	d := deleted{Rows: t.By("sluice_cascade_deleted_rows_total"), Sent: map[string]int{}, stopped: t.Sum("sluice_cascade_stops_total") > 0}
	for labels, n := range t.By("sluice_cascade_messages_total") {
		table, _, _ := strings.Cut(labels, ",")
		d.Sent[table] += n
	}
	return d
}

func (d deleted) print(w io.Writer, asJSON bool) error {
	var b strings.Builder
	for table, n := range d.Rows {
		fmt.Fprintf(&b, "table %s: %s deleted\n", table, plural(n, "row", "rows"))
	}
	for table := range d.Sent {
		fmt.Fprintf(&b, "table %s: the rest is handed over to the queue\n", table)
	}
	switch {
	case d.stopped: // which is the error
	case d.Skipped != "":
		fmt.Fprintf(&b, "nothing more to do: %s\n", plain(d.Skipped))
	case d.Error == "" && len(d.Rows)+len(d.Sent) == 0:
		b.WriteString("there are no children\n")
	}
	return printEither(w, asJSON, d, b.String())
}
