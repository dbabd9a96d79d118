package dynamostate

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

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
		ctx := t.Context()
		table := new(rows.Memory)
		cut := &link{Table: table}
		first, second := over(cut), over(table)
		began := time.Now().Truncate(time.Second)
		held, release, err := job.Hold(ctx, first, "app", "redrive")
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		time.Sleep(time.Minute)
		_, _, err = job.Hold(ctx, second, "app", "redrive")
		all, shardsErr := second.Shards(ctx, job.Stream("app"))
		if shardsErr != nil || len(all) != 1 {
			t.Fatal(all, shardsErr)
		}
		var other *job.HeldError
		if !errors.As(err, &other) || other.Owner != all[0].Owner || !other.Since.Equal(began) || held.Err() != nil {
			t.Fatalf("%v, and the first: %v", err, context.Cause(held))
		}
		cut.cut.Store(true)
		time.Sleep(silentAfter)
		if !errors.Is(context.Cause(held), job.ErrLost) {
			t.Errorf("the first goes on without a connection: %v", context.Cause(held))
		}
		_, releaseB, err := job.Hold(ctx, second, "app", "redrive")
		if err != nil {
			t.Fatal(err)
		}
		releaseB()
		if _, again, err := job.Hold(ctx, over(table), "app", "redrive"); err != nil {
			t.Error(err)
		} else {
			again()
		}
	})
}

// A redrive is refused while another worker has the job, and runs after it.
func TestRedriveWaitsForItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		table := new(rows.Memory)
		first, second := over(table), over(table)
		box := deadletter.NewBox(second, "app")
		box.Exclusive(job.Exclusive(second, "app", job.Redrive))
		ran := 0
		m := router.New()
		m.Handle("*#*", func(context.Context, *sluice.Record) error { ran++; return nil }, router.Name("r"), router.Redrive())
		rec := recordtest.New(recordtest.Spec{Keys: `{"pk":{"S":"a"}}`, Sequence: recordtest.Sequence(1), Shard: "shard"})
		if err := box.Park(ctx, &rec, sluice.Failure{Route: "r", Attempts: 1, First: errLost, Last: errLost}); err != nil {
			t.Fatal(err)
		}
		_, release, err := job.Hold(ctx, first, "app", job.Redrive)
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

type failing struct {
	rows.Table
	on atomic.Bool
}

func (f *failing) Write(ctx context.Context, seen rows.Row, set map[string]types.AttributeValue) (rows.Row, error) {
	if f.on.Load() && strings.HasPrefix(seen.Partition, "shards#") {
		return rows.Row{}, errLost
	}
	return f.Table.Write(ctx, seen, set)
}

// The job is free some time after a redrive of a living daemon has ended, also if its
// release could not be stored.
func TestReleaseOfAJobThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		table := new(rows.Memory)
		f := &failing{Table: table}
		first, second := over(f), over(table)
		_, release, err := job.Hold(ctx, first, "app", job.Redrive)
		if err != nil {
			t.Fatal(err)
		}
		f.on.Store(true) // throttled
		release()
		f.on.Store(false)
		time.Sleep(time.Second)
		_, again, err := job.Hold(ctx, second, "app", job.Redrive)
		if err != nil {
			t.Fatalf("after the end of the first: %v", err)
		}
		again()
	})
}

// The same, if the request ends between the claim's write and its answer.
func TestClaimOfAJobWhoseRequestEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		table := new(rows.Memory)
		request, cancel := context.WithCancel(ctx)
		first, second := over(&hangup{Table: table, cancel: cancel}), over(table)
		if _, _, err := job.Hold(request, first, "app", job.Redrive); err == nil {
			t.Fatal("it has the job")
		}
		time.Sleep(time.Second)
		_, again, err := job.Hold(ctx, second, "app", job.Redrive)
		if err != nil {
			t.Fatalf("after the end of the first: %v", err)
		}
		again()
	})
}

type hangup struct {
	rows.Table
	cancel func()
}

func (h *hangup) Write(ctx context.Context, seen rows.Row, set map[string]types.AttributeValue) (rows.Row, error) {
	row, err := h.Table.Write(ctx, seen, set)
	if strings.HasPrefix(seen.Partition, "shards#") {
		h.cancel()
	}
	return row, err
}
