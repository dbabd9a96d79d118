package main

import (
	"context"
	"errors"
	"fmt"
)

// stopped is err, unless Ctrl-C or SIGTERM ended the command. Then it says so,
// before when, and what to do: "context canceled" means nothing to a user.
func stopped(ctx context.Context, err error, before string) error {
	if ctx.Err() == nil || !errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("stopped before %s", before)
}
