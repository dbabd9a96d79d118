package run

import (
	"context"
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

// App is an application: a name and a function that makes its routes.
type App struct {
	// Name separates the application's state from others. Messages of the
	// program contain it (default "sluice").
	Name string
	// Tables to read if neither a flag nor the environment names any.
	Tables []string
	// Queues to consume, by name or URL, if neither a flag nor the environment
	// names any. A daemon needs a table or a queue.
	Queues []string
	// DeadLetter is where a Lambda function parks records. A daemon parks them
	// in its state file.
	DeadLetter DeadLetter
	// Routes makes the routes. Run calls it once; its error ends the program.
	// Let Setup.Check check everything that the routes need, such as a queue.
	Routes func(context.Context, Setup) (sluice.Matcher, error)
}

// DeadLetter says where and when a Lambda function parks records. Its environment
// variables override the fields.
type DeadLetter struct {
	// Queue, by name or URL (SLUICE_DEAD_LETTER_QUEUE). Without a queue, a
	// permanent failure stops its batch until the event source mapping gives
	// up.
	Queue string
	// MaxAge is the age at which a failing record is parked for its failing
	// routes (SLUICE_DEAD_LETTER_MAX_AGE, such as 15m). Default: never.
	MaxAge time.Duration
	// KeyFile contains the keys that sign letters (SLUICE_LETTER_KEY_FILE;
	// SLUICE_LETTER_KEY holds the keys themselves). Without keys letters are
	// unsigned.
	KeyFile string
}

// Setup is the environment for App.Routes.
type Setup struct {
	Lambda bool                     // the program is a Lambda function
	Tables []string                 // names of the tables that are read, even if --table has the ARN of a stream; under Lambda from SLUICE_TABLES or App.Tables
	Queues []string                 // names or URLs of the queues that are consumed; under Lambda from SLUICE_QUEUES or App.Queues
	Env    func(name string) string // of the process
	Logger *slog.Logger

	// AWS returns the configuration for a client of service ("dynamodb", "sqs",
	// …). It uses the endpoint in SLUICE_ENDPOINT_<SERVICE>, if set.
	AWS func(service string) aws.Config

	// Metrics takes what handlers, sinks and your own code count: give it to their
	// Options. A *router.Router counts by itself, also in a Matcher that has a method
	// Unwrap() sluice.Matcher. nil in a redrive, and under Lambda if SLUICE_EMF is off.
	Metrics metrics.Meter

	check func(sink string, check func(context.Context) error, routes ...string) // nil: no checks
}

// Check adds a check of a sink. check verifies that the sink is reachable and
// meets the routes' needs. sink is its name in messages. Without routes the check
// is for all routes.
//
// A daemon runs the checks of all sinks concurrently once it has its routes. If a
// sink is down, the daemon starts but is not ready. It holds the routes of that
// sink and repeats the check until it succeeds. Any other failure at the start
// ends the daemon. With --require-sinks a sink that is down ends it too.
//
// A sink is down if it does not respond in time, or responds that it fails or is
// overloaded. Check recognises errors of package net, of the AWS SDK, and errors
// with a method HTTPStatusCode() int, such as those of opensearch.
//
// Under Lambda check is not called.
func (s Setup) Check(sink string, check func(context.Context) error, routes ...string) {
	if s.check != nil {
		s.check(sink, check, routes...)
	}
}

// Main runs the application with the arguments and environment of the process, and
// exits.
func Main(a App) {
	ctx := context.Background()
	if !daemon.UnderLambda(os.Getenv) {
		ctx = OnSignals(ctx)
	}
	os.Exit(Run(ctx, a, os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}

// Run is Main without ending the process: it returns the exit code. Cancelling ctx
// acts like the first signal. The AWS SDK reads the process's environment, not
// env.
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

// AddFlags adds Run's flags to fs, for a program that prints its help or reads
// flags before it calls Run.
func AddFlags(fs *pflag.FlagSet) { new(daemon.Options).AddFlags(fs) }

// OnSignals returns a context that the first SIGTERM or SIGINT cancels. The second
// signal ends the process at once. main must call it only once.
func OnSignals(ctx context.Context) context.Context { return daemon.OnSignals(ctx) }

// Exit ends a command of your own as Run ends: it prints err, if not nil, with the
// errors of AWS in plain words, and returns the exit code, 0 or 1. name is the
// program.
func Exit(err error, name string, stderr io.Writer) int { return daemon.Exit(err, name, stderr) }
