package dynamostate

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/job"
	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/internal/rows"
	"github.com/sluicehq/sluice/router"
)

// One of two workers has a job. The other learns which one and since when, and has the
// job after the first has died, who then learns that it is lost.
func TestHoldJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer end()
		table := new(rows.Memory)
		cut := &link{Table: table}
		first, second := over(cut), over(table)
		a, b := job.NewOwner(ctx, first), job.NewOwner(ctx, second)
		began := time.Now().Truncate(time.Second)
		held, release, err := job.Hold(ctx, first, "app", "redrive", a.Name())
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		time.Sleep(time.Minute)
		_, _, err = job.Hold(ctx, second, "app", "redrive", b.Name())
		var other *job.HeldError
		if !errors.As(err, &other) || other.Owner != a.Name() || !other.Since.Equal(began) || held.Err() != nil {
			t.Fatalf("%v, and the first: %v", err, context.Cause(held))
		}
		cut.cut.Store(true)
		time.Sleep(silentAfter)
		if !errors.Is(context.Cause(held), job.ErrLost) {
			t.Errorf("the first goes on without a connection: %v", context.Cause(held))
		}
		_, releaseB, err := job.Hold(ctx, second, "app", "redrive", b.Name())
		if err != nil {
			t.Fatal(err)
		}
		releaseB()
		if _, again, err := job.Hold(ctx, over(table), "app", "redrive", "c"); err != nil {
			t.Error(err)
		} else {
			again()
		}
	})
}

// A redrive is refused while another worker has the job, and runs after it.
func TestRedriveWaitsForItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer end()
		table := new(rows.Memory)
		first, second := over(table), over(table)
		box := deadletter.NewBox(second, "app")
		box.Exclusive(job.Exclusive(second, "app", job.Redrive, job.NewOwner(ctx, second).Name))
		ran := 0
		m := router.New()
		m.Handle("*#*", func(context.Context, *sluice.Record) error { ran++; return nil }, router.Name("r"), router.Redrive())
		rec := recordtest.New(recordtest.Spec{Keys: `{"pk":{"S":"a"}}`, Sequence: recordtest.Sequence(1), Shard: "shard"})
		if err := box.Park(ctx, &rec, sluice.Failure{Route: "r", Attempts: 1, First: errLost, Last: errLost}); err != nil {
			t.Fatal(err)
		}
		_, release, err := job.Hold(ctx, first, "app", job.Redrive, job.NewOwner(ctx, first).Name())
		if err != nil {
			t.Fatal(err)
		}
		var held *job.HeldError
		if _, err := box.RedriveAll(ctx, m, deadletter.Filter{}, deadletter.How{}); !errors.As(err, &held) || ran != 0 {
			t.Errorf("beside another: %v, and %d ran", err, ran)
		}
		release()
		if report, err := box.RedriveAll(ctx, m, deadletter.Filter{}, deadletter.How{}); err != nil || report.Done != 1 || ran != 1 {
			t.Errorf("after the other: %+v, %v", report, err)
		}
	})
}
