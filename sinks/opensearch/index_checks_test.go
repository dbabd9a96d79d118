package opensearch

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice/effect/document"
)

// A writer asks about an index before its first write and once a minute. What it
// learns then counts, unless the cluster gives no answer.
func TestWritersCheckAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		var answer error
		var slow chan struct{} // an answer that takes long
		c := newChecks(func(context.Context, string) error {
			asked++
			if slow != nil {
				<-slow
			}
			return answer
		})
		write := c.writer(func(context.Context, document.Op) error { return nil })
		down, other := errors.New("no answer"), unfit("i", "it is another index", "stop")
		for i, step := range []struct {
			after  time.Duration
			answer error
			want   error
			asked  int
		}{
			{0, down, down, 1},
			{time.Second, nil, down, 1},
			{retryCheck, nil, nil, 2},
			{checkAgain - 1, other, nil, 2},
			{1, down, nil, 3}, // it was good
			{time.Second, other, nil, 3},
			{retryCheck, other, other, 4},
			{retryCheck, down, down, 5},
			{retryCheck, nil, nil, 6},
		} {
			time.Sleep(step.after)
			answer = step.answer
			if err := write(t.Context(), document.Op{Index: "i"}); !errors.Is(err, step.want) || asked != step.asked {
				t.Errorf("step %d: %v after %d checks, want %v after %d", i, err, asked, step.want, step.asked)
			}
		}

		time.Sleep(checkAgain)
		slow = make(chan struct{})
		go write(t.Context(), document.Op{Index: "i"})
		synctest.Wait()
		if err := write(t.Context(), document.Op{Index: "i"}); err != nil || asked != 7 {
			t.Errorf("beside a check: %v after %d checks", err, asked)
		}
		close(slow)
	})
}
