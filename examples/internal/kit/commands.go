package kit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/sluicehq/sluice/run"
)

// Call is a command in use.
type Call struct {
	Command
	Args []string // behind the command's name
	Env  func(string) string
	In   io.Reader
	Out  io.Writer
}

// Command is what a program does besides running.
type Command struct {
	Usage, Does string
	Example     string // arguments included
	NoArguments string // set if it takes none: what else says what it works on
	Run         func(ctx context.Context, c Call) error
}

// Program is the command line of an example.
type Program struct {
	Name       string
	Commands   map[string]Command
	Head, Tail string // of the help, before and behind the commands
	OwnHelp    bool   // each command has flags, and answers --help itself
}

// Help lists the commands. The flags of a daemon follow it.
func (p Program) Help() string {
	var b strings.Builder
	b.WriteString(p.Head + "\n")
	for _, name := range slices.Sorted(maps.Keys(p.Commands)) {
		fmt.Fprintf(&b, "  %s\n      %s\n", p.Commands[name].Usage, p.Commands[name].Does)
	}
	return b.String() + "\n" + p.Tail
}

// Execute runs a command, or prints how it is used.
func (p Program) Execute(ctx context.Context, name string, c Call) error {
	var ok bool
	if c.Command, ok = p.Commands[name]; !ok {
		return Usage("unknown command %q; commands are %s. Without one, flags alone run the daemon", name, strings.Join(slices.Sorted(maps.Keys(p.Commands)), ", "))
	}
	if !p.OwnHelp && (slices.Contains(c.Args, "--help") || slices.Contains(c.Args, "-h")) {
		_, err := fmt.Fprintf(c.Out, "%s %s: %s\n\nExample:\n  %[1]s %[4]s\n", p.Name, c.Usage, c.Does, c.Example)
		return err
	}
	if c.NoArguments != "" && len(c.Args) > 0 {
		return Usage("%s takes no arguments; %s", name, c.NoArguments)
	}
	return c.Run(ctx, c)
}

// Main runs the command that the arguments of the process name, and without one the
// application.
func (p Program) Main(a run.App) {
	command := func(name string, args ...string) {
		c := Call{Args: args, Env: os.Getenv, In: os.Stdin, Out: os.Stdout}
		os.Exit(Exit(p.Execute(run.OnSignals(context.Background()), name, c), a.Name, os.Stderr))
	}
	if len(os.Args) > 1 {
		switch name := os.Args[1]; {
		case name == "help" && len(os.Args) == 3: // help COMMAND
			command(os.Args[2], "--help")
		case name == "help" || name == "--help" || name == "-h":
			fmt.Println(p.Help())
			os.Args[1] = "--help" // the flags follow
		case !strings.HasPrefix(name, "-"):
			command(name, os.Args[2:]...)
		}
	}
	run.Main(a)
}

// Replicas reads how many copies of an index there are besides the first.
func Replicas(env func(string) string, variable string, otherwise int) (int, error) {
	text := env(variable)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, Usage("%s=%q: want how many copies of an index there are besides the first, such as 1", variable, text)
	}
	return n, nil
}

// UsageError is a mistake in how a command is used.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }
func (e *UsageError) Unwrap() error { return e.Err }

// Usage returns a UsageError.
func Usage(format string, args ...any) error {
	return &UsageError{Err: fmt.Errorf(format, args...)}
}

// Exit prints err, if there is one, and returns the exit code that goes with it. A
// mistake in the usage exits with 2, and names the help of the command.
func Exit(err error, name string, stderr io.Writer, command ...string) int {
	exit := run.Exit(err, name, stderr)
	if usage := (*UsageError)(nil); errors.As(err, &usage) {
		fmt.Fprintf(stderr, "%s: run %q\n", name, strings.Join(append(append([]string{name}, command...), "--help"), " "))
		return 2
	}
	return exit
}
