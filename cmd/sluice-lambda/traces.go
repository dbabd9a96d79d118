//go:build tracing

package main

import (
	"context"
	"os"

	"github.com/sluicehq/sluice/internal/function"
	"github.com/sluicehq/sluice/internal/lambdatraces"
	"github.com/sluicehq/sluice/sources/lambda"
	"github.com/sluicehq/sluice/tracing"
)

var traces = &function.Traces{Logs: tracing.Logs, Start: func(ctx context.Context, o *lambda.Options, parent string) error {
	return lambdatraces.Start(ctx, o, parent, os.Getenv)
}}
