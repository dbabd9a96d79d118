package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/handlers/rollup"
	"github.com/sluicehq/sluice/internal/brake"
	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/snapshot"
	"github.com/sluicehq/sluice/item"
)

type recountOptions struct {
	route, table, attribute, key string
	settle                       time.Duration
	repair, asJSON               bool
	maxDeletes                   int
	trust                        bool
}

func recountCommand(c *cli) *cobra.Command {
	var o recountOptions
	cmd := &cobra.Command{
		Use:   "recount",
		Short: "Compare counters with what they count, and repair them",
		Long: `Count the children of parents, and report wrong counters of a count route. --repair
corrects them.

The command looks at a wrong counter twice, --settle apart. Run it without lag and
without dead letters of the route. With more counters to lower than --max-deletes, a
repair lowers none. More: docs/counters.md.

Exit codes: 0 right; 3 wrong, also after a repair; 1 not counted, or a counter is not
a number.`,
		Example: `  sluice recount
  sluice recount --route points --key '{"user_id":"1","map_id":"7"}' --repair`,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.recount(cmd.Context(), o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.route, "route", "", "`name` of the route (default: the only one of its kind)")
	f.StringVar(&o.table, "table", "", "`name` of the parents' table (default: all)")
	f.StringVar(&o.attribute, "attribute", "", "`name` of the counter (default: all)")
	f.StringVar(&o.key, "key", "", "key as `JSON`, such as '{\"pk\":\"1\"}'")
	f.DurationVar(&o.settle, "settle", time.Minute, "time between the two looks")
	f.BoolVar(&o.repair, "repair", false, "correct the counters")
	f.IntVar(&o.maxDeletes, "max-deletes", 0, "most `counters` to lower (default: 1000, at most 5 %)")
	f.BoolVar(&o.trust, "trust-tables", false, "lower although hardly any parent has a child")
	f.BoolVar(&o.asJSON, "json", false, "print JSON, one object a line")
	completeBy(cmd, "route", c.routeNames("count"))
	completeBy(cmd, "table", c.ofFile(counterTables))
	return cmd
}

func (c *cli) recount(ctx context.Context, o recountOptions) error {
	if o.settle <= 0 {
		return usage("--settle: %v is not above 0", o.settle)
	}
	if o.maxDeletes < 0 {
		return usage("--max-deletes: %d is below 0", o.maxDeletes)
	}
	var key sluice.Item
	if o.key != "" {
		var err error
		if key, err = parseKey(o.key); err != nil {
			return usage("--key: %w", err)
		}
	}
	_, app, err := c.loadApp(ctx, config.Setup{})
	if err != nil {
		return err
	}
	r, err := route(app, o.route, "count", func(r config.BuiltRoute) bool { return len(r.Recounts) > 0 })
	if err != nil {
		return err
	}
	counters, err := o.counters(r, key)
	if err != nil {
		return err
	}
	out := &recounting{printer: printer{w: c.stdout, json: o.asJSON}, cli: c, o: o}
	for _, one := range counters {
		parents := func(yield func(sluice.Item, error) bool) { yield(key, nil) }
		if !key.Exists() {
			parents = func(yield func(sluice.Item, error) bool) {
				for rec, err := range snapshot.Scan(ctx, app.Table(one.Table), one.Table, snapshot.ScanOptions{}) {
					var it sluice.Item
					if err == nil {
						if err = rec.Err(); err == nil {
							it = rec.New
						}
					}
					if !yield(it, err) || err != nil {
						return
					}
				}
			}
		}
		if err := out.run(ctx, one, parents); err != nil {
			return err
		}
	}
	if out.failed > 0 {
		return errors.New(plural(out.failed, "counter is no number: set it right, and recount its parent", "counters are no numbers: set them right, and recount their parents"))
	}
	if out.wrong > 0 {
		return &findings{out.verdict()}
	}
	return out.err
}

// counters are those of the route that the flags name.
func (o recountOptions) counters(r config.BuiltRoute, key sluice.Item) (list []rollup.Recount, err error) {
	for _, one := range r.Recounts {
		if o.table != "" && one.Table != o.table || o.attribute != "" && one.Attribute != o.attribute {
			continue
		}
		if key.Exists() && (key.Len() != len(one.Keys) || key.Only(one.Keys...).Len() != len(one.Keys)) {
			continue
		}
		list = append(list, one)
	}
	switch {
	case len(list) == 0:
		all := mapped(r.Recounts, func(one rollup.Recount) string { return one.Table + "." + one.Attribute })
		return nil, usage("route %s has no such counter: --table, --attribute and --key fit none of %s", r.Name, strings.Join(all, ", "))
	case key.Exists() && slices.ContainsFunc(list, func(one rollup.Recount) bool { return one.Table != list[0].Table }):
		return nil, usage("--key: parents of several tables have such a key: say which by --table")
	}
	return list, nil
}

// warn warns of configuration that sluice run can do without: for counting routes
// what sluice recount needs, for others what projects the index, and for
// escalations other routes.
func (v *validation) warn(ctx context.Context, app *config.App, ask bool) {
	var w validation
	for _, r := range app.Routes {
		if r.Lacks != nil {
			w.tell(r.Lacks(ctx, ask))
		}
		for _, one := range r.Recounts {
			if ask {
				w.tell(indexFault(ctx, r.Name, one))
			}
		}
	}
	v.Warnings = w.Mistakes
}

// indexFault says that the index of a recount is not there, or lacks attributes. It
// looks for the children of a parent that need not exist.
func indexFault(ctx context.Context, route string, one rollup.Recount) error {
	key := mapped(one.Keys, func(name string) item.Attribute { return item.String(name, "sluice") })
	for _, err := range one.Children(ctx, item.Of(key...)) {
		if err == nil {
			return nil
		}
		for _, text := range []string{"does not have the specified index", "ALL_ATTRIBUTES is not supported"} {
			if strings.Contains(err.Error(), text) {
				return fmt.Errorf("route %s: a recount of %s of table %s cannot read the children: %w", route, one.Attribute, one.Table, err)
			}
		}
		return nil
	}
	return nil
}

// recounting prints what recounts find.
type recounting struct {
	printer
	cli    *cli
	o      recountOptions
	wrong  int
	failed int
	braked bool
}

func (r *recounting) run(ctx context.Context, one rollup.Recount, parents iter.Seq2[sluice.Item, error]) error {
	one.DryRun, one.Settle, one.MaxDeletes, one.TrustTables = !r.o.repair, r.o.settle, r.o.maxDeletes, r.o.trust
	bar := newCounting(r.cli.stderr, one.Table+": parents")
	one.Found = func(c rollup.Correction) {
		bar.clear()
		r.found(c)
	}
	one.Settling = func(counters int) {
		bar.clear()
		which := fmt.Sprintf("%s of table %s", one.Attribute, one.Table)
		fmt.Fprintf(r.cli.stderr, "%s after %v (--settle)\n",
			plural(counters, "counter "+which+" is looked at again", "counters "+which+" are looked at again"), r.o.settle)
	}
	done, err := one.Run(ctx, func(yield func(sluice.Item, error) bool) {
		for it, err := range parents {
			if err == nil {
				bar.one()
			}
			if !yield(it, err) {
				return
			}
		}
	})
	bar.end()
	err = stopped(ctx, err, "all counters were looked at: the same command begins anew")
	if done.Brake != nil && err != nil {
		err = lowering(done.Brake)
	}
	r.wrong += done.Corrected + done.Held + done.Busy
	r.failed += done.Failed
	r.braked = r.braked || done.Brake != nil
	r.result(one, done, err)
	return err
}

// verdict says how many counters were wrong, and whether they still are.
func (r *recounting) verdict() string {
	text := plural(r.wrong, "counter was wrong", "counters were wrong")
	if !r.o.repair && !r.braked {
		text += ": sluice recount --repair sets what is wrong right"
	}
	return text
}

func (r *recounting) found(c rollup.Correction) {
	verb, fault := "set from", errorText(c.Err)
	switch {
	case c.Busy:
		verb = "left, since it keeps changing: from"
	case c.Held:
		verb = "left, since too many would be lowered: from"
	case !r.o.repair:
		verb = "would be set from"
	}
	line := struct {
		Table     string          `json:"table"`
		Key       json.RawMessage `json:"key"`
		Attribute string          `json:"attribute"`
		Old       int64           `json:"old"`
		New       int64           `json:"new"`
		Corrected bool            `json:"corrected"`
		Busy      bool            `json:"busy,omitempty"`
		Held      bool            `json:"held,omitempty"`
		Error     string          `json:"error,omitempty"`
	}{c.Table, json.RawMessage(c.Key.Raw()), c.Attribute, c.Old, c.New, !c.Busy && !c.Held && c.Err == nil && r.o.repair, c.Busy, c.Held, fault}
	text := fmt.Sprintf("%s %s %d to %d", c.Attribute, verb, c.Old, c.New)
	if c.Err != nil {
		text = fmt.Sprintf("%s left as it is: %s", c.Attribute, plain(fault))
	}
	r.print(fmt.Sprintf("table %s, %s: %s", c.Table, keyText(c.Key), text), line)
}

func (r *recounting) result(one rollup.Recount, done rollup.Recounted, err error) {
	line := struct {
		Table     string `json:"table"`
		Attribute string `json:"attribute"`
		Parents   int    `json:"parents"`
		Right     int    `json:"right"`
		Settled   int    `json:"settled"`
		Wrong     int    `json:"wrong"`
		Busy      int    `json:"busy"`
		Gone      int    `json:"gone"`
		Open      int    `json:"open,omitempty"` // not looked at again
		Held      int    `json:"held,omitempty"` // of the wrong ones: left as they are
		Failed    int    `json:"failed,omitempty"`
		Error     string `json:"error,omitempty"`

		Brake *brake.Error `json:"brake,omitempty"`
	}{one.Table, one.Attribute, done.Parents, done.Right, done.Settled, done.Corrected + done.Held, done.Busy, done.Gone, done.Open(), done.Held, done.Failed, errorText(err), nil}
	line.Brake, _ = errors.AsType[*brake.Error](done.Brake)
	text := fmt.Sprintf("%s of table %s: %s, %d right, %d right at a later look, %d wrong, %d busy, %d not there",
		one.Attribute, one.Table, plural(done.Parents, "parent", "parents"), done.Right, done.Settled, done.Corrected+done.Held, done.Busy, done.Gone)
	text += more(done.Open(), "did not agree and were not looked at again") +
		more(done.Held, "of the wrong ones left as they are") + more(done.Failed, "not a number")
	switch {
	case err == nil && done.Brake != nil:
		text += "\n--repair would stop: " + lowering(done.Brake).Error()
	case err == nil, done.Brake != nil:
	case done.Parents == 0 && !r.json:
		return // the error is all that there is to say
	default:
		text = "so far: " + text
	}
	r.print(text, line)
}

// lowering adds the flag that lowers the counters to the error that says why none is
// lowered.
func lowering(err error) error {
	b, ok := errors.AsType[*brake.Error](err)
	switch {
	case !ok:
		return err
	case b.Empty || b.MostlyEmpty:
		return fmt.Errorf("%w; if it is the right one: --trust-tables --max-deletes %d lowers them", b, b.Lowered)
	}
	return fmt.Errorf("%w: --max-deletes %d lowers them", b, b.Lowered)
}
