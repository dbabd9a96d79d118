package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/smithy-go/logging"

	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/examples/warehouse"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/run"
	"github.com/sluicehq/sluice/sinks/dynamodb"
)

// command is what the program does besides running.
type command struct {
	usage, such, does string
	run               func(ctx context.Context, args []string, env func(string) string, out io.Writer) error
}

// all returns the commands by name.
func all() map[string]command {
	commands := map[string]command{
		"create": {"create", "create", "make the tables and indices that do not exist", create},
		"seed":   {"seed", "seed", "write the fixtures that do not exist", seed},
	}
	for name, q := range questions {
		commands[name] = command{q.usage(name), name + " " + q.such, q.does, ask(name)}
	}
	return commands
}

// help lists the commands. The flags of a daemon follow it.
func help() string {
	var b strings.Builder
	b.WriteString("Commands. Those that read answer in lines of JSON:\n")
	for _, c := range slices.SortedFunc(maps.Values(all()), func(a, b command) int { return strings.Compare(a.usage, b.usage) }) {
		fmt.Fprintf(&b, "  %s\n      %s\n", c.usage, c.does)
	}
	b.WriteString("\nExamples:\n  warehouse create\n  warehouse --start TRIM_HORIZON --state warehouse.db\n  warehouse status whatever dev 1.0.0\n")
	return b.String() + "\n`warehouse COMMAND --help` has an example of each command. Without a command:"
}

// execute runs a command, or prints how it is used.
func execute(ctx context.Context, name string, args []string, env func(string) string, out io.Writer) error {
	c, ok := all()[name]
	if !ok {
		return usage(fmt.Sprintf("unknown command %q; commands are %s. Without one, flags alone run the daemon", name, strings.Join(slices.Sorted(maps.Keys(all())), ", ")))
	}
	if slices.Contains(args, "--help") || slices.Contains(args, "-h") {
		_, err := fmt.Fprintf(out, "warehouse %s: %s\n\nExample:\n  warehouse %s\n", c.usage, c.does, c.such)
		return err
	}
	return c.run(ctx, args, env, out)
}

// create makes the tables and indices that are not there.
func create(ctx context.Context, args []string, env func(string) string, out io.Writer) error {
	if len(args) > 0 {
		return usage("create takes no arguments; WAREHOUSE_PREFIX and WAREHOUSE_INDEX_PREFIX name what it makes")
	}
	replicas := 1
	if n := env("WAREHOUSE_REPLICAS"); n != "" {
		var err error
		if replicas, err = strconv.Atoi(n); err != nil || replicas < 0 {
			return usage(fmt.Sprintf("WAREHOUSE_REPLICAS=%q: want how many copies of an index there are besides the first, such as 1", n))
		}
	}
	signing, cfg, err := connect(ctx, env)
	if err != nil {
		return err
	}
	client, err := warehouse.Cluster(env, signing)
	if err != nil {
		return err
	}
	if err := warehouse.Create(ctx, cfg, tablePrefix(env)); err != nil {
		return err
	}
	index := cmp.Or(env("WAREHOUSE_INDEX_PREFIX"), warehouse.DefaultIndexPrefix)
	if err := warehouse.CreateIndexes(ctx, client, index, replicas); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "tables %s… and indices %spackage and %[2]sbuild are there\n", tablePrefix(env), index)
	return err
}

// seed writes the items of the fixtures that are not there: a head that was
// there is not set back.
func seed(ctx context.Context, args []string, env func(string) string, out io.Writer) error {
	if len(args) > 0 {
		return usage("seed takes no arguments; WAREHOUSE_PREFIX names the tables")
	}
	_, cfg, err := connect(ctx, env)
	if err != nil {
		return err
	}
	store, err := dynamodb.New(cfg, dynamodb.Options{})
	if err != nil {
		return err
	}
	for _, f := range warehouse.Fixtures() {
		table := tablePrefix(env) + f.Table
		keys, err := warehouse.Keys(f.Table)
		if err != nil {
			return err
		}
		k := f.Item.Only(keys...)
		there := ""
		err = store.Write(ctx, dynamo.Put(table, f.Item).If("attribute_not_exists(#key)").Name("#key", keys[0]))
		switch {
		case dynamo.IsCondition(err):
			there = " is there"
		case err != nil:
			return err
		}
		if _, err := fmt.Fprintf(out, "%s %s%s\n", table, k.AppendJSON(nil, item.SortedKeys()), there); err != nil {
			return err
		}
	}
	return nil
}

func usage(text string) error { return &run.UsageError{Err: errors.New(text)} }

// connect returns the configuration as it is, which signs requests to
// OpenSearch, and that of DynamoDB. The SDK logs nothing: its errors are returned.
func connect(ctx context.Context, env func(string) string) (plain, db aws.Config, err error) {
	if plain, err = config.LoadDefaultConfig(ctx, config.WithLogger(logging.Nop{})); err != nil {
		return plain, plain, fmt.Errorf("AWS configuration: %w", err)
	}
	db = plain
	if url := env("SLUICE_ENDPOINT_DYNAMODB"); url != "" {
		db.BaseEndpoint = &url
	}
	return plain, db, nil
}
