package run

import (
	"context"
	"errors"
	"io"
	"log/slog"

	"github.com/spf13/pflag"

	"github.com/sluicehq/sluice/batch"
	"github.com/sluicehq/sluice/metrics/emf"
	"github.com/sluicehq/sluice/sources/lambda"
)

func underLambda(env func(string) string) bool { return env("AWS_LAMBDA_RUNTIME_API") != "" }

// runLambda is the function. Its handler takes the events of streams and of
// queues. It returns only a failure of the start: the
// service reports it with the log.
func runLambda(ctx context.Context, a App, env func(string) string, stdout, stderr io.Writer) error {
	logger := slog.New(slog.NewJSONHandler(stderr, nil))
	config, err := loadAWS(ctx, env, Options{}, logger)
	if err != nil {
		return err
	}
	var o Options
	fs := pflag.NewFlagSet(a.Name, pflag.ContinueOnError)
	o.AddFlags(fs)
	if err := o.FromEnv(fs, env); err != nil {
		return err
	}
	o = o.withDefaults(a)
	setup := Setup{
		Lambda: true, Tables: o.tableNames(), Queues: o.Queues, Env: env, Logger: logger, AWS: config,
		BatchHooks: func(string) batch.Hooks { return batch.Hooks{} },
	}
	of, observed, err := emf.FromEnv(env)
	if err != nil {
		return err
	}
	metrics := emf.New(stdout, of)
	if observed {
		setup.BatchHooks, setup.Projection, setup.Escalation = metrics.Batch, metrics.Projection(), metrics.Escalation
	}
	m, err := a.routes(ctx, setup)
	if err != nil {
		return err
	}
	lo := lambda.Options{Logger: logger}
	if observed {
		lo.Hooks, lo.FlowHooks = metrics.Lambda(), metrics.Flow(m)
	}
	lambda.Start(m, lo)
	return errors.New("the Lambda runtime ended")
}
