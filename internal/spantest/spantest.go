// Package spantest shows what the spans of commits say, in tests.
package spantest

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/sluicehq/sluice/internal/quorum"
	"github.com/sluicehq/sluice/internal/spanattr"
)

// Spans are the spans of the commits of one handler.
type Spans struct {
	mu  sync.Mutex
	all []string
}

// Context returns the context of a traced handler.
func Context(ctx context.Context) (context.Context, *Spans) {
	m, s := &quorum.Member{Scope: &quorum.Scope{}}, &Spans{}
	m.Tracer = s
	m.Scope.Enter(1)
	return quorum.With(ctx, m), s
}

// Commit implements quorum.Tracer.
func (s *Spans) Commit(ctx context.Context, sink string, callers []context.Context) (context.Context, func([]error)) {
	var mu sync.Mutex
	said := []string{fmt.Sprintf("%s: %d", sink, len(callers))}
	set := func(name string, values ...string) {
		mu.Lock()
		defer mu.Unlock()
		said = append(said, name+"="+strings.Join(values, ","))
	}
	return spanattr.With(ctx, set), func(errs []error) {
		failed := 0
		for _, err := range errs {
			if err != nil {
				failed++
			}
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all = append(s.all, strings.Join(append(said, fmt.Sprintf("failed=%d", failed)), " "))
	}
}

// String has a line for each span that has ended.
func (s *Spans) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.all, "\n")
}
