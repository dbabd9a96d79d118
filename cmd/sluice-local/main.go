// Command sluice-local shows Sluice at work without Go and without an AWS account: it
// fetches and starts DynamoDB Local and ElasticMQ, writes an item, and shows the message
// that sluice run makes of it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/internal/buildversion"
	"github.com/sluicehq/sluice/internal/localstack"
)

func main() {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // by nohup
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // who reads no more, such as head, does not end it halfway
	err := command(os.Stdout, os.Stderr).ExecuteContext(ctx)
	interrupted := ctx.Err() != nil
	stop()
	switch {
	case interrupted:
		os.Exit(130)
	case err != nil:
		fmt.Fprintf(os.Stderr, "sluice-local: %v\n", err)
		if _, wrong := errors.AsType[*usageError](err); wrong {
			os.Exit(2)
		}
		os.Exit(1)
	}
}

// usageError is of flags and arguments.
type usageError struct{ error }

func (e *usageError) Error() string { return e.error.Error() + "\nSee sluice-local --help." }

func command(stdout, stderr io.Writer) *cobra.Command {
	var stay bool
	var cache string
	cmd := &cobra.Command{
		Use:   "sluice-local",
		Short: "Show a change of a DynamoDB table become a message, on this machine",
		Long: `Start DynamoDB Local and ElasticMQ (SQS), make a table and a queue, run "sluice run", write
an item, show its message, and end. Only your cache folder keeps something: the servers'
programs for the next time, and logs of servers that failed.

It needs Java 17 or newer, and Maven for the first time; and sluice, in the same folder or
on PATH. With SLUICE_TEST_DYNAMODB and SLUICE_TEST_SQS it uses these servers, such as those
of the Docker bundle, and needs no Java.`,
		Example: `  sluice-local
  sluice-local --stay     # then go on in another terminal`,
		Version: buildversion.Get(),
		Args: func(cmd *cobra.Command, args []string) error {
			if err := cobra.NoArgs(cmd, args); err != nil {
				return &usageError{err}
			}
			return nil
		},
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return show(cmd.Context(), stdout, stderr, cache, stay)
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	cmd.Flags().BoolVar(&stay, "stay", false, "go on until Ctrl-C, and print what another terminal needs")
	cmd.Flags().StringVar(&cache, "cache", "", "folder of the servers' programs (default: sluice/local in your cache folder)")
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	return cmd
}

// show does all, in a temporary folder.
func show(ctx context.Context, stdout, stderr io.Writer, cache string, stay bool) (err error) {
	program, err := findSluice()
	if err != nil {
		return err
	}
	stack, err := localstack.Start(ctx, localstack.Options{Dir: cache, Log: stderr})
	if err != nil {
		return err
	}
	defer func() {
		stack.Stop()
		if err == nil || ctx.Err() != nil {
			os.RemoveAll(stack.LogDir) //nolint:errcheck // later runs remove old ones
		}
	}()
	dir, err := os.MkdirTemp("", "sluice-local-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	s := &session{out: stdout, log: stderr, program: program, dir: dir, stack: stack, stay: stay}
	return s.run(ctx)
}

// findSluice returns the program sluice of this program's folder, or else of PATH.
func findSluice() (string, error) {
	name := "sluice"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	if beside, err := exec.LookPath(filepath.Join(filepath.Dir(self), name)); err == nil { // no folder of this name
		return beside, nil
	}
	path, err := exec.LookPath(name)
	if errors.Is(err, exec.ErrNotFound) {
		return "", fmt.Errorf("%s is not in %s, and not on PATH: unpack it from the same archive, or go install github.com/sluicehq/sluice/cmd/sluice@latest", name, filepath.Dir(self))
	}
	return path, err
}
