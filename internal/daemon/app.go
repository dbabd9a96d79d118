package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/spf13/pflag"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/accounts"
	"github.com/sluicehq/sluice/internal/page"
	"github.com/sluicehq/sluice/metrics"
	"github.com/sluicehq/sluice/router"
)

// App is a run.App; package run documents the fields.
type App struct {
	Name           string
	Tables, Queues []string
	DeadLetter     DeadLetter
	Routes         func(context.Context, Setup) (sluice.Matcher, error)

	Reloading *Reloading // nil: the routes are code, and cannot change while it runs
}

// Reloading says how the App is made again of files that have changed.
type Reloading struct {
	Watch  bool                   // look for changes
	Loaded string                 // Digest, before the App was made
	Digest func() (string, error) // identifies the content of the files
	// Load reads the files, checks all of them, and asks services as sluice validate
	// --connect does.
	Load func(context.Context) (App, Options, func(env string) string, error)
}

// DeadLetter is a run.DeadLetter.
type DeadLetter struct {
	Queue   string
	MaxAge  time.Duration
	KeyFile string
}

// Setup is a run.Setup.
type Setup struct {
	Lambda         bool
	Tables, Queues []string
	Env            func(name string) string
	Logger         *slog.Logger
	AWS            func(service string) aws.Config
	Metrics        metrics.Meter

	Accounts *accounts.Accounts // of sinks in a file; not in a run.Setup

	background *[]func(context.Context) // nil: is not run
	cascades   *cascades                // nil: are not shown

	unrouted *unrouted // may be nil
	checks   *checks   // nil: no checks
}

// Cascade has the page show a cascade, until it is over.
func (s Setup) Cascade(now page.Cascade, over bool) {
	if s.cascades != nil {
		s.cascades.set(now, over)
	}
}

// Background adds work that goes on while the routes run.
func (s Setup) Background(work func(context.Context)) {
	if s.background != nil {
		*s.background = append(*s.background, work)
	}
}

// routes makes the routes.
func (a App) routes(ctx context.Context, s Setup) (sluice.Matcher, error) {
	if a.Routes == nil {
		return nil, errors.New("App.Routes is nil: it makes the routes")
	}
	m, err := a.Routes(ctx, s)
	if err != nil {
		return nil, err
	}
	if m == nil || len(m.Routes()) == 0 {
		return nil, errors.New("there is no route: nothing would be handled")
	}
	s.observe(m)
	return m, nil
}

// observe has a router count and tell, also one in another Matcher that has a method
// Unwrap.
func (s Setup) observe(m sluice.Matcher) {
	for m != nil {
		if r, ok := m.(*router.Router); ok {
			if s.unrouted != nil {
				r.OnUnrouted(s.unrouted.saw)
			}
			if s.Metrics != nil {
				r.Count(s.Metrics)
			}
			return
		}
		outer, ok := m.(interface{ Unwrap() sluice.Matcher })
		if !ok {
			return
		}
		m = outer.Unwrap()
	}
}

func (a App) withDefaults() App {
	a.Name = cmp.Or(a.Name, "sluice")
	return a
}

// Help says what the flags of a daemon alone do not.
const Help = `The state file holds positions and dead letters. A stream that was never read needs
--start; a queue does not. --backfill reads the tables once; the flag may stay.

At the first signal the daemon handles the records that it has, stores the positions
and exits with 0 within the grace period. A second signal ends it at once. It
exits with 1 when it cannot start, and with 2 when a flag is wrong.

SLUICE_ENDPOINT_SQS is the URL of SQS, in place of the Region's.`

// Exit codes.
const (
	exitOK = iota
	exitFailed
	exitUsage
)

// Main is the program of run.Run.
func Main(ctx context.Context, a App, args []string, env func(string) string, stdout, stderr io.Writer) (exit int) {
	a = a.withDefaults()
	if UnderLambda(env) {
		err := runLambda(ctx, a, env, stdout, stderr) // returns only a failure
		fmt.Fprintf(stderr, "%s: %v\n", a.Name, err)
		return exitFailed
	}
	if len(args) > 0 && args[0] == "dlq" {
		return Exit(a.redrive(ctx, args[1:], env, stdout, stderr), a.Name, stderr, "dlq", "redrive")
	}
	var o Options
	fs := pflag.NewFlagSet(a.Name, pflag.ContinueOnError)
	fs.SetOutput(io.Discard) // its errors are printed once, below
	o.AddFlags(fs)
	err := fs.Parse(args)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		fmt.Fprintf(stdout, "%s reads the streams of DynamoDB tables and handles their changes, and the\nmessages of SQS queues, until SIGTERM or SIGINT.\n\n%s\n\nUsage:\n  %s [flags]\n  %[3]s dlq redrive --help    run dead letters of its Lambda function again\n\nFlags:\n%[4]s", a.Name, Help, a.Name, fs.FlagUsages())
		return exitOK
	case err != nil:
		err = &UsageError{err}
	case fs.NArg() > 0:
		err = &UsageError{fmt.Errorf("unexpected argument %q: tables are named by --table, queues by --queue", fs.Arg(0))}
	default:
		err = o.FromEnv(fs, env)
	}
	if err == nil {
		err = Run(ctx, a, o, env, stderr)
	}
	return Exit(err, a.Name, stderr)
}

// UsageError is a mistake in flags or environment.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }
func (e *UsageError) Unwrap() error { return e.Err }

// Exit prints err, if there is one, and returns the exit code that goes with it. name
// is the program's, and command the words behind it that name its subcommand.
func Exit(err error, name string, stderr io.Writer, command ...string) int {
	if err == nil {
		return exitOK
	}
	fmt.Fprintf(stderr, "%s: %v\n", name, explained(err))
	if usage := (*UsageError)(nil); errors.As(err, &usage) {
		fmt.Fprintf(stderr, "%s: run %q\n", name, strings.Join(append(append([]string{name}, command...), "--help"), " "))
		return exitUsage
	}
	return exitFailed
}
