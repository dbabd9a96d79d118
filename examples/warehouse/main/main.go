// Command main runs the warehouse: as a Lambda function where Lambda starts it,
// as a daemon everywhere else.
package main

import (
	"cmp"
	"os"

	"github.com/sluicehq/sluice/examples/warehouse"
	"github.com/sluicehq/sluice/run"
)

func main() {
	prefix := cmp.Or(os.Getenv("WAREHOUSE_PREFIX"), warehouse.DefaultPrefix)
	run.Main(run.App{Name: "warehouse", Tables: warehouse.Tables(prefix), Routes: warehouse.Connect(prefix)})
}
