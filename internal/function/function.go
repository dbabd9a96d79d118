// Package function is the Lambda function of a configuration file:
// cmd/sluice-lambda runs it under Lambda, and sluice lambda invoke on your
// machine. The comment of cmd/sluice-lambda lists what it uses of file and
// environment.
package function

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/accounts"
	"github.com/sluicehq/sluice/internal/awsclient"
	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/letterqueue"
	"github.com/sluicehq/sluice/metrics/emf"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/sources/lambda"
)

// Run takes invocations from Lambda, and does not return. When the function
// cannot start, it prints each mistake on a line and returns the exit code.
func Run(ctx context.Context, stderr io.Writer, traces *Traces) (exit int) {
	m, o, err := New(ctx, traces)
	if err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			fmt.Fprintln(stderr, "sluice-lambda:", line)
		}
		return 1
	}
	lambda.Start(m, o)
	return 0
}

// Traces makes traces, in a function that links what they need. nil makes none.
type Traces struct {
	Logs func(slog.Handler) slog.Handler // adds the ids of traces
	// Start adds the traces that the environment asks for. parent is the attribute of
	// an item with a traceparent.
	Start func(ctx context.Context, o *lambda.Options, parent string) error
}

// New makes the routes and options of the file that SLUICE_CONFIG names, and of
// the process' environment.
func New(ctx context.Context, traces *Traces) (*router.Router, lambda.Options, error) {
	var lines slog.Handler = slog.NewJSONHandler(os.Stderr, nil)
	if traces != nil {
		lines = traces.Logs(lines)
	}
	logger := slog.New(lines)
	cfg, err := load()
	if err == nil {
		err = awsclient.ExposedVariable(os.Getenv)
	}
	if err != nil {
		return nil, lambda.Options{}, err
	}
	if d := cfg.DeadLetter; d.MaxAge > 0 && d.Queue == "" {
		return nil, lambda.Options{}, fmt.Errorf("deadLetter.maxAge is %v, and a function has no place for what is older: name a queue by deadLetter.queue, or leave maxAge out", d.MaxAge)
	}
	if d := cfg.DeadLetter; d.Park == "item" && d.Queue != "" {
		return nil, lambda.Options{}, errors.New("deadLetter.park is item, and a function cannot keep that: which items it has parked is in the queue, and the next invocation would let their later changes go on; take record, or leave deadLetter.queue out, so that a record that fails for good stops what comes after it")
	}
	options, observed, err := emf.FromEnv(os.Getenv)
	if err != nil {
		return nil, lambda.Options{}, err
	}
	metrics := emf.New(os.Stdout, options)
	of, all, err := services(cfg)
	if err != nil {
		return nil, lambda.Options{}, err
	}
	setup := config.Setup{AWS: of, Accounts: all, Logger: logger}
	if observed {
		setup.Metrics = metrics
	}
	app, err := cfg.Build(ctx, setup)
	if err != nil {
		return nil, lambda.Options{}, err
	}
	o := lambda.Options{
		Concurrency: cfg.Limits.Concurrency,
		StuckAfter:  cfg.Limits.StuckAfter.Duration(),
		MaxAge:      cfg.DeadLetter.MaxAge.Duration(),
		Logger:      logger,
	}
	if cfg.Limits.Order == "shard" {
		o.Order = flow.ByShard
	}
	if observed {
		app.Router.Count(metrics)
		o.Invoked, o.FlowHooks = metrics.Invoked, metrics.Flow(app.Router)
	}
	if cfg.DeadLetter.Queue != "" {
		keys, err := cfg.LetterKeys(os.Getenv)
		if err == nil {
			o.DeadLetter, err = letterqueue.Open(setup.AWS("sqs"), cfg.DeadLetter.Queue, keys, setup.Metrics, logger)
		}
		if err != nil {
			return nil, o, fmt.Errorf("deadLetter: %w", err)
		}
	}
	if traces != nil {
		if err := traces.Start(ctx, &o, cfg.Tracing.Parent); err != nil {
			return nil, o, err
		}
	}
	return app.Router, o, nil
}

// load reads the file, which is unpacked beside the bootstrap.
func load() (*config.Config, error) {
	path := cmp.Or(os.Getenv("SLUICE_CONFIG"), "sluice.yaml")
	if !filepath.IsAbs(path) {
		path = filepath.Join(os.Getenv("LAMBDA_TASK_ROOT"), path)
	}
	cfg, err := config.Load(path, os.LookupEnv)
	if at := (*fs.PathError)(nil); errors.As(err, &at) && at.Path == path {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			err = fmt.Errorf("%w: put it beside the bootstrap, or name another by SLUICE_CONFIG", err)
		case errors.Is(err, fs.ErrPermission): // a function is not run by who made its package
			err = fmt.Errorf("%w: make it readable to everybody (chmod a+r) before it is packed", err)
		}
		return nil, err
	}
	return cfg, err
}

// services takes Region and credentials from where Lambda puts them. Looking in
// all the places that the SDK knows would cost every cold start.
func services(c *config.Config) (func(service string) aws.Config, *accounts.Accounts, error) {
	for _, at := range c.Accounts() {
		if at.Profile != "" {
			return nil, nil, c.FieldError(at.Field+".profile", errors.New("a function has no profiles: name a role in assumeRole"))
		}
	}
	own := func(service string) aws.Config {
		cfg := aws.Config{
			Region: cmp.Or(c.AWS.Region, os.Getenv("AWS_REGION")),
			Credentials: credentials.NewStaticCredentialsProvider(
				os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY"), os.Getenv("AWS_SESSION_TOKEN")),
		}
		if url := cmp.Or(os.Getenv("SLUICE_ENDPOINT_"+strings.ToUpper(service)), c.AWS.Endpoints[service]); url != "" {
			cfg.BaseEndpoint = &url
		}
		return cfg
	}
	all := accounts.New(own("sts"), nil)
	return all.Services(own, c.TopAccess(), c.SourceAccess()), all, nil
}
