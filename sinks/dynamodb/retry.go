package dynamodb

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/awserror"
	"github.com/sluicehq/sluice/internal/backoff"
)

// mayBeDone reports whether a failed write may have been done: its response was
// lost or unclear.
func mayBeDone(err error) bool {
	if err == nil || awserror.Of(err) > awserror.Failed {
		return false
	}
	var network *net.OpError
	return !errors.As(err, &network) || network.Op != "dial"
}

// retry repeats try with backoff while its error may be temporary, up to attempts
// times. It returns the last error unchanged, or the one before it if the last is
// only tooLate.
func (s *Store) retry(ctx context.Context, attempts int, try func(context.Context) error) error {
	var last error
	for n := 1; ; n++ {
		err := try(ctx)
		switch {
		case last != nil && tooLate(ctx, err):
			return last
		case err == nil, !awserror.Of(err).Passes(), n >= attempts, !s.pause(ctx, n):
			return err
		}
		last = err
	}
}

// tooLate reports whether err says only that the time of ctx ended before a try or
// during it. The error of the try before then says more. The try may be done: see
// mayBeDone. A caller that cancels ctx wants to see that.
func tooLate(ctx context.Context, err error) bool {
	if errors.Is(ctx.Err(), context.Canceled) || errors.Is(err, errBefore) {
		return false
	}
	return awserror.Of(err) == awserror.Lost && (ctx.Err() != nil || errors.Is(err, errBudget))
}

// ofLoad reports whether err is a refusal for load.
func ofLoad(err error) bool {
	return awserror.Of(err) == awserror.Throttled || slices.ContainsFunc(reasonsOf(err), isOfLoad)
}

// api is a method of the client.
type api[In, Out any] func(context.Context, *In, ...func(*dynamodb.Options)) (*Out, error)

// try gives one request a third of Timeout, so that a silently dead connection
// leaves time for retries.
func try[In, Out any](ctx context.Context, s *Store, request api[In, Out], in *In) (*Out, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opt.Timeout/3)
	defer cancel()
	return request(ctx, in)
}

// read repeats a read while its error may be temporary, within Timeout.
func read[In, Out any](ctx context.Context, s *Store, attempts int, call, table string, request api[In, Out], in *In) (out *Out, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.opt.Timeout)
	defer cancel()
	err = s.retry(ctx, attempts, func(ctx context.Context) (err error) {
		out, err = try(ctx, s, request, in)
		return err
	})
	return out, s.explain(call, table, err)
}

// pause waits before try n+1, by backoff with full jitter. It returns false at
// once if ctx would end before.
func (s *Store) pause(ctx context.Context, n int) bool {
	return backoff.Within(ctx, backoff.Full(s.opt.Backoff, s.opt.Backoff<<10, n))
}

// explain adds to an SDK error the call, the table and the endpoint, and advice
// for common mistakes. It is sluice.Permanent if it is permanent, and
// sluice.Overloaded for a refusal for load. table may be empty.
func (s *Store) explain(call, table string, err error) error {
	if err == nil {
		return nil
	}
	at := call + " " + s.where
	if hint := awserror.Hint(err, "dynamodb:"+call, "table or index", "name or the region"); hint != "" {
		at += ": " + hint
	} else if awserror.Code(err) == "ItemCollectionSizeLimitExceededException" {
		at += ": the items of this partition, with those of local indexes, have reached 10 GB"
	}
	meaning := awserror.Of(err)
	if ofLoad(err) {
		err = sluice.Overloaded(err)
	}
	err = fmt.Errorf("%s: %w", at, err)
	if table != "" {
		err = &tableError{table, err}
	} else {
		err = fmt.Errorf("dynamodb: %w", err)
	}
	if meaning == awserror.Invalid {
		return sluice.Permanent(err)
	}
	return err
}

// tableError is an error with its table.
type tableError struct {
	table string
	err   error
}

func (e *tableError) Error() string { return fmt.Sprintf("dynamodb: table %q: %v", e.table, e.err) }
func (e *tableError) Unwrap() error { return e.err }
