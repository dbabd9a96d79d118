package emf

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/flow"
	_ "github.com/sluicehq/sluice/handlers/escalation"
	_ "github.com/sluicehq/sluice/handlers/projection"
	"github.com/sluicehq/sluice/internal/commits"
	"github.com/sluicehq/sluice/metrics"
	"github.com/sluicehq/sluice/sources/lambda"
)

type routes []*sluice.Route

func (r routes) Routes() []*sluice.Route { return r }
func (r routes) Match(dst []*sluice.Route, _ *sluice.Record) ([]*sluice.Route, error) {
	return append(dst, r...), nil
}

// named returns routes of those names.
func matcher(names ...string) routes {
	var rs routes
	for i, name := range names {
		rs = append(rs, &sluice.Route{Name: name, Index: i})
	}
	return rs
}

// documents checks every line against the specification and returns them.
func documents(t *testing.T, out []byte) []map[string]any {
	t.Helper()
	schema := jsonschema.NewCompiler().MustCompile("testdata/emf.schema.json")
	var docs []map[string]any
	for line := range bytes.Lines(out) {
		if len(line) > 256<<10 {
			t.Errorf("a line of %d bytes: the service cuts it", len(line))
		}
		if !bytes.HasSuffix(line, []byte("}\n")) {
			t.Errorf("%q does not end its line", line)
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(line))
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if err := schema.Validate(doc); err != nil {
			t.Errorf("%s: %v", line, err)
		}
		var got map[string]any
		if err := json.Unmarshal(line, &got); err != nil {
			t.Fatal(err)
		}
		checkTargets(t, got)
		docs = append(docs, got)
	}
	return docs
}

// checkTargets checks rules beyond the schema: beside _aws, every dimension is a text,
// and every metric a number or a list of numbers.
func checkTargets(t *testing.T, doc map[string]any) {
	t.Helper()
	for _, d := range doc["_aws"].(map[string]any)["CloudWatchMetrics"].([]any) {
		directive := d.(map[string]any)
		for _, set := range directive["Dimensions"].([]any) {
			for _, name := range set.([]any) {
				v, ok := doc[name.(string)].(string)
				if !ok || v == "" || len(v) > 1024 || strings.TrimSpace(v) == "" {
					t.Errorf("dimension %s is %q", name, doc[name.(string)])
				}
			}
		}
		for _, m := range directive["Metrics"].([]any) {
			name := m.(map[string]any)["Name"].(string)
			switch doc[name].(type) {
			case float64, []any:
			default:
				t.Errorf("metric %s is %v", name, doc[name])
			}
		}
	}
}

func declaredAs(name string) *metrics.Metric {
	for _, m := range metrics.All() {
		if m.CloudWatch == name {
			return m
		}
	}
	panic(name)
}

// A rare event has a line when it happens.
func TestCount(t *testing.T) {
	var out bytes.Buffer
	m := New(&out, Options{Dimensions: map[string]string{}})
	alarms, lost := declaredAs("EscalationAlarms").Of(m), declaredAs("ProjectionLost").Of(m)
	alarms.Add(1, "call")
	alarms.Add(1, "call")
	m.Invoked(lambda.Invocation{})
	lost.Add(1, "orders", "not_raised")
	lost.Add(1, "orders", "began_anew")
	m.Invoked(lambda.Invocation{})
	docs := documents(t, out.Bytes())
	if len(docs) != 4 || docs[1]["EscalationAlarms"] != 2.0 || docs[1]["Escalation"] != "call" || docs[3]["ProjectionLost"] != 2.0 {
		t.Errorf("%v", docs)
	}
}

var (
	parts = metrics.New(metrics.Metric{CloudWatch: "TestParts"})
	spent = metrics.New(metrics.Metric{Name: "test_spent_seconds", CloudWatch: "TestSpent"})
)

// Parts add up, and seconds are milliseconds.
func TestCountOfParts(t *testing.T) {
	var out bytes.Buffer
	m := New(&out, Options{Dimensions: map[string]string{}})
	for range 4 {
		parts.Of(m).Add(0.5)
	}
	spent.Of(m).Add(12.25)
	m.Invoked(lambda.Invocation{})
	docs := documents(t, out.Bytes())
	if len(docs) != 2 || docs[1]["TestParts"] != 2.0 || docs[1]["TestSpent"] != 12250.0 || !strings.Contains(out.String(), `{"Name":"TestSpent","Unit":"Milliseconds"}`) {
		t.Errorf("%v", docs)
	}
}

