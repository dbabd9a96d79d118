package dynamostate

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/holders"
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
		table := new(memory)
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
		table := new(memory)
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
		table := new(memory)
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
		table := new(memory)
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

// Who wants the job of a dead worker has it with its first try, also beside many others.
func TestHoldJobOfTheDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := new(memory)
		var beating sync.WaitGroup
		t.Cleanup(beating.Wait)
		for _, name := range []string{"a", "n", "zz"} {
			other := over(table)
			if _, err := other.Claim(t.Context(), stream, name, "", name); err != nil {
				t.Fatal(err)
			}
			beating.Go(func() {
				for t.Context().Err() == nil {
					_ = other.Heartbeat(t.Context(), name)
					time.Sleep(time.Second)
				}
			})
		}
		for range 10 {
			cut := &link{Table: table}
			_, release, err := job.Hold(t.Context(), over(cut), "app", "redrive")
			if err != nil {
				t.Fatal(err)
			}
			cut.cut.Store(true)
			_, next, err := job.Hold(t.Context(), over(table), "app", "redrive")
			if err != nil {
				t.Fatal(err)
			}
			next()
			release()
		}
	})
}

// A worker that is dead is silent, whatever others write to its row.
func TestTheDeadAreSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := new(memory)
		if _, err := over(table).Claim(t.Context(), stream, testShard, "", "dead"); err != nil {
			t.Fatal(err)
		}
		ctx, end := context.WithCancel(t.Context())
		var writing sync.WaitGroup
		writing.Go(func() {
			for ctx.Err() == nil {
				row, err := table.Get(t.Context(), memberKey("app", "dead"))
				if err == nil {
					_, err = table.Write(t.Context(), row, map[string]types.AttributeValue{})
				}
				if err != nil {
					t.Error(err)
				}
				time.Sleep(400 * time.Millisecond)
			}
		})
		all, err := over(table).Workers(t.Context(), "app")
		if err != nil || len(all) != 1 || all[0].State != holders.Silent {
			t.Errorf("%+v, %v; want a silent worker", all, err)
		}
		end()
		writing.Wait()
	})
}
