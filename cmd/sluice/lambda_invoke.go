package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/internal/function"
	"github.com/sluicehq/sluice/internal/runtimeapi"
	"github.com/sluicehq/sluice/internal/wire"
)

type invokeOptions struct {
	bootstrap string
	timeout   time.Duration
	asJSON    bool
}

func lambdaInvokeCommand(c *cli) *cobra.Command {
	var o invokeOptions
	cmd := &cobra.Command{
		Use:   "invoke [event.json]",
		Short: "Run the function on this machine with one event",
		Long: `Run the Lambda function on this machine with one event, and print its log, effects
and answer. It sends, writes and deletes as under Lambda; sluice explain only shows
the effects.

The function is the configuration file's, or the program of --bootstrap, whose folder
stands for /var/task. For local servers set SLUICE_ENDPOINT_DYNAMODB and
SLUICE_ENDPOINT_SQS.

Exit codes: 0 every record is settled; 3 Lambda would send some again; 1 an invalid
event, or no answer.`,
		Example: `  sluice lambda invoke event.json --bootstrap deploy/lambda/build/bootstrap --timeout 3s`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.timeout <= 0 {
				return usage("--timeout is %v: want more than 0", o.timeout)
			}
			return c.invoke(cmd.Context(), args, o)
		},
	}
	oneArgument(cmd, "%d files are named: want one event", nil)
	f := cmd.Flags()
	f.StringVar(&o.bootstrap, "bootstrap", "", "run this built `file`, or the folder of bootstrap")
	f.DurationVar(&o.timeout, "timeout", time.Minute, "time limit of the start, and of the answer")
	f.BoolVar(&o.asJSON, "json", false, "print JSON, one object a line")
	return cmd
}

// lambdaFunctionCommand is what invoke starts as a process.
func lambdaFunctionCommand(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:    "function",
		Short:  "Be the function of the configuration",
		Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if function.Run(cmd.Context(), c.stderr, nil) != 0 {
				return errMistakes
			}
			return nil
		},
	}
}

// invoked is the result of an invocation.
type invoked struct {
	Answer  json.RawMessage `json:"answer,omitempty"`
	Again   []string        `json:"again"`           // identifiers of records: the first of a stream that comes again, all of a queue
	Error   string          `json:"error,omitempty"` // in place of an answer
	Effects *effects        `json:"effects"`         // null when the function writes no metrics
	Log     []string        `json:"log"`
	StartMS float64         `json:"startMillis"`
	TookMS  float64         `json:"tookMillis"`
}

func (c *cli) invoke(ctx context.Context, args []string, o invokeOptions) error {
	event, region, err := c.readEvent(args)
	if err != nil {
		return err
	}
	command, err := c.functionCommand(ctx, o, region)
	if err != nil {
		return err
	}
	log := &functionLog{}
	if !o.asJSON {
		log.live = c.stderr
	}
	command.Stdout, command.Stderr = log, log
	result, failed := invokeOnce(ctx, command, event, o.timeout)
	log.end()
	result.Log, result.Effects = append([]string{}, log.lines...), log.effects
	if failed != nil {
		failed = stopped(ctx, failed, "the function's answer")
		result.Error = failed.Error()
	}
	if err := c.answer(o.asJSON, result, "%s", result.text()); err != nil {
		return err
	}
	switch {
	case failed != nil:
		return failed
	case len(result.Again) > 0:
		return &findings{"Lambda would send records again: " + strings.Join(result.Again, ", ")}
	}
	return nil
}

// readEvent returns the event, and the Region that it comes from.
func (c *cli) readEvent(args []string) (event []byte, region string, err error) {
	from := "standard input"
	if len(args) > 0 {
		from = args[0]
		event, err = os.ReadFile(from)
	} else {
		event, err = io.ReadAll(c.stdin)
	}
	if err != nil {
		return nil, "", fmt.Errorf("the event: %w", err)
	}
	event = bytes.TrimSpace(event)
	if err = json.Unmarshal(event, new(json.RawMessage)); err != nil {
		return nil, "", fmt.Errorf("%s is no event: it is not one JSON value: %w", from, err)
	}
	recs, err := wire.Event(event)
	if err != nil {
		return nil, "", fmt.Errorf("%s is no event of a stream or a queue: %w; docs/lambda.md shows one", from, err)
	}
	for i := range recs {
		region = cmp.Or(region, recs[i].Region)
	}
	return event, region, nil
}

func invokeOnce(ctx context.Context, command runtimeapi.Command, event []byte, timeout time.Duration) (result invoked, err error) {
	result.Again = []string{}
	fn, err := runtimeapi.Start(ctx, command)
	if err != nil {
		return result, startError(command.Path, timeout, err)
	}
	defer func() { _, end := fn.Stop(); err = errors.Join(err, end) }()
	result.StartMS = millis(fn.FirstPoll())
	begun := time.Now()
	answer, err := fn.Invoke(ctx, event, timeout)
	result.TookMS = millis(time.Since(begun))
	switch {
	case errors.Is(err, runtimeapi.ErrTimedOut):
		return result, fmt.Errorf("the function gave no answer within %v and was ended; Lambda would send the whole batch again: see its log, or give it longer by --timeout", timeout)
	case errors.Is(err, runtimeapi.ErrExited):
		return result, fmt.Errorf("the function ended without an answer; Lambda would send the whole batch again: see its log: %w", err)
	case err != nil:
		return result, err
	case answer.Failed:
		return result, fmt.Errorf("the function failed, and Lambda would send the whole batch again: %s: %s", answer.ErrorType, answer.Message)
	case !json.Valid(answer.Payload):
		return result, fmt.Errorf("the function's answer is no JSON: %q", answer.Payload)
	}
	result.Answer = answer.Payload
	type failure struct{ ItemIdentifier string }
	var partial struct{ BatchItemFailures []failure }
	if err := json.Unmarshal(answer.Payload, &partial); err != nil {
		return result, fmt.Errorf("Lambda cannot read the answer %s and would send the whole batch again: %w", answer.Payload, err)
	}
	result.Again = mapped(partial.BatchItemFailures, func(f failure) string { return f.ItemIdentifier })
	return result, nil
}

func millis(d time.Duration) float64 {
	return float64(d.Round(100*time.Microsecond)) / float64(time.Millisecond)
}

// text is a result for people; the log was printed as it came.
func (r *invoked) text() string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-8s "+format+"\n", append([]any{name}, args...)...)
	}
	switch {
	case r.Effects != nil:
		r.Effects.text(line)
	case r.Error == "":
		line("effects", "unknown: the function writes no metrics, which package metrics/emf does")
	}
	if r.Answer != nil {
		line("answer", "%s", plain(string(r.Answer)))
	}
	if r.TookMS > 0 {
		line("took", "%.1f ms, after %.1f ms to start", r.TookMS, r.StartMS)
	}
	return b.String()
}
