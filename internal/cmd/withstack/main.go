// Command withstack runs a command with DynamoDB Local and ElasticMQ beside it,
// and with --opensearch also OpenSearch 2 and, where there is a Java 21, 3:
//
//	withstack --opensearch go test -tags integration ./...
//
// The command finds their endpoints in SLUICE_TEST_DYNAMODB, SLUICE_TEST_SQS,
// SLUICE_TEST_OPENSEARCH and SLUICE_TEST_OPENSEARCH3, which are empty for
// servers that were not started, and credentials that they accept in the usual
// variables. withstack stops them when the command has ended, or on SIGINT or
// SIGTERM, which it passes on as SIGTERM, and exits with the command's code.
//
// Without a command it starts all of them, prints the variables that a program
// on these servers needs, as lines for a shell, and waits for the signal. A
// server that ends by itself ends the others; withstack says which, and exits
// with 1.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/sluicehq/sluice/internal/localstack"
)

func main() {
	code, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "withstack:", err)
	}
	os.Exit(code)
}

// run returns the code to exit with, and an error when it was not the
// command's own end.
func run(args []string) (int, error) {
	search := len(args) == 0
	if len(args) > 0 && args[0] == "--opensearch" {
		search, args = true, args[1:]
	}
	if len(args) > 0 && strings.HasPrefix(args[0], "-") {
		return 2, errors.New("usage: withstack [--opensearch] [command [argument…]]")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	begin := time.Now()
	stack, err := localstack.Start(ctx, localstack.Options{Log: os.Stderr, OpenSearch: search, OpenSearch3: search})
	if err != nil {
		return 1, err
	}
	defer stack.Stop()
	fmt.Fprintf(os.Stderr, "withstack: DynamoDB at %s, SQS at %s", stack.DynamoDB, stack.SQS)
	if stack.OpenSearch != "" {
		fmt.Fprintf(os.Stderr, ", OpenSearch 2 at %s", stack.OpenSearch)
	}
	if stack.OpenSearch3 != "" {
		fmt.Fprintf(os.Stderr, ", OpenSearch 3 at %s", stack.OpenSearch3)
	}
	fmt.Fprintf(os.Stderr, ", after %v\n", time.Since(begin).Round(100*time.Millisecond))

	if len(args) == 0 {
		fmt.Printf("# In another terminal; Ctrl-C here stops the servers.\n%s", exports(stack))
		if err := stack.Watch(ctx); err != nil {
			return 1, err
		}
		return 0, nil
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), stack.Environ()...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return 130, fmt.Errorf("interrupted: %w", err)
	case errors.As(err, &exit) && exit.ExitCode() >= 0:
		return exit.ExitCode(), nil
	case err != nil:
		return 1, err
	}
	return 0, nil
}

// exports sets what Sluice's programs and the AWS CLI need; version 1 of it does
// not know AWS_REGION.
func exports(s *localstack.Stack) string {
	var out strings.Builder
	out.WriteString("export AWS_REGION=us-east-1 AWS_DEFAULT_REGION=us-east-1 AWS_ACCESS_KEY_ID=local AWS_SECRET_ACCESS_KEY=local\n")
	fmt.Fprintf(&out, "export SLUICE_ENDPOINT_DYNAMODB=%s SLUICE_ENDPOINT_SQS=%s\n", s.DynamoDB, s.SQS)
	if s.OpenSearch != "" {
		fmt.Fprintf(&out, "export SLUICE_ENDPOINT_OPENSEARCH=%s SLUICE_OPENSEARCH=%[1]s\n", s.OpenSearch)
	}
	if s.OpenSearch3 != "" {
		fmt.Fprintf(&out, "export SLUICE_ENDPOINT_OPENSEARCH3=%s\n", s.OpenSearch3)
	}
	return out.String()
}
