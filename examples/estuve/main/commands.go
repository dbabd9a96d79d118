package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/smithy-go/logging"
	"github.com/spf13/pflag"

	"github.com/sluicehq/sluice/examples/estuve"
	"github.com/sluicehq/sluice/handlers/rollup"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/run"
)

// commands are what the program does besides running.
var commands = map[string]struct {
	usage, does string
	run         func(ctx context.Context, args []string, env func(string) string, in io.Reader, out io.Writer) error
}{
	"create":  {"create", "make the tables that do not exist", create},
	"recount": {recountUsage, "set counters right; without users they are read from standard input, one a line", recount},
	"plan":    {planUsage, "list what a cascade would delete", plan},
}

const (
	recountUsage = "recount [--dry-run] [--settle 1m] [--max-deletes N] [--trust-tables] USER…"
	planUsage    = "plan user USER, or plan map USER MAP"
)

// help lists the commands. The flags of a daemon follow it.
func help() string {
	var b strings.Builder
	b.WriteString("Commands:\n")
	for _, name := range slices.Sorted(maps.Keys(commands)) {
		fmt.Fprintf(&b, "  %s\n      %s\n", commands[name].usage, commands[name].does)
	}
	return b.String() + "  worker [flags]\n      work off the queue of ESTUVE_QUEUE alone\n\nWithout a command:"
}

// execute runs a command, or prints how it is used.
func execute(ctx context.Context, name string, args []string, env func(string) string, in io.Reader, out io.Writer) error {
	c, ok := commands[name]
	if !ok {
		return usage(fmt.Sprintf("unknown command %q; commands are %s, worker. Without one, flags alone run the daemon", name, strings.Join(slices.Sorted(maps.Keys(commands)), ", ")))
	}
	if slices.Contains(args, "--help") || slices.Contains(args, "-h") {
		_, err := fmt.Fprintf(out, "%s: %s\n", c.usage, c.does)
		return err
	}
	return c.run(ctx, args, env, in, out)
}

// create makes the tables that are not there.
func create(ctx context.Context, args []string, env func(string) string, _ io.Reader, out io.Writer) error {
	if len(args) > 0 {
		return usage("create takes no arguments; ESTUVE_PREFIX names the tables")
	}
	cfg, tables, err := connect(ctx, env)
	if err != nil {
		return err
	}
	if err := estuve.Create(ctx, cfg, tables); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "tables %s and %s are there\n", strings.Join(tables.Streams(), ", "), tables.Markers)
	return err
}

// recount repairs the counters of users and of their maps.
func recount(ctx context.Context, args []string, env func(string) string, in io.Reader, out io.Writer) error {
	fs := pflag.NewFlagSet("recount", pflag.ContinueOnError)
	fs.SetOutput(io.Discard)
	dry := fs.Bool("dry-run", false, "tell what is wrong, write nothing")
	settle := fs.Duration("settle", time.Minute, "longer than a record takes from its write to its effect")
	most := fs.Int("max-deletes", 0, "most counters that are lowered (default: 1000, and 5 % of those looked at)")
	trust := fs.Bool("trust-tables", false, "lower counters also when hardly any parent has a child")
	if err := fs.Parse(args); err != nil {
		return usage(fmt.Sprintf("%v: want %s", err, recountUsage))
	}
	switch {
	case *settle <= 0:
		return usage(fmt.Sprintf("--settle is %v, want more than 0: %s", *settle, recountUsage))
	case *most < 0:
		return usage(fmt.Sprintf("--max-deletes is %d, want 0 or more: %s", *most, recountUsage))
	case slices.Contains(fs.Args(), ""):
		return usage("a user is empty: want " + recountUsage)
	}
	store, tables, err := open(ctx, env)
	if err != nil {
		return err
	}
	users := slices.Values(fs.Args())
	var failed error
	if fs.NArg() == 0 {
		users = lines(in, &failed)
	}
	verb := "set from"
	if *dry {
		verb = "would be set from"
	}
	done, err := estuve.Recounter{
		Tables: tables, Store: store, Settle: *settle, DryRun: *dry, MaxDeletes: *most, TrustTables: *trust,
		Found: func(c rollup.Correction) {
			if c.Err != nil {
				fmt.Fprintf(out, "%s %s: %s left as it is: %v\n", c.Table, c.Key.Raw(), c.Attribute, c.Err)
				return
			}
			if c.Held {
				fmt.Fprintf(out, "%s %s: %s left at %d, %d are there: too many would be lowered\n", c.Table, c.Key.Raw(), c.Attribute, c.Old, c.New)
				return
			}
			if c.Busy {
				fmt.Fprintf(out, "%s %s: %s left at %d, %d are there: they keep changing\n", c.Table, c.Key.Raw(), c.Attribute, c.Old, c.New)
				return
			}
			fmt.Fprintf(out, "%s %s: %s %s %d to %d\n", c.Table, c.Key.Raw(), c.Attribute, verb, c.Old, c.New)
		},
	}.Run(ctx, users)
	fmt.Fprintf(out, "%d counters: %d right, %d were late, %d wrong, %d busy, %d without an item\n",
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
func plan(ctx context.Context, args []string, env func(string) string, _ io.Reader, out io.Writer) error {
	ofUser := len(args) == 2 && args[0] == "user"
	ofMap := len(args) == 3 && args[0] == "map"
	if !ofUser && !ofMap || slices.Contains(args, "") {
		return usage("want " + planUsage)
	}
	store, tables, err := open(ctx, env)
	if err != nil {
		return err
	}
	cascades, err := estuve.NewCascades(estuve.Deps{Tables: tables, Store: store})
	if err != nil {
		return err
	}
	var ofEach []estuve.Map
	if ofMap {
		ofEach = []estuve.Map{{UserID: args[1], ID: args[2]}}
	} else {
		if _, err := cascades.Users.DryRun(ctx, out, item.Of(item.String("user_id", args[1]))); err != nil {
			return err
		}
		if ofEach, err = (estuve.Reads{Tables: tables, Get: store.Get, Query: store.Query}).Maps(ctx, args[1]); err != nil {
			return err
		}
	}
	for _, m := range ofEach {
		if _, err := cascades.Maps.DryRun(ctx, out, item.Of(item.String("user_id", m.UserID), item.String("map_id", m.ID))); err != nil {
			return err
		}
	}
	return nil
}

func usage(text string) error { return &run.UsageError{Err: errors.New(text)} }

func open(ctx context.Context, env func(string) string) (estuve.Store, estuve.Tables, error) {
	cfg, tables, err := connect(ctx, env)
	if err != nil {
		return nil, tables, err
	}
	store, err := estuve.OpenStore(estuve.Connection{DynamoDB: cfg, Env: env}, tables)
	return store, tables, err
}

func connect(ctx context.Context, env func(string) string) (aws.Config, estuve.Tables, error) {
	cfg, err := config.LoadDefaultConfig(ctx, config.WithLogger(logging.Nop{})) // its errors are returned
	if err != nil {
		return cfg, estuve.Tables{}, fmt.Errorf("AWS configuration: %w", err)
	}
	if url := env("SLUICE_ENDPOINT_DYNAMODB"); url != "" {
		cfg.BaseEndpoint = &url
	}
	return cfg, estuve.Named(env("ESTUVE_PREFIX")), nil
}
