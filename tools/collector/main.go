// Command collector receives traces by the OpenTelemetry Collector's own receiver, for
// tests, and prints each span as a line of JSON. Its arguments are the addresses for
// HTTP and gRPC. It ends with its standard input.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
)

// Span is a line of the output.
type Span struct {
	Service, Scope      string
	Trace, ID, Parent   string
	Name, Kind          string
	Status, Description string
	Links               []string // ids of spans
	Attributes          map[string]any
}

func main() {
	if len(os.Args) != 3 {
		fail(fmt.Errorf("want two addresses, for HTTP and gRPC"))
	}
	ctx := context.Background()
	f := otlpreceiver.NewFactory()
	config := f.CreateDefaultConfig().(*otlpreceiver.Config)
	config.Protocols.HTTP.GetOrInsertDefault().ServerConfig.NetAddr.Endpoint = os.Args[1]
	config.Protocols.GRPC.GetOrInsertDefault().NetAddr.Endpoint = os.Args[2]
	var mu sync.Mutex
	out := json.NewEncoder(os.Stdout)
	traces, err := consumer.NewTraces(func(_ context.Context, t ptrace.Traces) error {
		mu.Lock()
		defer mu.Unlock()
		for _, s := range spansOf(t) {
			if err := out.Encode(s); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		fail(err)
	}
	settings := receiver.Settings{ID: component.NewID(f.Type()), TelemetrySettings: componenttest.NewNopTelemetrySettings()}
	r, err := f.CreateTraces(ctx, settings, config, traces)
	if err == nil {
		err = r.Start(ctx, componenttest.NewNopHost())
	}
	if err != nil {
		fail(err)
	}
	fmt.Fprintln(os.Stderr, "ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	if err := r.Shutdown(ctx); err != nil {
		fail(err)
	}
}

func spansOf(t ptrace.Traces) (all []Span) {
	for _, rs := range t.ResourceSpans().All() {
		service, _ := rs.Resource().Attributes().Get("service.name")
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				one := Span{
					Service: service.AsString(), Scope: ss.Scope().Name(),
					Trace: s.TraceID().String(), ID: s.SpanID().String(), Parent: s.ParentSpanID().String(),
					Name: s.Name(), Kind: s.Kind().String(), Status: s.Status().Code().String(), Description: s.Status().Message(),
					Attributes: s.Attributes().AsRaw(),
				}
				for _, l := range s.Links().All() {
					one.Links = append(one.Links, l.SpanID().String())
				}
				all = append(all, one)
			}
		}
	}
	return all
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "collector:", err)
	os.Exit(1)
}
