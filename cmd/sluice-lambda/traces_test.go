package main

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/sluicehq/sluice/internal/localstack"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/internal/recordtest"
)

const traceID = "5759e988bd862e3fe1be46a994272793" // of runtimeapi

// received has the names of the spans that an OTLP server takes, and what is wrong with
// their traces and resources.
type received struct {
	mu    sync.Mutex
	spans []string
}

func (r *received) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	var in collector.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(body, &in)
	}
	if err != nil || req.URL.Path != "/v1/traces" {
		http.Error(w, fmt.Sprint("not expected: ", req.URL, err), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rs := range in.ResourceSpans {
		name := ""
		for _, kv := range rs.Resource.Attributes {
			if kv.Key == "faas.name" {
				name = kv.Value.GetStringValue()
			}
		}
		for _, ss := range rs.ScopeSpans {
			for _, s := range ss.Spans {
				if id := hex.EncodeToString(s.TraceId); id != traceID || name != "orders" {
					r.spans = append(r.spans, "trace "+id+" of "+name)
				}
				r.spans = append(r.spans, s.Name)
			}
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

func (r *received) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := slices.Sorted(slices.Values(r.spans))
	r.spans = nil
	return all
}

// A function that is built with the tag exports the spans of a failure before its
// answer, in the trace of its invocation, although X-Ray has not sampled it.
func TestTracesOfAFunction(t *testing.T) {
	traced := filepath.Join(t.TempDir(), "bootstrap")
	if err := localstack.Build(t.Context(), traced, "-tags", "lambda.norpc,tracing", "."); err != nil {
		t.Fatal(err)
	}
	var r received
	otlp := httptest.NewServer(&r)
	defer otlp.Close()
	q := newQueues(t)
	var log bytes.Buffer
	env := []string{
		"CALLS=" + q.URL + "/1/calls", "DEAD=" + q.URL + "/1/dead", "SLUICE_ENDPOINT_SQS=" + q.URL,
		"OTEL_EXPORTER_OTLP_ENDPOINT=" + otlp.URL, "AWS_LAMBDA_FUNCTION_NAME=orders",
	}
	good, bad := recordtest.Event(recordtest.New(order(`{"N":"2"}`, "a"))), recordtest.Event(recordtest.New(order(`{"S":"x"}`, "c")))
	for _, tt := range []struct {
		bootstrap string
		event     []byte
		want      string
	}{
		{traced, good, ""},
		{traced, bad, "commit deadLetter, park active, process test, receive test, route active"},
		{bootstrap, bad, ""},
	} {
		fn, err := startBuilt(t, tt.bootstrap, file, &log, env...)
		if err != nil {
			t.Fatalf("%v\n%s", err, log.String())
		}
		if answer, err := fn.Invoke(t.Context(), tt.event, localtest.Patience); err != nil || string(answer.Payload) != `{"batchItemFailures":[]}` {
			t.Fatalf("answer %s, %v\n%s", answer.Payload, err, log.String())
		}
		if got := strings.Join(r.take(), ", "); got != tt.want {
			t.Errorf("spans %s\nwant %s\n%s", got, tt.want, log.String())
		}
		if _, err := fn.Stop(); err != nil {
			t.Error(err)
		}
	}
}
