package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sluicehq/sluice/examples/internal/kit"
	"github.com/sluicehq/sluice/examples/meadowlark"
	"github.com/sluicehq/sluice/examples/meadowlark/writer"
	"github.com/sluicehq/sluice/sinks/dynamodb"
)

var program = kit.Program{
	Name: "meadowlark",
	Head: "Commands:",
	Commands: map[string]kit.Command{
		"create": {Usage: "create", Example: "create", Does: "make the table if it does not exist, and install the template of the indices", NoArguments: "SLUICE_TABLES names the table, MEADOWLARK_INDEX_PREFIX the indices", Run: create},
		"seed":   {Usage: "seed", Example: "seed", Does: "write the documents of the fixtures that do not exist", NoArguments: "SLUICE_TABLES names the table", Run: seed},
		"delete": {Usage: "delete TYPE ID", Example: deletion, Does: "delete a document, unless others refer to it", Run: remove},
	},
	Tail: "Examples:\n  meadowlark create\n  meadowlark --start TRIM_HORIZON --state meadowlark.db\n  meadowlark " + deletion + "\n\nWithout a command:",
}

// deletion is an example: the course of the fixtures.
const deletion = "delete TYPE#Ed-Fi#3.3.1-b#Course 2717e6e9275502cb2da0e3bdbf5c2ba3395f9e2117bdc7e03c216138"

// create makes the table if it is not there, and installs the template.
func create(ctx context.Context, c kit.Call) error {
	replicas, err := kit.Replicas(c.Env, "MEADOWLARK_REPLICAS", -1)
	if err != nil {
		return err
	}
	cfg, table, err := connect(ctx, c.Env)
	if err != nil {
		return err
	}
	client, err := meadowlark.Cluster(c.Env, cfg)
	if err != nil {
		return err
	}
	if err := meadowlark.Create(ctx, cfg, table); err != nil {
		return err
	}
	if err := (meadowlark.Indices{Call: client.Call, Prefix: c.Env("MEADOWLARK_INDEX_PREFIX")}).Install(ctx, replicas); err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.Out, "table %s and the template of its indices are there\n", table)
	return err
}

// seed writes the documents of the fixtures.
func seed(ctx context.Context, c kit.Call) error {
	w, err := open(ctx, c.Env)
	if err != nil {
		return err
	}
	for _, d := range meadowlark.Documents() {
		err := w.Create(ctx, d)
		switch {
		case errors.Is(err, writer.ErrExists):
			fmt.Fprintf(c.Out, "%s %s is there\n", d.Type, d.ID())
		case err != nil:
			return err
		default:
			fmt.Fprintf(c.Out, "%s %s\n", d.Type, d.ID())
		}
	}
	return nil
}

// remove deletes a document, and answers as an API would.
func remove(ctx context.Context, c kit.Call) error {
	if len(c.Args) != 2 || c.Args[0] == "" || c.Args[1] == "" {
		return kit.Usage("want %s", "delete TYPE ID, such as "+deletion)
	}
	w, err := open(ctx, c.Env)
	if err != nil {
		return err
	}
	err = w.Delete(ctx, c.Args[0], c.Args[1])
	if err == nil {
		_, err = fmt.Fprintln(c.Out, "204")
		return err
	}
	status, body := writer.Answer(err)
	fmt.Fprintf(c.Out, "%d %s\n", status, body)
	return err
}

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
	_, cfg, err := kit.AWS(ctx, env)
	return cfg, cmp.Or(env("SLUICE_TABLES"), writer.DefaultTable), err
}
