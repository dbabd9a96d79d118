// Command main runs the transit gateways: as a Lambda function where Lambda
// starts it, as a daemon everywhere else. "create" makes the tables and the
// index.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/smithy-go/logging"

	transitgateway "github.com/sluicehq/sluice/examples/transit-gateway"
	"github.com/sluicehq/sluice/run"
)

func main() {
	if len(os.Args) > 1 {
		switch name := os.Args[1]; {
		case name == "help" && len(os.Args) == 3: // help COMMAND
			os.Exit(run.Exit(execute(context.Background(), os.Args[2], []string{"--help"}, os.Getenv, os.Stdout), "transit-gateway", os.Stderr))
		case name == "help" || name == "--help" || name == "-h":
			fmt.Println(help)
			os.Args[1] = "--help" // the flags follow
		case !strings.HasPrefix(name, "-"):
			ctx := run.OnSignals(context.Background())
			os.Exit(run.Exit(execute(ctx, name, os.Args[2:], os.Getenv, os.Stdout), "transit-gateway", os.Stderr))
		}
	}
	run.Main(app(os.Getenv))
}

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

const help = `Commands:
  create
      make the tables and the index that do not exist

Without a command:`

// execute runs a command, or prints how it is used.
func execute(ctx context.Context, name string, args []string, env func(string) string, out io.Writer) error {
	if name != "create" {
		return &run.UsageError{Err: fmt.Errorf("unknown command %q; commands are create. Without one, flags alone run the daemon", name)}
	}
	if slices.Contains(args, "--help") || slices.Contains(args, "-h") {
		_, err := fmt.Fprintln(out, "create: make the tables and the index that do not exist; TGW_PREFIX and TGW_INDEX name them")
		return err
	}
	return create(ctx, args, env, out)
}

// create makes the tables and the index that are not there.
func create(ctx context.Context, args []string, env func(string) string, out io.Writer) error {
	if len(args) > 0 {
		return &run.UsageError{Err: errors.New("create takes no arguments; TGW_PREFIX and TGW_INDEX name what it makes")}
	}
	replicas := 1
	if n := env("TGW_REPLICAS"); n != "" {
		var err error
		if replicas, err = strconv.Atoi(n); err != nil || replicas < 0 {
			return &run.UsageError{Err: fmt.Errorf("TGW_REPLICAS=%q: want how many copies there are of the index besides itself, 0 and above", n)}
		}
	}
	cfg, err := config.LoadDefaultConfig(ctx, config.WithLogger(logging.Nop{})) // its errors are returned
	if err != nil {
		return err
	}
	client, err := transitgateway.Cluster(env, cfg)
	if err != nil {
		return err
	}
	if endpoint := env("SLUICE_ENDPOINT_DYNAMODB"); endpoint != "" {
		cfg.BaseEndpoint = aws.String(endpoint)
	}
	prefix, index := env("TGW_PREFIX"), transitgateway.Index(env)
	if err := transitgateway.Create(ctx, cfg, prefix); err != nil {
		return err
	}
	if err := transitgateway.CreateIndex(ctx, client, index, replicas); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "tables %s and the others, and index %s, are there\n", strings.Join(transitgateway.Tables(prefix), ", "), index)
	return err
}
