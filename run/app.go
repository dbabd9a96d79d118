package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/spf13/pflag"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/batch"
	"github.com/sluicehq/sluice/handlers/cascade"
	"github.com/sluicehq/sluice/handlers/escalation"
	"github.com/sluicehq/sluice/handlers/projection"
	"github.com/sluicehq/sluice/handlers/rollup"
	"github.com/sluicehq/sluice/metrics/prom"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/sinks/opensearch"
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

	// Hooks that an application gives to its router, handlers and sinks, so that
	// metrics tell of them. Under Lambda there are
	// BatchHooks, Escalation, and of Projection the hook Lost, unless SLUICE_EMF is off.
	RouterHooks router.Hooks                      // for router.Observe
	BatchHooks  func(sink string) batch.Hooks     // for the Options of a sink; never nil
	Consumed    func(table string, units float64) // for the hook of that name of sinks/dynamodb
	Documents   opensearch.Hooks                  // for a cluster; its Committed is one of BatchHooks
	Projection  projection.Hooks
	Cascade     cascade.Hooks
	Escalation  func(kind string) escalation.Hooks // may be nil
	Rollup      rollup.Hooks

	checks *checks // nil: none are made
}

// observed adds the hooks of the daemon's metrics.
func (s Setup) observed(m *prom.Metrics) Setup {
	d := m.Documents()
	s.RouterHooks = (&unrouted{logger: s.Logger, next: m.Router()}).hooks()
	s.BatchHooks, s.Consumed = m.Batch, m.Consumed
	s.Documents = opensearch.Hooks{Conflict: d.Conflict, Superseded: d.Superseded, Retried: d.Retried, Rejected: d.Rejected,
		Requested: func(r opensearch.Request) { d.Requested(r.Bytes, r.Took, r.Err) }}
	s.Projection, s.Cascade, s.Rollup, s.Escalation = m.Projection(), m.Cascade(), m.Rollup(), m.Escalation
	return s
}

// routes makes the routes.
func (a App) routes(ctx context.Context, s Setup) (sluice.Matcher, error) {
	if a.Routes == nil {
		return nil, errors.New("App.Routes is nil: it makes the routes")
	}
	m, err := a.Routes(ctx, s)
	switch {
	case err != nil:
		return nil, err
	case m == nil || len(m.Routes()) == 0:
		return nil, errors.New("there is no route: nothing would be handled")
	}
	return m, nil
}

func (a App) withDefaults() App {
	if a.Name == "" {
		a.Name = "sluice"
	}
	return a
}

// Main runs the application with the process's arguments and environment, and
// ends the process.
func Main(a App) {
	ctx := context.Background()
	if !underLambda(os.Getenv) {
		ctx = OnSignals(ctx)
	}
	os.Exit(Run(ctx, a, os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}

// Help says what the flags of a daemon alone do not.
const Help = `The state file holds positions and dead letters. A stream that was never read needs
--start. --backfill reads the tables once; you can leave the flag set.

At the first signal the daemon stops reading, handles the records that it has, stores
positions and exits with 0 within the grace period. A second signal ends it at once.
It exits with 1 when it cannot start.

AWS credentials and Region come from the usual places. SLUICE_ENDPOINT_SQS is the URL
of SQS, in place of the Region's.`

// Exit codes.
const (
	exitOK = iota
	exitFailed
	exitUsage
)

// Run is Main without the process: it returns the exit code. Cancelling ctx is
// the first signal. The AWS SDK reads the environment of the process itself,
// not env.
func Run(ctx context.Context, a App, args []string, env func(string) string, stdout, stderr io.Writer) (exit int) {
	a = a.withDefaults()
	if underLambda(env) {
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
		err = Daemon(ctx, a, o, env, stderr)
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
