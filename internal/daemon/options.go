package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/access"
	"github.com/sluicehq/sluice/internal/accounts"
	"github.com/sluicehq/sluice/internal/awsclient"
	"github.com/sluicehq/sluice/internal/statestore"
	"github.com/sluicehq/sluice/sources/poller"
)

// Options are what flags and environment say about a daemon. The zero value is
// not ready to use: AddFlags sets the defaults.
type Options struct {
	Application string        // --application, SLUICE_APPLICATION; default the App's name
	Tables      []string      // --table, SLUICE_TABLES; names, or ARNs of streams
	Queues      []string      // --queue, SLUICE_QUEUES; names or URLs
	Start       string        // --start, SLUICE_START; TRIM_HORIZON or LATEST
	Backfill    bool          // --backfill, SLUICE_BACKFILL
	State       string        // --state, SLUICE_STATE; path of the state file, or dynamodb:TABLE
	Listen      string        // --listen, SLUICE_LISTEN; host:port, or "off"
	DeadLetter  string        // --dead-letter, SLUICE_DEAD_LETTER; record or item
	Grace       time.Duration // --grace, SLUICE_GRACE
	Endpoint    string        // --endpoint-dynamodb, SLUICE_ENDPOINT_DYNAMODB; URL
	LogFormat   string        // --log-format, SLUICE_LOG_FORMAT; text or json
	LogLevel    string        // --log-level, SLUICE_LOG_LEVEL; debug, info, warn or error
	Pprof       bool          // --pprof, SLUICE_PPROF; Go's profiles on Listen
	TokenFile   string        // --token-file, SLUICE_TOKEN_FILE; default of a file: State with ".token" behind it. SLUICE_TOKEN holds the token itself
	AllowHosts  []string      // --allow-host, SLUICE_ALLOW_HOST

	RequireSinks bool // --require-sinks, SLUICE_REQUIRE_SINKS; see Check of run.Setup

	// Region of the services has no flag either. Default: that of the
	// environment.
	Region string

	// AWS says how to reach the account of all services, Source that of the tables that
	// are read, Consumed those of single Queues. Region is not in AWS.
	AWS, Source accounts.Access
	Consumed    map[string]accounts.Access

	// Accounts are all accounts, those of sinks too, for people.
	Accounts []accounts.Access

	// StartName is the user's name of Start. EndpointName and RegionName are
	// the names of the settings of both, for messages. Default: the flags and
	// the variables.
	StartName, EndpointName, RegionName string

	// Config is a fingerprint of what the routes do. It is shown to people, to find
	// daemons of one application that differ. Default: the names of the routes.
	Config string

	// Explain says what each route would do with a record, without doing it. It may be nil.
	Explain func(context.Context, *sluice.Record) []Explained

	// Repairs are commands that rewrite what a gap lost, for messages.
	Repairs []string

	// Limits of concurrent work have no flags: an application's configuration
	// sets them. Concurrency and StuckAfter also apply to each queue. The others do
	// not apply to queues, whose messages are ordered only in groups.
	Limits flow.Options

	// BackfillUnits is --backfill-units, SLUICE_BACKFILL_UNITS: read units a
	// second; 0 is the default of package snapshot.
	BackfillUnits float64

	// TraceParent is the attribute of an item with a traceparent; see tracing.Options.
	TraceParent string

	startTimeout, lockTimeout time.Duration // of poller and state file; 0 is their default
}

// envOf names the variable that stands in for each flag.
var envOf = map[string]string{
	"application":       "SLUICE_APPLICATION",
	"table":             "SLUICE_TABLES",
	"queue":             "SLUICE_QUEUES",
	"start":             "SLUICE_START",
	"backfill":          "SLUICE_BACKFILL",
	"backfill-units":    "SLUICE_BACKFILL_UNITS",
	"state":             "SLUICE_STATE",
	"listen":            "SLUICE_LISTEN",
	"dead-letter":       "SLUICE_DEAD_LETTER",
	"grace":             "SLUICE_GRACE",
	"endpoint-dynamodb": "SLUICE_ENDPOINT_DYNAMODB",
	"log-format":        "SLUICE_LOG_FORMAT",
	"log-level":         "SLUICE_LOG_LEVEL",
	"pprof":             "SLUICE_PPROF",
	"token-file":        access.TokenFileEnv,
	"allow-host":        "SLUICE_ALLOW_HOST",
	"require-sinks":     "SLUICE_REQUIRE_SINKS",
}