func TestLines(t *testing.T) {
	t.Setenv("AWS_LAMBDA_FUNCTION_NAME", "searches")
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		m := New(&out, Options{})
		rs := matcher("calls", "quiet")
		h, s, idle := m.Flow(rs), commits.Of(m, "sqs"), commits.Of(m, "dynamodb")
		_ = idle
		h.Handled(context.Background(), nil, rs[0], flow.Done, 1500*time.Microsecond, nil)
		h.Handled(context.Background(), nil, rs[0], flow.Done, 2*time.Millisecond, nil)
		h.Handled(context.Background(), nil, rs[0], flow.Skipped, 0, sluice.Skip("not active"))
		h.Handled(context.Background(), nil, rs[0], flow.Stopped, 12*time.Second, errors.New("down"))
		h.Handled(context.Background(), nil, rs[0], flow.Retried, time.Millisecond, errors.New("down"))
		h.Handled(context.Background(), nil, rs[0], flow.Parked, time.Millisecond, errors.New("never"))
		h.Handled(context.Background(), nil, nil, flow.Unrouted, 0, nil)
		h.ParkFailed(nil, rs[0], errors.New("full"))
		h.Stuck(nil, rs[0], time.Minute, false)
		h.Stuck(nil, rs[0], time.Minute, true)
		s.Add(10, 3, 8*time.Millisecond)
		s.Add(1, 0, 4*time.Millisecond)
		m.Invoked(lambda.Invocation{RequestID: "r-1", Cold: true, Records: 9, Settled: 3, Failed: 1, Parked: 1, Took: 2 * time.Second, Stopped: errors.New("down")})
		const head = `{"_aws":{"Timestamp":946684800000,"CloudWatchMetrics":[{"Namespace":"Sluice","Dimensions":[["FunctionName"`
		want := head + `]],"Metrics":[{"Name":"Invocations","Unit":"Count"},{"Name":"InvocationErrors","Unit":"Count"},{"Name":"PartialFailures","Unit":"Count"},{"Name":"ColdStarts","Unit":"Count"},{"Name":"Records","Unit":"Count"},{"Name":"Settled","Unit":"Count"},{"Name":"Failed","Unit":"Count"},{"Name":"Parked","Unit":"Count"},{"Name":"Unrouted","Unit":"Count"},{"Name":"InvocationDuration","Unit":"Milliseconds"}]}]},"FunctionName":"searches","Invocations":1,"InvocationErrors":0,"PartialFailures":1,"ColdStarts":1,"Records":9,"Settled":3,"Failed":1,"Parked":1,"Unrouted":1,"InvocationDuration":2000,"RequestId":"r-1"}
` + head + `,"Route"]],"Metrics":[{"Name":"Done","Unit":"Count"},{"Name":"Skipped","Unit":"Count"},{"Name":"Parked","Unit":"Count"},{"Name":"Failed","Unit":"Count"},{"Name":"ParkFailures","Unit":"Count"},{"Name":"StuckHandlers","Unit":"Count"},{"Name":"HandlerDuration","Unit":"Milliseconds"}]}]},"FunctionName":"searches","Route":"calls","Done":2,"Skipped":1,"Parked":1,"Failed":2,"ParkFailures":1,"StuckHandlers":1,"HandlerDuration":[1.5,2,0,12000,1,1]}
` + head + `,"Sink"]],"Metrics":[{"Name":"CommitItems","Unit":"Count"},{"Name":"CommitFailures","Unit":"Count"},{"Name":"CommitDuration","Unit":"Milliseconds"}]}]},"FunctionName":"searches","Sink":"sqs","CommitItems":[10,1],"CommitFailures":3,"CommitDuration":[8,4]}
`
		if out.String() != want {
			t.Errorf("wrote\n%s\nwant\n%s", out.String(), want)
		}
		documents(t, out.Bytes())

		// The next invocation begins at zero, and has no idle metrics.
		out.Reset()
		m.Invoked(lambda.Invocation{Err: errors.New("not an event")})
		docs := documents(t, out.Bytes())
		if len(docs) != 1 || docs[0]["Unrouted"] != 0.0 || docs[0]["InvocationErrors"] != 1.0 || docs[0]["PartialFailures"] != 0.0 || docs[0]["ColdStarts"] != 0.0 {
			t.Errorf("second invocation: %s", out.String())
		}
	})
}

