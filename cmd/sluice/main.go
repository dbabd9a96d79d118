// Command sluice reacts to changes in DynamoDB tables.
//
//	sluice run --table manhunt --start LATEST
//
// Its routes are those of the manhunt example; sluice help run lists flags and
// environment variables. sluice backfill writes a table into an index. The same routes as a Lambda function are
// cmd/sluice-lambda.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/run"
)

func main() {
	os.Exit(execute(run.OnSignals(context.Background()), os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}

func execute(ctx context.Context, args []string, env func(string) string, stdout, stderr io.Writer) (exit int) {
	root := &cobra.Command{
		Use:           "sluice",
		Short:         "React to changes in DynamoDB tables",
		SilenceErrors: true, // printed once, by run.Exit
		SilenceUsage:  true,
		Version:       version(),
		Args:          knownCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &run.UsageError{Err: err} })
	root.AddCommand(runCommand(env, stderr), backfillCommand(env, stdout, stderr), auditCommand(env, stdout), reindexCommand(env, stdout, stderr), versionCommand())
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	exit = run.Exit(err, "sluice", stderr)
	if errors.Is(err, errDrift) {
		return exitDrift
	}
	return exit
}

// knownCommand is what cobra does by itself, with an error that counts as wrong
// usage.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := fmt.Errorf("unknown command %q", args[0])
	cmd.SuggestionsMinimumDistance = 2
	if s := cmd.SuggestionsFor(args[0]); len(s) > 0 {
		err = fmt.Errorf("%w: did you mean %s?", err, strings.Join(s, " or "))
	}
	return &run.UsageError{Err: err}
}

// noArguments is cobra.NoArgs with an error that counts as wrong usage.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return &run.UsageError{Err: fmt.Errorf("unexpected argument %q: %s takes flags only", args[0], cmd.CommandPath())}
	}
	return nil
}
