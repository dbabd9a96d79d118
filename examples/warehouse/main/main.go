// Command main runs the warehouse: as a Lambda function where Lambda starts it,
// as a daemon everywhere else. With a subcommand it makes tables and indices,
// writes the fixtures, or answers a question.
package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/sluicehq/sluice/examples/warehouse"
	"github.com/sluicehq/sluice/run"
)

func main() {
	if len(os.Args) > 1 {
		switch name := os.Args[1]; {
		case name == "help" && len(os.Args) == 3: // help COMMAND
			os.Exit(run.Exit(execute(context.Background(), os.Args[2], []string{"--help"}, os.Getenv, os.Stdout), "warehouse", os.Stderr))
		case name == "help" || name == "--help" || name == "-h":
			fmt.Println(help())
			os.Args[1] = "--help" // the flags follow
		case !strings.HasPrefix(name, "-"):
			ctx := run.OnSignals(context.Background())
			os.Exit(run.Exit(execute(ctx, name, os.Args[2:], os.Getenv, os.Stdout), "warehouse", os.Stderr))
		}
	}
	run.Main(app(os.Getenv))
}

// app reads the streams of all tables that have one.
func app(env func(string) string) run.App {
	prefix := tablePrefix(env)
	return run.App{Name: "warehouse", Tables: warehouse.Tables(prefix), Routes: warehouse.Connect(prefix)}
}

func tablePrefix(env func(string) string) string {
	return cmp.Or(env("WAREHOUSE_PREFIX"), warehouse.DefaultPrefix)
}
