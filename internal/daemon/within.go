package daemon

import (
	"context"
	"fmt"
	"time"
)

// within returns the result of work. It returns an error if work continues for
// longer than grace after ctx has ended, and abandons work then. A call to a dead
// disk never returns, and ignores contexts. check is advice.
func within(ctx context.Context, grace time.Duration, what, check string, work func() error) error {
	done := make(chan error, 1)
	go func() { done <- work() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(grace):
		return fmt.Errorf("%s has not ended in time and is abandoned: records whose position is not stored come again. Check %s", what, check)
	}
}
