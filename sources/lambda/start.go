package lambda

import (
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/sluicehq/sluice"
)

// Start runs the function: it takes invocations from the service until the
// process is ended. It does not return, and panics like [NewHandler].
func Start(m sluice.Matcher, o Options) {
	h := NewHandler(m, o)
	var options []lambda.Option
	if o.SIGTERM != nil {
		options = append(options, lambda.WithEnableSIGTERM(o.SIGTERM))
	}
	lambda.StartWithOptions(h, options...)
}
