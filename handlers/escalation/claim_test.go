package escalation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
)

// An acknowledgement between the claim and the call stops the call, and the claim is
// removed.
func TestAcknowledgedAfterTheClaim(t *testing.T) {
	const dead = `{"page":{"S":"P1"},"n":{"N":"0"},"tried":{"M":{"person":{"S":"ann"},"rank":{"N":"1"}}},"leaseOwner":{"S":"x"},"leaseUntil":{"S":"2024-05-01T10:00:00Z"}}`
	for _, tt := range []struct {
		name, before, after string
	}{
		{"put by the claim", "", ""},
		{"taken over", dead, `"leaseUntil":{"S":"2024-05-01T10:00:00Z"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newRota(t)
				if tt.before != "" {
					w.put(t, "rings", tt.before)
				}
				acknowledged := false
				w.Fault = func(after bool, ops []dynamo.Op) error {
					if after && !acknowledged && ops[0].Table == "rings" {
						acknowledged = true
						go func() {
							w.World.Put(context.Background(), "pages", parse(strings.Replace(ringing, "ringing", "answered", 1)))
						}()
					}
					return nil
				}
				c := w.config()
				write := c.Config.Write
				c.Config.Write = func(ctx context.Context, op dynamo.Op) error {
					err := write(ctx, op)
					synctest.Wait() // the acknowledgement is there
					return err
				}
				s, err := NewConsumer(c)
				if err != nil {
					t.Fatal(err)
				}
				if err := s.Try(t.Context(), ring()); outcome(err) != "skipped: escalation not active" || len(w.calls) != 0 {
					t.Errorf("%v, calls %q", err, w.calls)
				}
				if got := w.rings(); tt.after == "" && got != "" || !strings.Contains(got, tt.after) || strings.Contains(got, `"at"`) {
					t.Errorf("attempt %s", got)
				}
			})
		})
	}
}

// A claim is a write of the attempt alone, one at a time: no transaction ever
// holds the escalation, which the application writes.
func TestClaimWritesTheAttemptAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newRota(t)
		w.Fault = func(_ bool, ops []dynamo.Op) error {
			if len(ops) != 1 || ops[0].Kind == dynamo.CheckOp || ops[0].Table != "rings" {
				t.Errorf("wrote %+v", ops)
			}
			return nil
		}
		if err := w.consumer(t).Try(t.Context(), ring()); err != nil {
			t.Fatal(err)
		}
	})
}

// A claim whose answer is lost is not taken for somebody else's when it is made
// again.
func TestClaimIsWrittenAgain(t *testing.T) {
	for name, before := range map[string]string{
		"put":       "",
		"take over": `{"page":{"S":"P1"},"n":{"N":"0"},"tried":{"M":{"person":{"S":"ann"},"rank":{"N":"1"}}},"leaseOwner":{"S":"x"},"leaseUntil":{"S":"2024-05-01T10:00:00Z"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newRota(t)
				if before != "" {
					w.put(t, "rings", before)
				}
				c := w.config()
				c.Config.Write = func(ctx context.Context, op dynamo.Op) error {
					if err := w.Write(ctx, op); err != nil || strings.Contains(op.Update, "#at") {
						return err
					}
					return w.Write(ctx, op) // the sink's own repetition
				}
				s, err := NewConsumer(c)
				if err != nil {
					t.Fatal(err)
				}
				if err := s.Try(t.Context(), ring()); err != nil || len(w.calls) != 1 || !strings.Contains(w.rings(), `"contacted"`) {
					t.Errorf("%v, calls %q, attempt %s", err, w.calls, w.rings())
				}
			})
		})
	}
}

// A read that fails after the claim gives the step back: the next delivery need
// not wait for the lease.
func TestReadFailsAfterTheClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newRota(t)
		down := errors.New("throttled")
		claimed := false
		w.Fault = func(after bool, _ []dynamo.Op) error { claimed = true; return nil }
		w.ReadFault = func() error {
			if claimed {
				return down
			}
			return nil
		}
		s := w.consumer(t)
		if err := s.Try(t.Context(), ring()); !errors.Is(err, down) || sluice.IsPermanent(err) || len(w.calls) != 0 {
			t.Fatal(err)
		}
		w.Fault, w.ReadFault = nil, nil
		before := w.Now()
		if err := s.Try(t.Context(), ring()); err != nil || fmt.Sprint(len(w.calls)) != "1" || w.Now().Sub(before) > time.Second {
			t.Errorf("%v, calls %q", err, w.calls)
		}
	})
}

// An attempt that is taken over is of the step that it says: the message may be the
// watchdog's, of a ladder that was edited since.
func TestTakesOverTheStepOfTheAttempt(t *testing.T) {
	const dead = `{"page":{"S":"P1"},"n":{"N":"0"},"tried":{"M":{"person":{"S":"%s"},"rank":{"N":"2"}}},"leaseOwner":{"S":"x"},"leaseUntil":{"S":"2024-05-01T10:00:00Z"}}`
	for person, want := range map[string]string{"bob": `"contacted"`, "dan": `"skipped"`, "ann": `"contacted"`} {
		synctest.Test(t, func(t *testing.T) {
			w := newRota(t)
			w.put(t, "rings", fmt.Sprintf(dead, person))
			if err := w.consumer(t).Try(t.Context(), ring()); err != nil || !strings.Contains(w.rings(), want) || !strings.Contains(w.rings(), `"`+person+`"`) {
				t.Errorf("%s: %v, %s", person, err, w.rings())
			}
			if person == "dan" && len(w.calls) > 0 || person != "dan" && (len(w.calls) != 1 || !strings.HasSuffix(w.calls[0], " "+person)) {
				t.Errorf("%s: calls %q", person, w.calls)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		w := newRota(t)
		w.put(t, "rings", strings.Replace(fmt.Sprintf(dead, "bob"), `"rank":{"N":"2"}`, `"rank":{"S":"2"}`, 1))
		if err := w.consumer(t).Try(t.Context(), ring()); !sluice.IsPermanent(err) || !strings.Contains(withoutHashes(err.Error()), "step KEY: its attempt: ") || len(w.calls) > 0 {
			t.Error(err)
		}
	})
}
