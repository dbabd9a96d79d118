package lambda

import (
	"errors"
	"fmt"
	"os"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/sluicehq/sluice"
)

// Start runs the function: it handles invocations until the process ends. It does
// not return, and panics like [NewHandler]. In a process that Lambda did not start
// it prints a message and exits with 1.
func Start(m sluice.Matcher, o Options) {
	h := NewHandler(m, o)
	if err := startable(os.Getenv); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	var options []lambda.Option
	if o.SIGTERM != nil {
		options = append(options, lambda.WithEnableSIGTERM(o.SIGTERM))
	}
	lambda.StartWithOptions(h, options...)
}

// startable returns advice for somebody who starts a function by hand.
func startable(env func(string) string) error {
	if env("AWS_LAMBDA_RUNTIME_API") == "" && env("_LAMBDA_SERVER_PORT") == "" {
		return errors.New("lambda: this program is a Lambda function, and Lambda did not start it (AWS_LAMBDA_RUNTIME_API is not set): deploy it, give events to NewHandler(…).Invoke in a test, or run the routes as a daemon with run.Main")
	}
	return nil
}
