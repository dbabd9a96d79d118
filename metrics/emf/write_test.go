package emf

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/commits"
	"github.com/sluicehq/sluice/sources/lambda"
)

// writes keeps the bytes of each Write.
type writes []string

func (w *writes) Write(p []byte) (int, error) {
	*w = append(*w, string(p))
	return len(p), nil
}

// Standard output may be the same pipe as the log. A pipe writes up to 4096 bytes at
// once: another line may cut a longer line, or one in a later part of a longer write.
func TestEachLineIsOneWriteThatAPipeTakesAtOnce(t *testing.T) {
	t.Setenv("AWS_LAMBDA_FUNCTION_NAME", strings.Repeat("f", 64)) // as long as one can be
	var w writes
	m := New(&w, Options{})
	rs := matcher("calls", "idle", strings.Repeat("a long name of a route ", 10))
	h, s := m.Flow(rs), commits.Of(m, "search")
	for i := range 1000 {
		for _, r := range []int{0, 2} {
			h.Handled(context.Background(), nil, rs[r], flow.Done, 1234567*time.Microsecond+time.Duration(i)*time.Nanosecond, nil)
		}
		s.Add(10_000, 1, 1234567*time.Microsecond)
	}
	for range 2 { // what the first has written is not written again
		m.Invoked(lambda.Invocation{RequestID: "00000000-0000-4000-8000-000000000001", Records: 1000, Settled: 1000})
	}
	if len(w) != 5 {
		t.Errorf("%d writes, want one of each invocation, of the two routes, and of the sink", len(w))
	}
	for _, line := range w {
		if n := strings.Count(line, "\n"); n != 1 || !strings.HasSuffix(line, "}\n") || !strings.HasPrefix(line, `{"_aws":`) {
			t.Errorf("a write of %d lines: %.80s", n, line)
		}
		if len(line) > 4096 {
			t.Errorf("a line of %d bytes", len(line))
		}
	}
}
