package emf

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/metrics"
	"github.com/sluicehq/sluice/sources/lambda"
)

// Options configure Metrics; the zero value is ready to use.
type Options struct {
	// Namespace of the metrics in CloudWatch (default "Sluice").
	Namespace string
	// Dimensions of all metrics by name, 28 at most (default FunctionName, as in
	// the environment of Lambda). An empty, non-nil map is no dimension.
	Dimensions map[string]string
}

func (o Options) withDefaults() Options {
	o.Namespace = cmp.Or(o.Namespace, "Sluice")
	if o.Dimensions == nil {
		if name := os.Getenv("AWS_LAMBDA_FUNCTION_NAME"); name != "" {
			o.Dimensions = map[string]string{"FunctionName": name}
		}
	}
	return o
}

// dimension is a name and a value that metrics have.
type dimension struct{ name, value string }

// dimensions returns those of a map, sorted by name.
func dimensions(of map[string]string) (all []dimension) {
	for _, name := range slices.Sorted(maps.Keys(of)) {
		all = append(all, dimension{name, of[name]})
	}
	return all
}

// Limits of CloudWatch.
const (
	maxDimensions = 30   // of a metric
	maxName       = 250  // bytes of a dimension's name
	maxValue      = 1024 // bytes of a dimension's value
	maxNamespace  = 255
	maxValues     = 100 // of a metric in one line
	reserved      = "AWS/"
)

func (o Options) validate() error {
	if err := named("Namespace", o.Namespace, maxNamespace); err != nil {
		return err
	}
	if strings.HasPrefix(o.Namespace, reserved) {
		return fmt.Errorf("emf: Options.Namespace is %q: CloudWatch reserves names that begin with %s for its own services", o.Namespace, reserved)
	}
	if n := len(o.Dimensions); n > maxDimensions-2 {
		return fmt.Errorf("emf: Options.Dimensions are %d: want %d at most, besides Route, Sink or Escalation", n, maxDimensions-2)
	}
	seen := map[string]bool{
		"Route": true, "Sink": true, "Escalation": true, "_aws": true, "RequestId": true,
	}
	for _, names := range [][]string{invocationNames[:], routeNames[:]} {
		for _, name := range names {
			seen[name] = true
		}
	}
	for _, m := range metrics.All() {
		seen[m.CloudWatch], seen[m.Dimension] = true, true
	}
	for _, d := range dimensions(o.Dimensions) {
		if err := named("Dimensions: a name", d.name, maxName); err != nil {
			return err
		}
		if err := named(fmt.Sprintf("Dimensions[%q]", d.name), d.value, maxValue); err != nil {
			return err
		}
		if seen[d.name] {
			return fmt.Errorf("emf: Options.Dimensions: the name %q is taken: want another name", d.name)
		}
	}
	return nil
}

// named refuses names and values that CloudWatch refuses.
func named(field, s string, most int) error {
	if clean(s, most) != s {
		return fmt.Errorf("emf: Options.%s is %q: want 1 to %d printable characters of ASCII that do not begin with a colon", field, s, most)
	}
	return nil
}

// Metrics collects the numbers of invocations. Its hooks are safe for concurrent
// use. With concurrent invocations in one process, each reports the numbers since
// the last one ended: the sums are right.
type Metrics struct {
	w          io.Writer
	namespace  string
	dimensions []dimension // of all metrics

	mu    sync.Mutex // guards lists, lines and w
	parts []*part
	lines map[dimension]*part // of declared metrics
	line  []byte              // the last line, for reuse
	spare []byte              // for values, for reuse

	unrouted atomic.Int64 // records
}

// New returns Metrics that write to w once per invocation. It panics if an option
// is invalid.
func New(w io.Writer, o Options) *Metrics {
	o = o.withDefaults()
	if err := errors.Join(o.validate(), validNames(metrics.All())); err != nil {
		panic(err.Error())
	}
	return &Metrics{w: w, namespace: o.Namespace, dimensions: dimensions(o.Dimensions), lines: map[dimension]*part{}}
}

// Flow returns hooks for lambda.Options.FlowHooks, for the routes of matcher.
func (m *Metrics) Flow(matcher sluice.Matcher) flow.Hooks {
	routes := make([]*part, len(matcher.Routes()))
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, r := range matcher.Routes() {
		routes[i] = routePart(r.Name)
		m.parts = append(m.parts, routes[i])
	}
	return flow.Hooks{
		Handled: func(_ context.Context, _ *sluice.Record, r *sluice.Route, result flow.Result, took time.Duration, _ error) {
			switch {
			case result == flow.Unrouted:
				m.unrouted.Add(1)
			case r != nil:
				routes[r.Index].handled(result, took)
			}
		},
		ParkFailed: func(_ *sluice.Record, r *sluice.Route, _ error) {
			if r != nil {
				routes[r.Index].increase(parkFailures)
			}
		},
		Stuck: func(_ *sluice.Record, r *sluice.Route, _ time.Duration, returned bool) {
			if r != nil && !returned {
				routes[r.Index].increase(stuckHandlers)
			}
		},
	}
}

// Invoked is for lambda.Options.Invoked: it writes the lines of an invocation.
func (m *Metrics) Invoked(inv lambda.Invocation) {
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	// One call per line: a pipe takes up to 4096 bytes at once or not at all. A
	// longer write may be split, and other writers such as the log may come
	// between.
	m.write(m.appendInvocation(m.line[:0], inv, now))
	for _, p := range m.parts {
		m.write(p.flush(m.line[:0], m, now))
	}
}

// write writes one line, or nothing.
func (m *Metrics) write(line []byte) {
	m.line = line
	if len(line) > 0 {
		_, _ = m.w.Write(line) // without standard output there is nowhere to report
	}
}
