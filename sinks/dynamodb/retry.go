package dynamodb

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/awserror"
	"github.com/sluicehq/sluice/internal/backoff"
)

// mayBeDone reports whether a write that failed with err may have been done: its
// answer was lost, or tells nothing.
func mayBeDone(err error) bool {
	if err == nil || awserror.Of(err) > awserror.Failed {
		return false
	}
	var network *net.OpError
	return !errors.As(err, &network) || network.Op != "dial"
}

// retry repeats try, with backoff, while its error may pass, up to Attempts
// times. The error is that of the last try, as it came.
func (s *Store) retry(ctx context.Context, try func(context.Context) error) error {
	return s.retryUpTo(ctx, s.opt.Attempts, try)
}

func (s *Store) retryUpTo(ctx context.Context, attempts int, try func(context.Context) error) error {
	for n := 1; ; n++ {
		err := try(ctx)
		if err == nil || !awserror.Of(err).Passes() || n >= attempts || !s.pause(ctx, n) {
			return err
		}
	}
}

// try gives one request a third of Timeout: one whose connection has died
// silently leaves time for others.
func (s *Store) try(ctx context.Context, request func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.opt.Timeout/3)
	defer cancel()
	return request(ctx)
}

// pause waits before try n+1 as long as backoff with full jitter says. It
// returns false, at once, when ctx would end before.
func (s *Store) pause(ctx context.Context, n int) bool {
	return backoff.Within(ctx, backoff.Full(s.opt.Backoff, s.opt.Backoff<<10, n))
}

// explain says of an error of the SDK which call of which table failed where
// and, for what people get wrong, what to do. It is sluice.Permanent when
// it can never be, and sluice.Overloaded when it is a refusal for load. table may be empty.
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
	if meaning == awserror.Throttled || slices.ContainsFunc(reasonsOf(err), isOfLoad) {
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

// tableError says which table an error is about.
type tableError struct {
	table string
	err   error
}

func (e *tableError) Error() string { return fmt.Sprintf("dynamodb: table %q: %v", e.table, e.err) }
func (e *tableError) Unwrap() error { return e.err }
