package localstack

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
)

// Build builds a program of this repository at a path, from flags of go run and a
// package. Go keeps what it links for go run, but not what it links for go build: all
// that run one program link it once.
func Build(ctx context.Context, path string, args ...string) error {
	args = slices.Concat([]string{"run", "-exec", "cp"}, args, []string{path})
	if out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput(); err != nil { //nolint:gosec // of the caller
		return fmt.Errorf("go %q: %w\n%s", args, err, out)
	}
	return nil
}
