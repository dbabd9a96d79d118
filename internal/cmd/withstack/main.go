// Command withstack runs a command with DynamoDB Local and ElasticMQ beside it:
//
//	withstack go test -tags integration ./...
//
// The command finds their endpoints in SLUICE_TEST_DYNAMODB and
// SLUICE_TEST_SQS, and credentials that they accept in the usual variables.
// withstack stops them when the command has ended, or on SIGINT or SIGTERM,
// which it passes on as SIGTERM, and exits with the command's code.
//
// Without a command it prints the variables that a program on these servers
// needs, as lines for a shell, and waits for the signal.
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
	if len(args) > 0 && strings.HasPrefix(args[0], "-") {
		return 2, errors.New("usage: withstack [command [argument…]]")
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

	if len(args) == 0 {
		fmt.Printf("# In another terminal; Ctrl-C here stops the servers.\n%s", exports(stack))
		<-ctx.Done()
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
	return fmt.Sprintf(`export AWS_REGION=us-east-1 AWS_DEFAULT_REGION=us-east-1 AWS_ACCESS_KEY_ID=local AWS_SECRET_ACCESS_KEY=local
export SLUICE_ENDPOINT_DYNAMODB=%s SLUICE_ENDPOINT_SQS=%s
`, s.DynamoDB, s.SQS)
}
