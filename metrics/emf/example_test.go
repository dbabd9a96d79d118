package emf_test

import (
	"context"
	"os"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/metrics/emf"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/sinks/sqs"
	"github.com/sluicehq/sluice/sources/lambda"
)

// A function whose records, invocations and messages are CloudWatch's metrics.
func Example() {
	m := emf.New(os.Stdout, emf.Options{Dimensions: map[string]string{"Service": "searches"}})
	sink := sqs.Options{Metrics: m, Sink: "calls"}
	_ = sink // for sqs.New

	r := router.New()
	r.Handle("search#INSERT", func(context.Context, *sluice.Record) error { return nil })
	function := lambda.NewHandler(r, lambda.Options{Invoked: m.Invoked, FlowHooks: m.Flow(r)}) // or lambda.Start
	_, _ = function.Invoke(context.Background(), []byte(`{"Records":[]}`))
}
