package run

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/spf13/pflag"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/daemon"
	"github.com/sluicehq/sluice/metrics"
)

// App is an application: its name, and how its routes are made.
type App struct {
	// Name separates the application's state from that of others, and is the
	// program's name in its messages (default "sluice").
	Name string
	// Tables are read when neither flag nor environment names any.
	Tables []string
	// Queues, names or URLs, are consumed when neither names any. A daemon needs
	// a table or a queue.
	Queues []string
	// DeadLetter says where a Lambda function parks what fails for good. A daemon
	// parks in its state file.
	DeadLetter DeadLetter
	// Routes makes the routes. It is called once; its error ends the program.
	// What the routes need, such as a queue, it has checked by Setup.Check.
	Routes func(context.Context, Setup) (sluice.Matcher, error)
}

// DeadLetter says where a Lambda function parks records, and when. The function's
// environment goes before each field.
type DeadLetter struct {
	// Queue, by name or URL (SLUICE_DEAD_LETTER_QUEUE). Without one, a record that
	// fails for good stops its batch, until the mapping gives it up.
	Queue string
	// MaxAge of a record that keeps failing, before it is parked for its routes that
	// fail (SLUICE_DEAD_LETTER_MAX_AGE, such as 15m). Default: never.
	MaxAge time.Duration
	// KeyFile has the keys that sign the letters (SLUICE_LETTER_KEY_FILE; SLUICE_LETTER_KEY
	// holds the keys themselves). Without one they are not signed.
	KeyFile string
}

// Setup is what Routes may build on.
type Setup struct {
	Lambda bool                     // the program is a Lambda function
	Tables []string                 // names of the tables that are read, also where --table gives the ARN of a stream; under Lambda those of SLUICE_TABLES or App.Tables
	Queues []string                 // names or URLs of the queues that are consumed; under Lambda those of SLUICE_QUEUES or App.Queues
	Env    func(name string) string // of the process
	Logger *slog.Logger

	// AWS returns the configuration for a service's client ("dynamodb", "sqs",
	// …), with the endpoint of SLUICE_ENDPOINT_<SERVICE> if that is set.
	AWS func(service string) aws.Config

	// Metrics takes what handlers, sinks and your own code count: give it to their
	// Options. A *router.Router counts by itself, also in a Matcher that has a method
	// Unwrap() sluice.Matcher. nil in a redrive, and under Lambda if SLUICE_EMF is off.
	Metrics metrics.Meter

	check func(sink string, check func(context.Context) error, routes ...string) // nil: none are made
}

// Check adds a check of a sink: check asks whether it is there and is what the
// routes need, and sink is its name for people. Without routes it is for all.
//
// A daemon makes the checks of all sinks side by side once it has its routes. A
// sink that is down does not stop the start: the daemon is not ready, its routes
// for that sink are held, and the check is made again until it succeeds. Anything
// else that a check fails for at the start ends the daemon, and with
// --require-sinks so does a sink that is down.
//
// A sink is down when nobody answers in time, or it answers that it fails or is
// overloaded: errors of package net and of the AWS SDK are known, and those with a method
// HTTPStatusCode() int, as opensearch has them.
//
// Under Lambda check is not called.
func (s Setup) Check(sink string, check func(context.Context) error, routes ...string) {
	if s.check != nil {
		s.check(sink, check, routes...)
	}
}

// Main runs the application with the process's arguments and environment, and
// ends the process.
func Main(a App) {
	ctx := context.Background()
	if !daemon.UnderLambda(os.Getenv) {
		ctx = OnSignals(ctx)
	}
	os.Exit(Run(ctx, a, os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}

// Run is Main without the process: it returns the exit code. Cancelling ctx is
// the first signal. The AWS SDK reads the environment of the process itself,
// not env.
func Run(ctx context.Context, a App, args []string, env func(string) string, stdout, stderr io.Writer) (exit int) {
	program := daemon.App{Name: a.Name, Tables: a.Tables, Queues: a.Queues, DeadLetter: daemon.DeadLetter(a.DeadLetter)}
	if a.Routes != nil {
		program.Routes = func(ctx context.Context, s daemon.Setup) (sluice.Matcher, error) { return a.Routes(ctx, setupOf(s)) }
	}
	return daemon.Main(ctx, program, args, env, stdout, stderr)
}

func setupOf(s daemon.Setup) Setup {
	return Setup{
		Lambda: s.Lambda, Tables: s.Tables, Queues: s.Queues, Env: s.Env, Logger: s.Logger, AWS: s.AWS,
		Metrics: s.Metrics, check: s.Check,
	}
}

// AddFlags adds the flags that Run takes to fs, for a program that shows its help or
// looks at flags before it calls Run.
func AddFlags(fs *pflag.FlagSet) { new(daemon.Options).AddFlags(fs) }

// OnSignals returns a context that the first SIGTERM or SIGINT cancels; the
// second one ends the process at once. It is called once, by main.
func OnSignals(ctx context.Context) context.Context { return daemon.OnSignals(ctx) }

// UsageError is a mistake in flags or environment.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }
func (e *UsageError) Unwrap() error { return e.Err }

// Exit prints err, if there is one, and returns the exit code that goes with it. name
// is the program's, and command the words behind it that name its subcommand.
func Exit(err error, name string, stderr io.Writer, command ...string) int {
	if usage := (*UsageError)(nil); errors.As(err, &usage) {
		err = &daemon.UsageError{Err: err}
	}
	return daemon.Exit(err, name, stderr, command...)
}
