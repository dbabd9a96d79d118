package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/examples/internal/kit"
	"github.com/sluicehq/sluice/examples/warehouse"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/sinks/dynamodb"
)

var program = kit.Program{
	Name:     "warehouse",
	Head:     "Commands. Those that read answer in lines of JSON:",
	Commands: commands(),
	Tail: `Examples:
  warehouse create
  warehouse --start TRIM_HORIZON --state warehouse.db
  warehouse status whatever dev 1.0.0

` + "`warehouse COMMAND --help` has an example of each command. Without a command:",
}

func commands() map[string]kit.Command {
	all := map[string]kit.Command{
		"create": {Usage: "create", Example: "create", Does: "make the tables and indices that do not exist", NoArguments: "WAREHOUSE_PREFIX and WAREHOUSE_INDEX_PREFIX name what it makes", Run: create},
		"seed":   {Usage: "seed", Example: "seed", Does: "write the fixtures that do not exist", NoArguments: "WAREHOUSE_PREFIX names the tables", Run: seed},
	}
	for name, q := range questions {
		all[name] = kit.Command{Usage: q.usage(name), Example: name + " " + q.such, Does: q.does, Run: ask(name)}
	}
	return all
}

// create makes the tables and indices that are not there.
func create(ctx context.Context, c kit.Call) error {
	replicas, err := kit.Replicas(c.Env, "WAREHOUSE_REPLICAS", 1)
	if err != nil {
		return err
	}
	signing, cfg, err := kit.AWS(ctx, c.Env)
	if err != nil {
		return err
	}
	client, err := kit.Cluster(c.Env, "WAREHOUSE", signing)
	if err != nil {
		return err
	}
	if err := warehouse.Create(ctx, cfg, tablePrefix(c.Env)); err != nil {
		return err
	}
	index := cmp.Or(c.Env("WAREHOUSE_INDEX_PREFIX"), warehouse.DefaultIndexPrefix)
	if err := warehouse.CreateIndexes(ctx, client, index, replicas); err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.Out, "tables %s… and indices %spackage and %[2]sbuild are there\n", tablePrefix(c.Env), index)
	return err
}

// seed writes the items of the fixtures that are not there: a head that was
// there is not set back.
func seed(ctx context.Context, c kit.Call) error {
	_, cfg, err := kit.AWS(ctx, c.Env)
	if err != nil {
		return err
	}
	store, err := dynamodb.New(cfg, dynamodb.Options{})
	if err != nil {
		return err
	}
	for _, f := range warehouse.Fixtures() {
		table := tablePrefix(c.Env) + f.Table
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
		if _, err := fmt.Fprintf(c.Out, "%s %s%s\n", table, k.AppendJSON(nil, item.JSON{SortedKeys: true}), there); err != nil {
			return err
		}
	}
	return nil
}
