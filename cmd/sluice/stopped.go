package main

import (
	"context"
	"errors"
	"fmt"
)

// stopped is err, unless it is that Ctrl-C or SIGTERM has ended the command: then
// it says so, before what that was, and what to do. That a context was canceled
// says nothing to who has pressed the keys.
func stopped(ctx context.Context, err error, before string) error {
	if ctx.Err() == nil || !errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("stopped before %s", before)
}