// AddFlags defines the flags that set o, and sets their defaults.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	usage := func(flag, text string) string { return text + " ($" + envOf[flag] + ")" }
	fs.SortFlags = false
	fs.StringSliceVar(&o.Tables, "table", nil, usage("table", "`table` to read, or the ARN of its stream; repeatable or comma-separated"))
	fs.StringSliceVar(&o.Queues, "queue", nil, usage("queue", "SQS `queue` to consume, by name or URL; repeatable or comma-separated"))
	fs.StringVar(&o.Start, "start", "", usage("start", "begin a stream that was never read at TRIM_HORIZON or LATEST"))
	fs.BoolVar(&o.Backfill, "backfill", false, usage("backfill", "also read the tables whole, once, for routes with SNAPSHOT"))
	fs.Float64Var(&o.BackfillUnits, "backfill-units", 0, usage("backfill-units", "read `units` a second of a backfill (default: a quarter of the provisioned, 1000 on demand)"))
	fs.StringVar(&o.State, "state", "sluice.db", usage("state", "`file` of positions and dead letters, or dynamodb:TABLE to share them"))
	fs.StringVar(&o.Listen, "listen", "127.0.0.1:9464", usage("listen", "`address` to serve on, or \"off\""))
	fs.StringVar(&o.DeadLetter, "dead-letter", "record", usage("dead-letter", "park a failed \"record\" alone, or also later changes of its \"item\""))
	fs.DurationVar(&o.Grace, "grace", 25*time.Second, usage("grace", "time from SIGTERM to the exit"))
	fs.StringVar(&o.Application, "application", "", usage("application", "`name` of the application in the state file"))
	fs.StringVar(&o.Endpoint, "endpoint-dynamodb", "", usage("endpoint-dynamodb", "`URL` of DynamoDB"))
	fs.StringVar(&o.LogFormat, "log-format", "text", usage("log-format", "text or json"))
	fs.StringVar(&o.LogLevel, "log-level", "info", usage("log-level", "debug, info, warn or error"))
	fs.StringVar(&o.TokenFile, "token-file", "", usage("token-file", "`file` of the operators' token (default: beside the state file; $"+access.TokenEnv+" is the token itself)"))
	fs.StringSliceVar(&o.AllowHosts, "allow-host", nil, usage("allow-host", "`name` by which a proxy serves the daemon; repeatable"))
	fs.BoolVar(&o.RequireSinks, "require-sinks", false, usage("require-sinks", "do not start while a sink is down"))
	fs.BoolVar(&o.Pprof, "pprof", false, usage("pprof", "serve Go's profiles under /debug/pprof/"))
}

// FromEnv sets options from the environment, unless flags set them. Call it once
// the flags have been parsed.
func (o *Options) FromEnv(fs *pflag.FlagSet, env func(string) string) error {
	var errs []error
	fs.VisitAll(func(f *pflag.Flag) {
		name := envOf[f.Name]
		if name == "" || f.Changed || env(name) == "" {
			return
		}
		if err := f.Value.Set(env(name)); err != nil {
			errs = append(errs, fmt.Errorf("%s=%q: %w", name, env(name), err))
		}
	})
	if err := errors.Join(errs...); err != nil {
		return &UsageError{err}
	}
	return nil
}

// optionsFromEnv are those of a program without flags.
func (a App) optionsFromEnv(env func(string) string) (o Options, err error) {
	fs := pflag.NewFlagSet(a.Name, pflag.ContinueOnError)
	o.AddFlags(fs)
	err = o.FromEnv(fs, env)
	return o.withDefaults(a), err
}

// withDefaults adds the application's defaults.
func (o Options) withDefaults(a App) Options {
	o.Application = cmp.Or(o.Application, a.Name)
	if len(o.Tables) == 0 {
		o.Tables = a.Tables
	}
	if len(o.Queues) == 0 {
		o.Queues = a.Queues
	}
	o.Tables, o.Queues = trimmed(o.Tables), trimmed(o.Queues)
	return o
}

func trimmed(names []string) []string {
	names = slices.Clone(names)
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
	}
	return names
}

