//go:build !tracing

package main

import "github.com/sluicehq/sluice/internal/function"

// traces is nil: OpenTelemetry would delay each cold start.
var traces *function.Traces
