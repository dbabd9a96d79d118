// Command sluice reacts to changes in DynamoDB tables, as a YAML file says.
//
//	sluice init --table searches --queue calls
//	sluice validate
//	sluice run
//
// docs/cli.md lists its commands. The same file as a Lambda function is
// cmd/sluice-lambda's.
package main

// The reference, docs/cli.md, is made of the commands' own help.
//go:generate go test -count=1 -run ^TestReference . -update

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sluicehq/sluice/internal/daemon"
)

func main() {
	stdout, stderr, end := onScreen(os.Stdout, os.Stderr)
	c := &cli{lookup: os.LookupEnv, stdin: os.Stdin, stdout: stdout, stderr: stderr, browse: browse}
	exit := c.execute(daemon.OnSignals(context.Background()), os.Args[1:])
	end()
	os.Exit(exit)
}

// Exit codes that daemon.Exit does not know.
const (
	exitFailed = 1 // as daemon.Exit has it
	exitFound  = 3 // the command completed and found something
)

// findings is an error that ends the process with exitFound.
type findings struct{ what string }

func (f *findings) Error() string { return f.what }

// errMistakes ends the process with exitFailed; the mistakes were printed.
var errMistakes = errors.New("mistakes were found")

func (c *cli) execute(ctx context.Context, args []string) int {
	root := c.root()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	err = stopped(ctx, err, "its end") // of commands that say no more
	err = cmp.Or(err, c.unknown)
	if errors.Is(err, errMistakes) {
		return exitFailed
	}
	if err != nil {
		err = plainError{err}
	}
	exit := daemon.Exit(err, "sluice", c.stderr, strings.Fields(cmd.CommandPath())[1:]...)
	if errors.As(err, new(*findings)) {
		return exitFound
	}
	return exit
}

// root is the tree of commands, in the order in which one comes to need them.
func (c *cli) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "sluice",
		Short: "React to changes in DynamoDB tables",
		Long: `React to changes in DynamoDB tables. A YAML file names the tables, and the routes
that handle their changes.

The file is --config, else $SLUICE_CONFIG, else sluice.yaml. A flag wins over its
environment variable, and that over the file.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 done, and something was found.`,
		Example: `  sluice init --table orders --queue jobs
  sluice validate
  sluice tail orders
  sluice run`,
		SilenceErrors: true, // printed once, by daemon.Exit
		SilenceUsage:  true,
		Version:       version(),
	}
	root.SetFlagErrorFunc(knownFlag)
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		// --help ends a command before Args is asked.
		if cmd.HasSubCommands() && cmd.Args != nil {
			c.unknown = cmd.Args(cmd, cmd.Flags().Args())
		}
		if c.unknown == nil {
			help(cmd, args)
		}
	})
	cobra.EnableCommandSorting = false
	commandGroup(root,
		initCommand(c),
		validateCommand(c),
		explainCommand(c),
		tailCommand(c),
		runCommand(c),
		statusCommand(c),
		healthCommand(c),
		topCommand(c),
		openCommand(c),
		reloadCommand(c),
		gapsCommand(c),
		backfillCommand(c),
		auditCommand(c),
		reindexCommand(c),
		cascadeCommand(c),
		recountCommand(c),
		dlqCommand(c),
		parkCommand(c),
		routeCommand(c),
		adoptCommand(c),
		sweepCommand(c),
		stateCommand(c),
		replayCommand(c),
		lambdaCommand(c),
		versionCommand(c),
	)
	refuseArguments(root)
	c.addAccount(root.Commands())
	root.PersistentFlags().StringVarP(&c.file, "config", "c", "", "configuration `file` ($SLUICE_CONFIG; default sluice.yaml)")
	_ = root.MarkPersistentFlagFilename("config", "yaml", "yml")
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	root.SetOut(c.stdout)
	root.SetErr(c.stderr)
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "completion": // else an unknown shell prints help and exits with 0
			commandGroup(cmd).Long = completionHelp
			ownCompletion(cmd)
		case "help": // else a command that there is not has that of sluice, and 0
			cmd.Args = func(_ *cobra.Command, args []string) error {
				found, rest, err := root.Find(args)
				if err != nil {
					return &daemon.UsageError{Err: err}
				}
				return knownCommand(found, rest)
			}
			cmd.Example = "  sluice help run\n  sluice help state reset"
		}
	}
	c.completeRest(root)
	return root
}

// knownCommand is what cobra does by itself, with an error that counts as wrong
// usage.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = 2
	if s := cmd.SuggestionsFor(args[0]); len(s) > 0 {
		return usage("unknown command %q: did you mean %s?", args[0], strings.Join(s, " or "))
	}
	return usage("unknown command %q: %s --help lists them", args[0], cmd.CommandPath())
}

// knownFlag suggests the closest match for an unknown flag.
func knownFlag(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) && len(unknown.GetSpecifiedName()) > 1 {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if near := nearest(unknown.GetSpecifiedName(), names); near != "" {
			err = fmt.Errorf("%w: did you mean --%s?", err, near)
		}
	}
	return &daemon.UsageError{Err: err}
}

// commandGroup makes cmd a command that only has others.
func commandGroup(cmd *cobra.Command, subs ...*cobra.Command) *cobra.Command {
	cmd.Args = knownCommand
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(subs...)
	return cmd
}

// refuseArguments has each command without a rule of its own refuse arguments.
func refuseArguments(cmd *cobra.Command) {
	if cmd.Args == nil && cmd.ValidArgsFunction == nil {
		cmd.Args = noArguments
	}
	for _, sub := range cmd.Commands() {
		refuseArguments(sub)
	}
}

// noArguments is cobra.NoArgs with an error that counts as wrong usage.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		hint := ""
		if cmd.Flags().Lookup("config") != nil && strings.HasSuffix(args[0], "ml") {
			hint = "; --config names the file"
		}
		return usage("unexpected argument %q: %s takes flags only%s", args[0], cmd.CommandPath(), hint)
	}
	return nil
}

// oneArgument refuses more arguments than one: several says what they are. values
// completes it; nil: by the names of files.
func oneArgument(cmd *cobra.Command, several string, values func() []string) {
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) > 1 {
			return usage(several, len(args))
		}
		return nil
	}
	cmd.ValidArgsFunction = firstArgument(values)
}

// firstArgument completes the first argument; values nil: by the names of files.
func firstArgument(values func() []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		switch {
		case len(args) > 0:
			return nil, cobra.ShellCompDirectiveNoFileComp
		case values == nil:
			return nil, cobra.ShellCompDirectiveDefault
		}
		return values(), cobra.ShellCompDirectiveNoFileComp
	}
}

// exactlyOne refuses all but one argument; want says which.
func exactlyOne(want string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usage("%s takes %s", cmd.CommandPath(), want)
		}
		return nil
	}
}

// usage is a mistake of who typed the command.
func usage(format string, args ...any) error {
	return &daemon.UsageError{Err: fmt.Errorf(format, args...)}
}
