package emf

import (
	"bytes"
	"math"
	"testing"

	"github.com/sluicehq/sluice/metrics"
	"github.com/sluicehq/sluice/sources/lambda"
)

func TestNamesOfDeclaredMetrics(t *testing.T) {
	for name, ok := range map[string]bool{"OrdersTold": true, "Orders told": true, "größe": false, ":orders": false, "a\nb": false} {
		for _, m := range []*metrics.Metric{{CloudWatch: name}, {CloudWatch: "Orders", Dimension: name}} {
			if err := validNames([]*metrics.Metric{m}); (err == nil) != ok {
				t.Errorf("%q, %q: %v", m.CloudWatch, m.Dimension, err)
			}
		}
	}
	if err := validNames(metrics.All()); err != nil {
		t.Error(err)
	}
}

// A value that JSON does not have would spoil the line of the others.
func TestValuesThatAreNoNumbers(t *testing.T) {
	var out bytes.Buffer
	m := New(&out, Options{Dimensions: map[string]string{}})
	took, lost := declaredAs("CommitDuration").Of(m), declaredAs("ProjectionLost").Of(m)
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 2} {
		took.Add(v, "sqs")
		lost.Add(v, "orders", "not_raised")
	}
	m.Invoked(lambda.Invocation{})
	docs := documents(t, out.Bytes())
	if len(docs) != 3 || docs[2]["ProjectionLost"] != 2.0 && docs[1]["ProjectionLost"] != 2.0 {
		t.Errorf("%v", docs)
	}
}
