//go:build integration

package poller

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/internal/streamsapi"
	"github.com/sluicehq/sluice/sources/poller/internal/lineage"
	"github.com/sluicehq/sluice/state"
)

// The service has an iterator at the sequence number with which a listing says
// that a shard begins, whether a record has that number or not, and also when
// the shard is empty.
func TestLocalBeginningOfAShard(t *testing.T) {
	localtest.OwnDynamoDB(t) // which the writes of others would have trim
	for name, records := range map[string][]int{"empty": nil, "with records": {1, 2, 3}} {
		t.Run(name, func(t *testing.T) {
			c, table := newTable(t, types.StreamViewTypeNewAndOldImages)
			mustChange(t, c, table, "a", records...)
			p, err := New(localConfig(), matcher(nil), testOptions(state.NewMemory(), table))
			if err != nil {
				t.Fatal(err)
			}
			arn, err := p.streamOf(t.Context(), Stream{Table: table}, false)
			if err != nil {
				t.Fatal(err)
			}
			l, err := newDiscovery(streamsapi.New(localConfig()), arn, time.Minute).list(t.Context())
			if err != nil || len(l.shards) != 1 || lineage.ShardCreated(l.shards[0].ID).IsZero() {
				t.Fatalf("%+v, %v", l.shards, err)
			}
			r := &reader{
				api: p.api, shard: Shard{Table: table, StreamARN: arn, ID: l.shards[0].ID}, timeout: time.Minute,
				origin: lineage.Beginning{First: l.shards[0].First}, // of unknown age
			}
			it, told, err := r.locate(t.Context())
			if err != nil || !told {
				t.Fatalf("told %v, %v", told, err)
			}
			body, err := p.api.GetRecords(t.Context(), it, 0)
			if err != nil {
				t.Fatal(err)
			}
			page, err := sluice.DecodeGetRecords(body, sluice.Source{StreamARN: arn})
			if err != nil || len(page.Records) != len(records) {
				t.Errorf("%d records, %v; want %d", len(page.Records), err, len(records))
			}
		})
	}
}

// DynamoDB Local says of the iterator of an empty shard that its records are
// trimmed, when another table was written to. A shard so young has lost nothing.
func TestLocalEmptyShardBesideWrites(t *testing.T) {
	c, table := newTable(t, types.StreamViewTypeNewAndOldImages)
	_, other := newTable(t, types.StreamViewTypeNewAndOldImages)
	polled := make(chan struct{}, 1)
	o := testOptions(state.NewMemory(), table)
	o.Hooks.Polled = func(Poll) {
		select {
		case polled <- struct{}{}:
		default:
		}
	}
	l := newLedger()
	p, stop := background(t, l.handle, o)
	defer stop()
	<-polled
	mustChange(t, c, other, "b", 1, 2)
	mustChange(t, c, table, "a", 1)
	l.wait(t, 1)
	if gaps := p.Gaps(); len(gaps) > 0 {
		t.Fatalf("gaps %v", gaps)
	}
	localtest.Await(t, "the poller is ready", func() string { return strings.Join(p.NotReady(), "; ") })
}
