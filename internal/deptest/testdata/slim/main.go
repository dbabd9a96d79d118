// Command slim is the least Lambda function: what it links, every one links.
package main

import (
	"context"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/sources/lambda"
)

func main() {
	r := router.New()
	r.Handle("search#INSERT", func(context.Context, *sluice.Record) error { return nil })
	lambda.Start(r, lambda.Options{})
}
