package localtest

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func TestAwait(t *testing.T) {
	const step = Patience - time.Second
	for _, tt := range []struct {
		name  string
		steps int // of progress, each just in time
		done  bool
		last  string
		took  time.Duration
	}{
		{"at once", 0, true, "", 0},
		{"slowly", 20, true, "", 20 * step},
		{"never", 0, false, "0 of 1", Patience},
		{"no further", 5, false, "5 of 6", 5*step + Patience},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				all := tt.steps
				if !tt.done {
					all++
				}
				last, ok := await(func() string {
					n := min(int(time.Since(begin)/step), tt.steps)
					if n == all {
						return ""
					}
					return fmt.Sprintf("%d of %d", n, all)
				})
				if took := time.Since(begin).Truncate(time.Second); last != tt.last || ok != tt.done || took != tt.took {
					t.Errorf("%q, %v after %v; want %q, %v after %v", last, ok, took, tt.last, tt.done, tt.took)
				}
			})
		})
	}
}
