package daemon

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/sources/poller"
)

// kept has all methods of a box that a poller uses.
var (
	_ poller.GapKeeper = (*kept)(nil)
	_ interface {
		Holds(ctx context.Context, rec *sluice.Record, route string) (bool, error)
	} = (*kept)(nil)
)

func TestKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var k kept
		expect := func(want string) {
			t.Helper()
			if got := strings.Join(k.unready(), "\n"); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		}
		cut, cancel := context.WithCancel(t.Context())
		cancel()
		full := errors.New("no space left")
		_ = k.noted(cut, full)
		expect("")
		_ = k.noted(t.Context(), full)
		time.Sleep(time.Minute)
		_ = k.noted(t.Context(), full)
		expect("dead letters cannot be stored since 2000-01-01T00:00:00Z, and what failed for good waits for that: no space left")
		_ = k.noted(t.Context(), nil)
		expect("")
		_ = k.noted(t.Context(), full)
		expect("dead letters cannot be stored since 2000-01-01T00:01:00Z, and what failed for good waits for that: no space left")
		time.Sleep(forgetAfter + 1)
		expect("")
		_ = k.noted(t.Context(), full)
		expect("dead letters cannot be stored since 2000-01-01T00:21:00Z, and what failed for good waits for that: no space left")
		var damage error
		k = kept{damaged: func() error { return damage }}
		expect("")
		damage = errors.New("state file s.db: cannot use dead letters")
		expect(damage.Error())
	})
}
