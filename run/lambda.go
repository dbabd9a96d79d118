package run

import (
	"context"
	"errors"
	"io"
	"log/slog"

	"github.com/spf13/pflag"

	"github.com/sluicehq/sluice/batch"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/sources/lambda"
)

func underLambda(env func(string) string) bool { return env("AWS_LAMBDA_RUNTIME_API") != "" }

// runLambda is the function. Its handler takes the events of streams and of
// queues. It returns only a failure of the start: the
// service reports it with the log.
func runLambda(ctx context.Context, a App, env func(string) string, stderr io.Writer) error {
	logger := slog.New(slog.NewJSONHandler(stderr, nil))
	config, err := loadAWS(ctx, env, nil, logger)
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
	m, err := a.routes(ctx, Setup{
		Lambda: true, Tables: o.tableNames(), Queues: o.Queues, Env: env, Logger: logger, AWS: config,
		RouterHooks: router.Hooks{},
		BatchHooks:  func(string) batch.Hooks { return batch.Hooks{} },
	})
	if err != nil {
		return err
	}
	lambda.Start(m, lambda.Options{Logger: logger})
	return errors.New("the Lambda runtime ended")
}
