package boltstate

import (
	"context"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/state"
)

var stream = state.Stream{Application: "app", ARN: "arn:aws:dynamodb:us-east-1:1:table/t/stream/1"}

// position is that of the nth record.
func position(n int) state.Position {
	return state.Position{Sequence: string(recordtest.Sequence(n))}
}

func ctx() context.Context { return context.Background() }

func open(t *testing.T, path string) *Store {
	t.Helper()
	s, err := Open(path, Options{})
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	return s
}

func mustClose(t *testing.T, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
}

// wantAll checks that the error's text holds every one of parts.
func wantAll(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one with %q", parts)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not say %q", err, part)
		}
	}
}
