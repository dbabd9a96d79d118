package daemon

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestWithin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		failed := errors.New("no")
		if err := within(ctx, time.Second, "reading", "the disk", func() error { time.Sleep(time.Hour); return failed }); err != failed {
			t.Errorf("before it has to end: %v", err)
		}
		stop()
		if err := within(ctx, time.Minute, "reading", "the disk", func() error { time.Sleep(time.Minute - 1); return failed }); err != failed {
			t.Errorf("in time: %v", err)
		}
		hang := make(chan struct{})
		began := time.Now()
		err := within(ctx, time.Minute, "reading", "the disk", func() error { <-hang; return nil })
		if err == nil || !strings.HasPrefix(err.Error(), "reading has not ended in time") {
			t.Errorf("of what does not end: %v", err)
		}
		if took := time.Since(began); took != time.Minute {
			t.Errorf("it was waited for %v", took)
		}
		close(hang)
	})
}
