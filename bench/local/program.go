package local

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
)

// Main runs a command that measures, after it has read the flags. A signal ends it in
// order.
func Main(name string, run func(context.Context) error) {
	log.SetFlags(0)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		log.Fatal(name, ": ", err)
	}
}

// Part measures some of a command's figures.
type Part struct {
	Name    string
	Measure func(context.Context) error
	Alone   bool // it needs no server
}

// Only returns the part of that name, or all parts if the name is "".
func Only(name string, parts []Part) ([]Part, error) {
	if name == "" {
		return parts, nil
	}
	var names []string
	for _, p := range parts {
		if p.Name == name {
			return []Part{p}, nil
		}
		names = append(names, p.Name)
	}
	return nil, fmt.Errorf("-only is %q: want one of %s", name, strings.Join(names, ", "))
}

// Build builds a program of this module into path, for release.
func Build(ctx context.Context, path, pkg string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-tags=lambda.norpc", "-ldflags=-s -w", "-o", path, "github.com/sluicehq/sluice/"+pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", pkg, err, out)
	}
	return nil
}
