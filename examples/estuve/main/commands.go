package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/spf13/pflag"

	"github.com/sluicehq/sluice/examples/estuve"
	"github.com/sluicehq/sluice/examples/internal/kit"
	"github.com/sluicehq/sluice/handlers/rollup"
	"github.com/sluicehq/sluice/item"
)

var program = kit.Program{
	Name: "estuve",
	Head: "Commands:",
	Commands: map[string]kit.Command{
		"create":  {Usage: "create", Example: "create", Does: "make the tables that do not exist", NoArguments: "ESTUVE_PREFIX names the tables", Run: create},
		"recount": {Usage: recountUsage, Example: "recount --dry-run u-1", Does: "set counters right; without users they are read from standard input, one a line", Run: recount},
		"plan":    {Usage: planUsage, Example: "plan user u-1", Does: "list what a cascade would delete", Run: plan},
		// main runs it, as it runs the daemon.
		"worker": {Usage: "worker [flags]", Example: "worker", Does: "work off the queue of ESTUVE_QUEUE alone"},
	},
	Tail: "Without a command:",
}

const (
	recountUsage = "recount [--dry-run] [--settle 1m] [--max-deletes N] [--trust-tables] USER…"
	planUsage    = "plan user USER, or plan map USER MAP"
)

// create makes the tables that are not there.
func create(ctx context.Context, c kit.Call) error {
	cfg, tables, err := connect(ctx, c.Env)
	if err != nil {
		return err
	}
	if err := estuve.Create(ctx, cfg, tables); err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.Out, "tables %s and %s are there\n", strings.Join(tables.Streams(), ", "), tables.Markers)
	return err
}

// recount repairs the counters of users and of their maps.
func recount(ctx context.Context, c kit.Call) error {
	fs := pflag.NewFlagSet("recount", pflag.ContinueOnError)
	fs.SetOutput(io.Discard)
	dry := fs.Bool("dry-run", false, "tell what is wrong, write nothing")
	settle := fs.Duration("settle", time.Minute, "longer than a record takes from its write to its effect")
	most := fs.Int("max-deletes", 0, "most counters that are lowered (default: 1000, and 5 % of those looked at)")
	trust := fs.Bool("trust-tables", false, "lower counters also when hardly any parent has a child")
	if err := fs.Parse(c.Args); err != nil {
		return kit.Usage("%v: want %s", err, recountUsage)
	}
	switch {
	case *settle <= 0:
		return kit.Usage("--settle is %v, want more than 0: %s", *settle, recountUsage)
	case *most < 0:
		return kit.Usage("--max-deletes is %d, want 0 or more: %s", *most, recountUsage)
	case slices.Contains(fs.Args(), ""):
		return kit.Usage("a user is empty: want %s", recountUsage)
	}
	store, tables, err := open(ctx, c.Env)
	if err != nil {
		return err
	}
	users := slices.Values(fs.Args())
	var failed error
	if fs.NArg() == 0 {
		users = lines(c.In, &failed)
	}
	verb := "set from"
	if *dry {
		verb = "would be set from"
	}
	done, err := estuve.Recounter{
		Tables: tables, Store: store, Settle: *settle, DryRun: *dry, MaxDeletes: *most, TrustTables: *trust,
		Found: func(found rollup.Correction) {
			what := fmt.Sprintf("%s %d to %d", verb, found.Old, found.New)
			switch {
			case found.Err != nil:
				what = fmt.Sprintf("left as it is: %v", found.Err)
			case found.Held:
				what = fmt.Sprintf("left at %d, %d are there: too many would be lowered", found.Old, found.New)
			case found.Busy:
				what = fmt.Sprintf("left at %d, %d are there: they keep changing", found.Old, found.New)
			}
			fmt.Fprintf(c.Out, "%s %s: %s %s\n", found.Table, found.Key.Raw(), found.Attribute, what)
		},
	}.Run(ctx, users)
	fmt.Fprintf(c.Out, "%d counters: %d right, %d were late, %d wrong, %d busy, %d without an item\n",
		done.Parents, done.Right, done.Settled, done.Corrected, done.Busy, done.Gone)
	if done.Failed > 0 {
		failed = errors.Join(failed, fmt.Errorf("counters that are no numbers: %d; set them right, and recount their parents", done.Failed))
	}
	return errors.Join(err, failed)
}

// lines are the users that somebody pipes in; they are read as a whole, since
// they are gone through more than once.
func lines(in io.Reader, failed *error) iter.Seq[string] {
	var all []string
	s := bufio.NewScanner(in)
	for s.Scan() {
		if id := strings.TrimSpace(s.Text()); id != "" {
			all = append(all, id)
		}
	}
	*failed = s.Err()
	return slices.Values(all)
}

// plan tells what a cascade would delete: of a user its maps, and then the points
// of each.
func plan(ctx context.Context, c kit.Call) error {
	ofUser := len(c.Args) == 2 && c.Args[0] == "user"
	ofMap := len(c.Args) == 3 && c.Args[0] == "map"
	if !ofUser && !ofMap || slices.Contains(c.Args, "") {
		return kit.Usage("want %s", planUsage)
	}
	store, tables, err := open(ctx, c.Env)
	if err != nil {
		return err
	}
	cascades, err := estuve.NewCascades(estuve.Deps{Tables: tables, Store: store})
	if err != nil {
		return err
	}
	var ofEach []estuve.Map
	if ofMap {
		ofEach = []estuve.Map{{UserID: c.Args[1], ID: c.Args[2]}}
	} else {
		if _, err := cascades.Users.DryRun(ctx, c.Out, item.Of(item.String("user_id", c.Args[1]))); err != nil {
			return err
		}
		if ofEach, err = (estuve.Reads{Tables: tables, Store: store}).Maps(ctx, c.Args[1]); err != nil {
			return err
		}
	}
	for _, m := range ofEach {
		if _, err := cascades.Maps.DryRun(ctx, c.Out, item.Of(item.String("user_id", m.UserID), item.String("map_id", m.ID))); err != nil {
			return err
		}
	}
	return nil
}

func open(ctx context.Context, env func(string) string) (estuve.Store, estuve.Tables, error) {
	cfg, tables, err := connect(ctx, env)
	if err != nil {
		return nil, tables, err
	}
	store, err := estuve.OpenStore(cfg, env, tables, nil)
	return store, tables, err
}

func connect(ctx context.Context, env func(string) string) (aws.Config, estuve.Tables, error) {
	_, cfg, err := kit.AWS(ctx, env)
	return cfg, estuve.Named(env("ESTUVE_PREFIX")), err
}
