package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/sluicehq/sluice/internal/lambdatraces"
	"github.com/sluicehq/sluice/internal/letterkeys"
	"github.com/sluicehq/sluice/internal/letterqueue"
	"github.com/sluicehq/sluice/metrics/emf"
	"github.com/sluicehq/sluice/sources/lambda"
	"github.com/sluicehq/sluice/tracing"
)

// UnderLambda reports whether Lambda has started the process.
func UnderLambda(env func(string) string) bool { return env("AWS_LAMBDA_RUNTIME_API") != "" }

// runLambda is the function. Its handler takes the events of streams and of
// queues. It returns only a failure of the start: the
// service reports it with the log.
func runLambda(ctx context.Context, a App, env func(string) string, stdout, stderr io.Writer) error {
	logger := slog.New(tracing.Logs(slog.NewJSONHandler(stderr, nil)))
	config, _, err := loadAWS(ctx, env, Options{}, logger)
	if err != nil {
		return err
	}
	o, err := a.optionsFromEnv(env)
	if err != nil {
		return err
	}
	setup := Setup{
		Lambda: true, Tables: o.tableNames(), Queues: o.Queues, Env: env, Logger: logger, AWS: config,
	}
	of, observed, err := emf.FromEnv(env)
	if err != nil {
		return err
	}
	lines := emf.New(stdout, of)
	if observed {
		setup.Metrics = lines
	}
	lo := lambda.Options{Logger: logger}
	if err := a.DeadLetter.set(&lo, o.DeadLetter, setup); err != nil {
		return err
	}
	m, err := a.routes(ctx, setup)
	if err != nil {
		return err
	}
	if observed {
		lo.Invoked, lo.FlowHooks = lines.Invoked, lines.Flow(m)
	}
	if err := lambdatraces.Start(ctx, &lo, "", env); err != nil {
		return err
	}
	lambda.Start(m, lo)
	return errors.New("the Lambda runtime ended")
}

// Variables of [DeadLetter], beside those of its keys.
const (
	letterQueueEnv = "SLUICE_DEAD_LETTER_QUEUE"
	letterAgeEnv   = "SLUICE_DEAD_LETTER_MAX_AGE"
)

// set makes a function park. what names Options.DeadLetter in errors.
func (d DeadLetter) set(lo *lambda.Options, what string, s Setup) (err error) {
	if text := s.Env(letterAgeEnv); text != "" {
		if d.MaxAge, err = time.ParseDuration(text); err != nil || d.MaxAge < time.Second {
			return fmt.Errorf("%s=%q: want 1s or longer, such as 15m", letterAgeEnv, text)
		}
	}
	queue := cmp.Or(s.Env(letterQueueEnv), d.Queue)
	switch {
	case queue == "" && d.MaxAge > 0:
		return fmt.Errorf("records are parked when they are %v old (%s), and there is no queue to park them in: set %s", d.MaxAge, letterAgeEnv, letterQueueEnv)
	case queue == "":
		return nil
	case what == "item":
		return fmt.Errorf("%s is item, and the next invocation of a function does not know which items the queue holds: take record", envOf["dead-letter"])
	}
	keys, err := letterkeys.Find(s.Env, d.KeyFile)
	if err != nil {
		return err
	}
	lo.MaxAge = d.MaxAge
	lo.DeadLetter, err = letterqueue.Open(s.AWS("sqs"), queue, keys, s.Metrics, s.Logger)
	return err
}
