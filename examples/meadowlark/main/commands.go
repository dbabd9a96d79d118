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

	"github.com/sluicehq/sluice/examples/meadowlark"
	"github.com/sluicehq/sluice/examples/meadowlark/writer"
	"github.com/sluicehq/sluice/run"
	"github.com/sluicehq/sluice/sinks/dynamodb"
)

// commands are what the program does besides running.
var commands = map[string]struct {
	usage, such, does string
	run               func(ctx context.Context, args []string, env func(string) string, out io.Writer) error
}{
	"create": {"create", "create", "make the table if it does not exist, and install the template of the indices", create},
	"seed":   {"seed", "seed", "write the documents of the fixtures that do not exist", seed},
	"delete": {"delete TYPE ID", deletion, "delete a document, unless others refer to it", remove},
}

// deletion is an example: the course of the fixtures.
const deletion = "delete TYPE#Ed-Fi#3.3.1-b#Course 2717e6e9275502cb2da0e3bdbf5c2ba3395f9e2117bdc7e03c216138"

// help lists the commands. The flags of a daemon follow it.
func help() string {
	var b strings.Builder
	b.WriteString("Commands:\n")
	for _, name := range slices.Sorted(maps.Keys(commands)) {
		fmt.Fprintf(&b, "  %s\n      %s\n", commands[name].usage, commands[name].does)
	}
	b.WriteString("\nExamples:\n  meadowlark create\n  meadowlark --start TRIM_HORIZON --state meadowlark.db\n  meadowlark " + deletion + "\n")
	return b.String() + "\nWithout a command:"
}

// execute runs a command, or prints how it is used.
func execute(ctx context.Context, name string, args []string, env func(string) string, out io.Writer) error {
	c, ok := commands[name]
	if !ok {
		return usage(fmt.Sprintf("unknown command %q; commands are %s. Without one, flags alone run the daemon", name, strings.Join(slices.Sorted(maps.Keys(commands)), ", ")))
	}
	if slices.Contains(args, "--help") || slices.Contains(args, "-h") {
		_, err := fmt.Fprintf(out, "meadowlark %s: %s\n\nExample:\n  meadowlark %s\n", c.usage, c.does, c.such)
		return err
	}
	return c.run(ctx, args, env, out)
}

// create makes the table if it is not there, and installs the template.
func create(ctx context.Context, args []string, env func(string) string, out io.Writer) error {
	if len(args) > 0 {
		return usage("create takes no arguments; SLUICE_TABLES names the table, MEADOWLARK_INDEX_PREFIX the indices")
	}
	replicas := -1
	if n := env("MEADOWLARK_REPLICAS"); n != "" {
		var err error
		if replicas, err = strconv.Atoi(n); err != nil || replicas < 0 {
			return usage(fmt.Sprintf("MEADOWLARK_REPLICAS=%q: want how many copies of an index there are besides the first, such as 1", n))
		}
	}
	cfg, table, err := connect(ctx, env)
	if err != nil {
		return err
	}
	client, err := meadowlark.Connection{OpenSearch: cfg, Env: env}.Client()
	if err != nil {
		return err
	}
	if err := meadowlark.Create(ctx, cfg, table); err != nil {
		return err
	}
	if err := (meadowlark.Indices{Call: client.Call, Prefix: env("MEADOWLARK_INDEX_PREFIX")}).Install(ctx, replicas); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "table %s and the template of its indices are there\n", table)
	return err
}

// seed writes the documents of the fixtures.
func seed(ctx context.Context, args []string, env func(string) string, out io.Writer) error {
	if len(args) > 0 {
		return usage("seed takes no arguments; SLUICE_TABLES names the table")
	}
	w, err := open(ctx, env)
	if err != nil {
		return err
	}
	for _, d := range meadowlark.Documents() {
		err := w.Create(ctx, d)
		switch {
		case errors.Is(err, writer.ErrExists):
			fmt.Fprintf(out, "%s %s is there\n", d.Type, d.ID())
		case err != nil:
			return err
		default:
			fmt.Fprintf(out, "%s %s\n", d.Type, d.ID())
		}
	}
	return nil
}

// remove deletes a document, and answers as an API would.
func remove(ctx context.Context, args []string, env func(string) string, out io.Writer) error {
	if len(args) != 2 || args[0] == "" || args[1] == "" {
		return usage("want delete TYPE ID, such as " + deletion)
	}
	w, err := open(ctx, env)
	if err != nil {
		return err
	}
	err = w.Delete(ctx, args[0], args[1])
	if err == nil {
		_, err = fmt.Fprintln(out, "204")
		return err
	}
	status, body := writer.Answer(err)
	fmt.Fprintf(out, "%d %s\n", status, body)
	return err
}

func usage(text string) error { return &run.UsageError{Err: errors.New(text)} }

func open(ctx context.Context, env func(string) string) (*writer.Writer, error) {
	cfg, table, err := connect(ctx, env)
	if err != nil {
		return nil, err
	}
	store, err := dynamodb.New(cfg, dynamodb.Options{})
	if err != nil {
		return nil, err
	}
	return writer.New(writer.Config{Store: store, Table: table, Resources: meadowlark.Resources()})
}

func connect(ctx context.Context, env func(string) string) (aws.Config, string, error) {
	cfg, err := config.LoadDefaultConfig(ctx, config.WithLogger(logging.Nop{})) // its errors are returned
	if err != nil {
		return cfg, "", fmt.Errorf("AWS configuration: %w", err)
	}
	if url := env("SLUICE_ENDPOINT_DYNAMODB"); url != "" {
		cfg.BaseEndpoint = &url
	}
	return cfg, cmp.Or(env("SLUICE_TABLES"), writer.DefaultTable), nil
}
