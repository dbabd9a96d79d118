// Command withstack runs a command with DynamoDB Local and ElasticMQ beside it:
//
//	withstack go test -tags integration ./...
//
// The command finds their endpoints in SLUICE_TEST_DYNAMODB and
// SLUICE_TEST_SQS, and credentials that they accept in the usual variables.
// withstack stops them when the command has ended, or on SIGINT or SIGTERM,
// which it passes on as SIGTERM, and exits with the command's code.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
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
	if len(args) == 0 {
		return 2, errors.New("usage: withstack command [argument…]")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	begin := time.Now()
	stack, err := localstack.Start(ctx, localstack.Options{Log: os.Stderr})
	if err != nil {
		return 1, err
	}
	defer stack.Stop()
	fmt.Fprintf(os.Stderr, "withstack: DynamoDB at %s, SQS at %s, after %v\n",
		stack.DynamoDB, stack.SQS, time.Since(begin).Round(100*time.Millisecond))

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
