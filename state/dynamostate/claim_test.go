package dynamostate

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice/internal/rows"
	"github.com/sluicehq/sluice/state"
)

// cutOff ends its user's context during a read or a write of a shard.
type cutOff struct {
	rows.Table
	end  context.CancelFunc
	read bool
}

func (c *cutOff) Get(ctx context.Context, k rows.Key) (rows.Row, error) {
	if c.read && strings.HasPrefix(k.Partition, "shards#") {
		c.end()
	}
	return c.Table.Get(ctx, k)
}

func (c *cutOff) Write(ctx context.Context, seen rows.Row, set map[string]types.AttributeValue) (rows.Row, error) {
	row, err := c.Table.Write(ctx, seen, set)
	if strings.HasPrefix(seen.Partition, "shards#") {
		c.end()
	}
	return row, errors.Join(err, ctx.Err())
}

// A worker that stops while a claim is written knows that it has the shard, and releases
// it. It claims nothing once it stops.
func TestClaimIsNotCutOff(t *testing.T) {
	for _, read := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		table := new(memory)
		sh, err := over(&cutOff{table, cancel, read}).Claim(ctx, stream, testShard, "", "me")
		if ctx.Err() == nil {
			t.Error("the context did not end")
		}
		row, readErr := table.Get(t.Context(), shardKey(stream, testShard))
		if readErr != nil || row.Exists() == read || (err != nil) != read || !read && sh.Owner != "me" {
			t.Errorf("a stop in a read %v: claim %+v, %v; stored %v, %v", read, sh, err, row, readErr)
		}
	}
}

// Who waits for shards hears of an end when a claim can take them, and not before.
func TestVacantAfterAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := new(memory)
		me, silent := over(table), over(table)
		if _, err := silent.Moves(t.Context(), "silent", false, nil); err != nil { // it takes shards
			t.Fatal(err)
		}
		if _, err := silent.Claim(t.Context(), stream, testShard, "", "silent"); err != nil {
			t.Fatal(err)
		}
		if err := silent.Heartbeat(t.Context(), "silent"); err != nil { // others see how many it has
			t.Fatal(err)
		}
		vacant, began := me.Vacant(), time.Now()
		for {
			_, err := me.Claim(t.Context(), stream, testShard, "", "me")
			over := false
			select {
			case <-vacant:
				over = true
			default:
			}
			if err != nil && !errors.Is(err, state.ErrHeld) || over != (err == nil) {
				t.Fatalf("claim: %v; told of an end: %v", err, over)
			}
			if over {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		if took := time.Since(began); took > silentAfter+10*time.Millisecond {
			t.Errorf("the owner counts as dead after %v, want %v", took, silentAfter)
		}
		select {
		case <-me.Vacant():
			t.Error("an end is told twice")
		default:
		}
	})
}

// A worker that is alone lists the others each listEvery, also after its own start.
func TestALoneWorkerListsSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := &meter{Table: new(memory), used: make(map[string]usage)}
		me := over(table)
		if _, err := me.Claim(t.Context(), stream, testShard, "", "me"); err != nil {
			t.Fatal(err)
		}
		table.drain()
		for began := time.Now(); time.Since(began) < movingFor; time.Sleep(250 * time.Millisecond) {
			if _, err := me.Moves(t.Context(), "me", false, func(state.Lease) float64 { return 0 }); err != nil {
				t.Fatal(err)
			}
			if err := me.Heartbeat(t.Context(), "me"); err != nil {
				t.Fatal(err)
			}
		}
		if lists := table.drain()["members"].reads; lists > float64(movingFor/listEvery) {
			t.Errorf("%.0f lists in %v", lists, movingFor)
		}
	})
}

// Who waits for shards hears of an offer with its next heartbeat.
func TestVacantAfterAnOffer(t *testing.T) {
	table := new(memory)
	giver, taker := over(table), over(table)
	for _, s := range []*Store{giver, taker} {
		if _, err := s.Claim(t.Context(), stream, s.members.store, "", s.members.store); err != nil {
			t.Fatal(err)
		}
	}
	name, vacant := taker.members.store, taker.Vacant()
	o := giver.members.watch(stream.Application)
	o.mu.Lock()
	err := giver.members.list(t.Context(), o, stream.Application)
	if err == nil {
		err = giver.members.postOffers(t.Context(), o.seen[name], leases(giver.leasesOf(stream.Application, giver.members.store)))
	}
	o.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	if err := taker.Heartbeat(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	select {
	case <-vacant:
	default:
		t.Error("an offer is not told")
	}
}
