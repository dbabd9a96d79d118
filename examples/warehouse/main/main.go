// Command main runs the warehouse: as a Lambda function where Lambda starts it,
// as a daemon everywhere else. With a subcommand it makes tables and indices,
// writes the fixtures, or answers a question.
package main

import (
	"cmp"
	"os"

	"github.com/sluicehq/sluice/examples/warehouse"
	"github.com/sluicehq/sluice/run"
)

func main() { program.Main(app(os.Getenv)) }

// app reads the streams of all tables that have one.
func app(env func(string) string) run.App {
	prefix := tablePrefix(env)
	return run.App{Name: "warehouse", Tables: warehouse.Tables(prefix), Routes: warehouse.Connect(prefix)}
}

func tablePrefix(env func(string) string) string {
	return cmp.Or(env("WAREHOUSE_PREFIX"), warehouse.DefaultPrefix)
}
