package poller_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/streamtest"
)

// Users of other tools met these failures: a dead reader is ready, or the lag
// is wrong.

func TestHealthSaysWhyNothingIsRead(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	denied := streamtest.Fault{Error: "AccessDeniedException"}
	for _, c := range []struct {
		name   string
		fault  streamtest.Fault
		reason string
	}{
		{"no answers", streamtest.Fault{Op: "GetRecords", Hang: true}, "no successful poll"},
		{"errors", streamtest.Fault{Op: "GetRecords", Error: "InternalServerError"}, "no successful poll"},
		{"throttled for good", streamtest.Fault{Op: "GetRecords", Error: "ThrottlingException"}, "no successful poll"},
		{"cut answers", streamtest.Fault{Op: "GetRecords", Cut: true}, "no successful poll"},
		{"denied", denied, "AccessDeniedException"},
		{"shards cannot be listed", streamtest.Fault{Op: "DescribeStream", Error: "InternalServerError"}, "shards cannot be listed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, streamtest.TableOptions{Shards: 2}, func(w *world) {
				d := w.start()
				w.put(keys(10)...)
				w.pass(5 * time.Second)
				d.unready("")
				repair := w.svc.Fail(c.fault)
				w.pass(100 * time.Second)
				d.unready(c.reason)
				w.pass(10 * time.Minute)
				d.unready(c.reason)
				repair()
				w.put(keys(10)...)
				w.pass(3 * time.Minute)
				d.unready("")
				w.once(0)
				d.end()
			})
		})
	}
	t.Run("a handler that hangs", func(t *testing.T) {
		inWorld(t, streamtest.TableOptions{}, func(w *world) {
			release := make(chan struct{})
			w.handle = func(_ context.Context, name string) error {
				if name == "a1" {
					<-release
				}
				return nil
			}
			d := w.start()
			w.put("a", "b", "c")
			w.pass(6 * time.Minute)
			d.unready("watermark has not moved")
			close(release)
			w.pass(5 * time.Second)
			d.unready("")
			w.once(0)
			d.end()
		})
	})
}

func TestLagIsTheAgeOfTheOldestUnsettledRecord(t *testing.T) {
	inWorld(t, streamtest.TableOptions{}, func(w *world) {
		var fails atomic.Bool
		w.handle = func(context.Context, string) error {
			if fails.Load() {
				return errors.New("not now")
			}
			return nil
		}
		w.o.BusyInterval, w.o.IdleInterval = 0, 0 // the default pace
		d := w.start()
		near := func(when string, want time.Duration) {
			w.Helper()
			if got := d.Lag(); got < want || got > want+2*time.Second {
				w.Errorf("%s: a lag of %v, want %v", when, got, want)
			}
		}
		w.pass(30 * time.Minute)
		near("idle", 0)
		fails.Store(true)
		w.put("a")
		w.pass(time.Minute)
		w.put("b")
		w.pass(time.Minute)
		near("a record waits", 2*time.Minute)
		fails.Store(false)
		w.pass(2 * time.Minute)
		near("settled", 0)
		repair := w.svc.Fail(streamtest.Fault{Op: "GetRecords", Hang: true})
		w.pass(2 * time.Minute)
		near("not polled", 2*time.Minute)
		repair()
		w.pass(time.Minute)
		near("polled again", 0)
		d.end()
		w.pass(time.Hour)
		w.put("c")
		w.pass(time.Hour)
		w.handle = func(ctx context.Context, _ string) error { // never done
			<-ctx.Done()
			return ctx.Err()
		}
		d = w.start()
		w.pass(5 * time.Second)
		near("a backlog", time.Hour+5*time.Second)
		d.end()
	})
}
