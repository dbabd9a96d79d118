package tracing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/sluicehq/sluice/metrics"
)

// Options configure a Tracer; the zero value is ready to use.
type Options struct {
	// Service is the name of the service, unless OTEL_SERVICE_NAME or
	// OTEL_RESOURCE_ATTRIBUTES has it (default "sluice"; under Lambda the
	// function's name).
	Service string
	Version string // of the service
	// Parent is the attribute of an item in which its writer has put a traceparent
	// of W3C Trace Context (default "traceparent").
	Parent  string
	Metrics metrics.Meter // counts spans (default: none)
	Logger  *slog.Logger  // of failed exports (default slog.Default())
}

// On reports whether the environment asks for traces: it has an endpoint of OTLP, or
// OTEL_TRACES_EXPORTER.
func On(env func(string) string) bool {
	if strings.EqualFold(env("OTEL_SDK_DISABLED"), "true") || env("OTEL_TRACES_EXPORTER") == "none" {
		return false
	}
	return env("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != "" || env("OTEL_TRACES_EXPORTER") != ""
}

// Start returns a Tracer that exports by OTLP, as the variables OTEL_… of the process
// say, and makes its provider the global one of OpenTelemetry. Start makes no request:
// a collector may be down.
func Start(ctx context.Context, o Options) (*Tracer, error) {
	quiet(o.Logger)
	if err := checkEnv(os.Getenv); err != nil {
		return nil, err
	}
	exporter, err := exporterOf(ctx, os.Getenv)
	if err != nil {
		return nil, err
	}
	t, err := newTracer(ctx, exporter, o)
	if err != nil {
		return nil, err
	}
	otel.SetTracerProvider(t.heads)
	return t, nil
}

func exporterOf(ctx context.Context, env func(string) string) (sdk.SpanExporter, error) {
	if kind := env("OTEL_TRACES_EXPORTER"); kind != "" && kind != "otlp" {
		return nil, fmt.Errorf("OTEL_TRACES_EXPORTER=%q: want otlp or none", kind)
	}
	switch protocol := cmp.Or(env("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"), env("OTEL_EXPORTER_OTLP_PROTOCOL"), "http/protobuf"); protocol {
	case "http/protobuf":
		return otlptracehttp.New(ctx)
	case "grpc":
		return otlptracegrpc.New(ctx)
	default:
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL=%q: want http/protobuf or grpc", protocol)
	}
}

// newTracer makes a Tracer with two providers. One samples as the environment says. It
// makes the spans of pages, and is for others. The other one keeps all its spans, under
// given ids.
func newTracer(ctx context.Context, exporter sdk.SpanExporter, o Options) (*Tracer, error) {
	res, err := resource.New(ctx, resource.WithAttributes(attributesOf(o, os.Getenv)...), resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, errors.New("OTEL_RESOURCE_ATTRIBUTES: want NAME=VALUE, with commas between")
	}
	limits := sdk.NewSpanLimits()
	if os.Getenv("OTEL_SPAN_LINK_COUNT_LIMIT") == "" {
		limits.LinkCountLimit = maxLinks
	}
	q := newQueue(exporter, o.Metrics)
	all := []sdk.TracerProviderOption{sdk.WithResource(res), sdk.WithSpanProcessor(q), sdk.WithRawSpanLimits(limits)}
	heads := sdk.NewTracerProvider(all...)
	kept := sdk.NewTracerProvider(append(all, sdk.WithSampler(sdk.AlwaysSample()), sdk.WithIDGenerator(givenIDs{}))...)
	version := trace.WithInstrumentationVersion(o.Version)
	return &Tracer{heads: heads, queue: q, head: heads.Tracer(scope, version), kept: kept.Tracer(scope, version), parent: cmp.Or(o.Parent, "traceparent")}, nil
}

const (
	scope    = "github.com/sluicehq/sluice/tracing"
	maxLinks = 5000 // of a span: the records of the largest commit of a sink
)

// attributesOf describes the process, by the names that the detectors of a collector
// for Lambda use.
func attributesOf(o Options, env func(string) string) []attribute.KeyValue {
	all := []attribute.KeyValue{semconv.ServiceName(cmp.Or(valid(o.Service), env("AWS_LAMBDA_FUNCTION_NAME"), "sluice"))}
	if o.Version != "" {
		all = append(all, semconv.ServiceVersion(valid(o.Version)))
	}
	if name := env("AWS_LAMBDA_FUNCTION_NAME"); name != "" {
		all = append(all, semconv.CloudProviderAWS, semconv.CloudPlatformAWSLambda, semconv.CloudRegion(env("AWS_REGION")),
			semconv.FaaSName(name), semconv.FaaSVersion(env("AWS_LAMBDA_FUNCTION_VERSION")), semconv.FaaSInstance(env("AWS_LAMBDA_LOG_STREAM_NAME")))
	}
	return all
}