// Names from outside, such as a route's, never make a line that CloudWatch refuses.
func TestAnyName(t *testing.T) {
	var out bytes.Buffer
	dims := map[string]string{}
	for i := range 28 {
		dims[fmt.Sprintf("%s%02d", strings.Repeat("n", 248), i)] = strings.Repeat(`"\`, 512)
	}
	names := []string{"", " ", ":colon", "a\nb\"c\\d", "größe", strings.Repeat("x", 5000), strings.Repeat("ü", 600)}
	rs := matcher(names...)
	m := New(&out, Options{Namespace: strings.Repeat("N", 255), Dimensions: dims})
	h := m.Flow(rs)
	for _, r := range rs {
		for i := range 1000 {
			h.Handled(context.Background(), nil, r, flow.Done, time.Duration(i)*1234567*time.Nanosecond, nil)
		}
	}
	commits.Of(m, "\x00").Add(1, 0, 0)
	m.Invoked(lambda.Invocation{RequestID: "\x00\""})
	if docs := documents(t, out.Bytes()); len(docs) != 1+len(names)+1 {
		t.Errorf("%d lines, want %d", len(docs), 1+len(names)+1)
	}
}

func TestOptions(t *testing.T) {
	tooMany := map[string]string{}
	for i := range 29 {
		tooMany[fmt.Sprint("n", i)] = "v"
	}
	for _, tt := range []struct {
		o    Options
		want string
	}{
		{Options{Namespace: ":aws"}, `Namespace is ":aws"`},
		{Options{Namespace: "AWS/Lambda"}, `Namespace is "AWS/Lambda": CloudWatch reserves names that begin with AWS/`},
		{Options{Namespace: strings.Repeat("n", 256)}, "1 to 255 printable"},
		{Options{Dimensions: tooMany}, "are 29: want 28 at most"},
		{Options{Dimensions: map[string]string{"": "v"}}, `Dimensions: a name is ""`},
		{Options{Dimensions: map[string]string{"a": "b", "Stage": " "}}, `Dimensions["Stage"] is " "`},
		{Options{Dimensions: map[string]string{"Route": "v"}}, `"Route" is taken`},
		{Options{Dimensions: map[string]string{"Records": "v"}}, `"Records" is taken`},
		{Options{Dimensions: map[string]string{"größe": "v"}}, "ASCII"},
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, tt.want) || !strings.HasPrefix(got, "emf: Options.") {
					t.Errorf("%+v: %s, want %q", tt.o, got, tt.want)
				}
			}()
			New(io.Discard, tt.o)
		}()
	}
	var out bytes.Buffer
	New(&out, Options{Dimensions: map[string]string{}}).Invoked(lambda.Invocation{})
	if documents(t, out.Bytes()); !strings.Contains(out.String(), `"Dimensions":[[]]`) {
		t.Errorf("no dimensions: %s", out.String())
	}
}

// Every value has the same chance to be kept, and the largest is.
func TestSample(t *testing.T) {
	const values, rounds = 400, 4000
	var kept [values]int
	for round := range rounds {
		var s sample
		for i := range values {
			s.add(float64((i + round*7) % values)) // the largest comes at any time
		}
		seen := map[float64]bool{}
		for _, v := range s.values() {
			if seen[v] {
				t.Fatalf("%v is kept twice", v)
			}
			seen[v] = true
			kept[int(v)]++
		}
		if len(seen) != maxValues || !seen[values-1] {
			t.Fatalf("%d values, with the largest: %v", len(seen), seen[values-1])
		}
	}
	p := float64(maxValues-1) / float64(values-1)
	mean, deviation := rounds*p, math.Sqrt(rounds*p*(1-p))
	for v, n := range kept[:values-1] {
		if math.Abs(float64(n)-mean) > 7*deviation {
			t.Errorf("%d was kept %d times of %d, want about %.0f", v, n, rounds, mean)
		}
	}
}

// Concurrent invocations share the counts: no event is lost or counted twice.
func TestConcurrentInvocations(t *testing.T) {
	var out bytes.Buffer
	m := New(&out, Options{})
	rs := matcher("r")
	h := m.Flow(rs)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				for range 20 {
					h.Handled(context.Background(), nil, rs[0], flow.Done, time.Millisecond, nil)
				}
				m.Invoked(lambda.Invocation{Records: 20, Settled: 20})
			}
		})
	}
	all.Wait()
	done, invocations := 0.0, 0.0
	for _, d := range documents(t, out.Bytes()) {
		if v, ok := d["Done"].(float64); ok {
			done += v
		}
		if v, ok := d["Invocations"].(float64); ok {
			invocations += v
		}
	}
	if done != 8*50*20 || invocations != 8*50 {
		t.Errorf("%v records done in %v invocations", done, invocations)
	}
}

func BenchmarkHandled(b *testing.B) {
	m := New(io.Discard, Options{})
	rs := matcher("first", "second")
	h := m.Flow(rs)
	b.ReportAllocs()
	for i := range b.N {
		h.Handled(context.Background(), nil, rs[i&1], flow.Done, time.Duration(i&1023)*time.Microsecond, nil)
	}
}

// An invocation with 100 records for each of two routes, and a sink.
func BenchmarkInvoked(b *testing.B) {
	m := New(io.Discard, Options{})
	rs := matcher("first", "second")
	h, s := m.Flow(rs), commits.Of(m, "sqs")
	b.ReportAllocs()
	for range b.N {
		for i := range 200 {
			h.Handled(context.Background(), nil, rs[i&1], flow.Done, time.Duration(i)*time.Microsecond, nil)
		}
		s.Add(10, 0, time.Millisecond)
		m.Invoked(lambda.Invocation{RequestID: "c6af9ac6-7b61-11e6-9a41-93e8deadbeef", Records: 200, Settled: 200})
	}
}
