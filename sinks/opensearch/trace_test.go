package opensearch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/internal/quorum"
)

// spans is a Tracer.
type spans struct {
	mu    sync.Mutex
	lines []string
}

func (s *spans) Commit(ctx context.Context, sink string, callers []context.Context) (context.Context, func([]error)) {
	return ctx, func(errs []error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		text := ""
		if err := errors.Join(errs...); err != nil {
			text = err.Error()
		}
		s.lines = append(s.lines, fmt.Sprint(sink, " ", len(callers), ": ", text))
	}
}

// A commit's span has the writes that joined it, and the refusals that a later commit
// repairs.
func TestSpans(t *testing.T) {
	c := &cluster{item: func(n int, w string) *verdict {
		if n == 0 && strings.Contains(w, "+2") {
			return &verdict{status: 429, typ: "rejected_execution_exception", reason: "full"}
		}
		return nil
	}}
	var s spans
	m := &quorum.Member{Scope: &quorum.Scope{}, Tracer: &s}
	m.Scope.Enter(1)
	ctx := quorum.With(t.Context(), m)
	if errs := c.sink(t, Options{Linger: -1}).WriteAll(ctx, []document.Op{put("i", "1", "{}"), put("i", "1", "{}"), put("i", "2", "{}")}); errs != nil {
		t.Fatal(errs)
	}
	if len(s.lines) != 2 || !strings.HasPrefix(s.lines[0], "opensearch 3: ") || !strings.Contains(s.lines[0], "429") || strings.Contains(s.lines[0], "\n") || s.lines[1] != "opensearch 1: " {
		t.Errorf("spans %q", s.lines)
	}
}