func (o Options) validate() error {
	var errs []error
	bad := func(flag, format string, args ...any) {
		errs = append(errs, fmt.Errorf("--%s (%s): %w", flag, envOf[flag], fmt.Errorf(format, args...)))
	}
	oneOf := func(flag, value string, allowed ...string) {
		if !slices.Contains(allowed, value) {
			bad(flag, "%q is not one of %s", value, strings.Join(allowed, ", "))
		}
	}
	if len(o.Tables) == 0 && len(o.Queues) == 0 {
		bad("table", "no table is named: say which to read, such as --table orders, or which queue to consume, such as --queue jobs")
	}
	named := func(flag string, names []string) {
		if slices.Contains(names, "") {
			bad(flag, "a name is empty in %q", names)
		}
		for i, name := range names {
			if name != "" && slices.Index(names, name) < i {
				bad(flag, "%q is named twice", name)
			}
		}
	}
	named("table", o.Tables)
	named("queue", o.Queues)
	for _, s := range o.streams() {
		if s.ARN != "" && s.TableName() == "" {
			bad("table", "%q is not the ARN of a stream: want arn:aws:dynamodb:REGION:ACCOUNT:table/TABLE/stream/LABEL", s.ARN)
		}
	}
	if o.Start != "" {
		oneOf("start", o.Start, poller.TrimHorizon, poller.Latest)
	}
	if o.Backfill && len(o.Tables) == 0 {
		bad("backfill", "no table is named that could be read")
	}
	if !(o.BackfillUnits >= 0) {
		bad("backfill-units", "%v is not more than 0, nor 0 for the default", o.BackfillUnits)
	}
	if o.State == "" {
		bad("state", "the path is empty: positions must be kept somewhere")
	} else if err := statestore.Check(o.State); err != nil {
		bad("state", "%w", err)
	} else if err := CheckPark(o.DeadLetter, o.State); err != nil {
		bad("dead-letter", "%w", err)
	}
	if o.Listen != "off" {
		if _, _, err := net.SplitHostPort(o.Listen); err != nil {
			bad("listen", "%q is not host:port, nor \"off\"", o.Listen)
		}
	}
	oneOf("dead-letter", o.DeadLetter, "record", "item")
	if o.Grace < time.Second {
		bad("grace", "%v is too short to store the positions: at least 1s", o.Grace)
	}
	if o.Endpoint != "" {
		if err := checkEndpoint(o.Endpoint); err != nil {
			bad("endpoint-dynamodb", "%w", err)
		}
	}
	if o.Limits.MaxAge > mostAge {
		errs = append(errs, fmt.Errorf("limits: maxAge is %v: want %v at most, because a stream forgets its records after 24h", o.Limits.MaxAge, mostAge))
	}
	if o.Pprof && o.Listen == "off" {
		bad("pprof", "there is nowhere to serve profiles: --listen (%s) is \"off\"", envOf["listen"])
	}
	oneOf("log-format", o.LogFormat, "text", "json")
	oneOf("log-level", o.LogLevel, "debug", "info", "warn", "error")
	if err := errors.Join(errs...); err != nil {
		return &UsageError{err}
	}
	return nil
}

// mostAge leaves a record that fails time to be parked before the stream
// forgets it.
const mostAge = 23 * time.Hour

func checkEndpoint(endpoint string) error {
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("%q is not a URL such as http://127.0.0.1:8000", endpoint)
	}
	if awsclient.Exposed(endpoint) {
		return errors.New("it is plain http to AWS, where others could read items and repeat requests: use https")
	}
	return nil
}

// level is valid once the options are.
func (o Options) level() (l slog.Level) {
	_ = l.UnmarshalText([]byte(o.LogLevel))
	return l
}

// streams returns the configured sources: a value in the form of an ARN is a
// stream.
func (o Options) streams() []poller.Stream {
	var all []poller.Stream
	for _, t := range o.Tables {
		if strings.HasPrefix(t, "arn:") {
			all = append(all, poller.Stream{ARN: t})
		} else {
			all = append(all, poller.Stream{Table: t})
		}
	}
	return all
}

// tableNames names the tables of the streams, each once.
func (o Options) tableNames() []string {
	var names []string
	for _, s := range o.streams() {
		if name := s.TableName(); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
