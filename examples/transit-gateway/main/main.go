// Command main runs the transit gateways: as a Lambda function where Lambda
// starts it, as a daemon everywhere else. "create" makes the tables and the
// index.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/sluicehq/sluice/examples/internal/kit"
	transitgateway "github.com/sluicehq/sluice/examples/transit-gateway"
	"github.com/sluicehq/sluice/run"
)

func main() { program.Main(app(os.Getenv)) }

// app reads both streams, and consumes the janitor's queue, unless flags say
// otherwise.
func app(env func(string) string) run.App {
	prefix := env("TGW_PREFIX")
	a := run.App{Name: "transit-gateway", Tables: transitgateway.Tables(prefix), Routes: transitgateway.Connect(prefix)}
	if q := env("TGW_QUEUE"); q != "" {
		a.Queues = []string{q}
	}
	return a
}

var program = kit.Program{
	Name: "transit-gateway",
	Head: "Commands:",
	Commands: map[string]kit.Command{
		"create": {Usage: "create", Example: "create", Does: "make the tables and the index that do not exist; TGW_PREFIX and TGW_INDEX name them", NoArguments: "TGW_PREFIX and TGW_INDEX name what it makes", Run: create},
	},
	Tail: "Without a command:",
}

// create makes the tables and the index that are not there.
func create(ctx context.Context, c kit.Call) error {
	replicas, err := kit.Replicas(c.Env, "TGW_REPLICAS", 1)
	if err != nil {
		return err
	}
	signing, cfg, err := kit.AWS(ctx, c.Env)
	if err != nil {
		return err
	}
	client, err := kit.Cluster(c.Env, "TGW", signing)
	if err != nil {
		return err
	}
	prefix, index := c.Env("TGW_PREFIX"), transitgateway.Index(c.Env)
	if err := transitgateway.Create(ctx, cfg, prefix); err != nil {
		return err
	}
	if err := transitgateway.CreateIndex(ctx, client, index, replicas); err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.Out, "tables %s and the others, and index %s, are there\n", strings.Join(transitgateway.Tables(prefix), ", "), index)
	return err
}
