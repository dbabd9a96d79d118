//go:build integration

package snapshot

import (
	"context"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/sources/poller"
	"github.com/sluicehq/sluice/state/boltstate"
)

const endpointEnv = "SLUICE_TEST_DYNAMODB"

func localConfig() aws.Config {
	return aws.Config{
		Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
		BaseEndpoint: aws.String(os.Getenv(endpointEnv)),
	}
}

// localTable has a partition key of type S and a sort key of type N.
type localTable struct {
	t    *testing.T
	db   *dynamodb.Client
	name string
}

func newLocalTable(t *testing.T) localTable {
	t.Helper()
	if os.Getenv(endpointEnv) == "" {
		t.Fatalf("%s is not set: run make test", endpointEnv)
	}
	tb := localTable{t, dynamodb.NewFromConfig(localConfig()), localtest.Name("snapshot")}
	if _, err := tb.db.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: &tb.name, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String("sk"), AttributeType: types.ScalarAttributeTypeN},
			{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS},
		},
		KeySchema: []types.KeySchemaElement{
			{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}, {AttributeName: aws.String("sk"), KeyType: types.KeyTypeRange},
		},
		StreamSpecification: &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages},
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := tb.db.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &tb.name}); err != nil {
			t.Errorf("delete table: %v", err)
		}
	})
	return tb
}

func (tb localTable) key(i int) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: fmt.Sprintf("p<%d>", i%7)}, "sk": &types.AttributeValueMemberN{Value: strconv.Itoa(i)},
	}
}

func (tb localTable) put(i, version int) {
	it := tb.key(i)
	it["rev"] = &types.AttributeValueMemberN{Value: strconv.Itoa(version)}
	it["entityType"] = &types.AttributeValueMemberS{Value: "doc"}
	if _, err := tb.db.PutItem(context.Background(), &dynamodb.PutItemInput{TableName: &tb.name, Item: it}); err != nil {
		tb.t.Error(err)
	}
}

func (tb localTable) remove(i int) {
	if _, err := tb.db.DeleteItem(context.Background(), &dynamodb.DeleteItemInput{TableName: &tb.name, Key: tb.key(i)}); err != nil {
		tb.t.Error(err)
	}
}

// documents holds one version of each item and of each deletion, like an index with
// external versions.
type documents struct {
	mu  sync.Mutex
	all map[string]document
}

type document struct {
	version int64
	there   bool
}

func (d *documents) handle(_ context.Context, rec *sluice.Record) error {
	v, _ := rec.Image().Lookup("rev")
	version, _ := v.Int64()
	there := rec.EventName != sluice.Remove
	if !there {
		version++
	}
	k, _ := rec.Keys.Lookup("sk")
	d.mu.Lock()
	defer d.mu.Unlock()
	if was, ok := d.all[k.Str()]; !ok || version > was.version {
		d.all[k.Str()] = document{version, there}
	}
	return nil
}

func (d *documents) is(want map[string]int64) (wrong string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for k, version := range want {
		if got := d.all[k]; !got.there || got.version != version {
			return fmt.Sprintf("item %s is %+v, want version %d", k, got, version)
		}
	}
	for k, got := range d.all {
		if _, ok := want[k]; !ok && got.there {
			return fmt.Sprintf("item %s is there, in version %d: a ghost", k, got.version)
		}
	}
	return ""
}

// A table is written to all the time, and read by stream and backfill. In the end the
// documents equal the table: no stale, missing or deleted item.
func TestLocalBackfillBesideWrites(t *testing.T) {
	const items = 400
	tb := newLocalTable(t)
	var writers sync.WaitGroup
	for w := range 8 {
		writers.Go(func() {
			for i := w; i < items; i += 8 {
				tb.put(i, 1)
			}
		})
	}
	writers.Wait()

	store, err := boltstate.Open(filepath.Join(t.TempDir(), "state"), boltstate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	docs := &documents{all: map[string]document{}}
	r := router.New()
	r.Handle("doc#* doc#SNAPSHOT", docs.handle, router.Name("index"))
	group := flow.NewGroup(r)
	live, err := poller.New(localConfig(), r, poller.Options{Streams: []poller.Stream{{Table: tb.name}}, Store: store,
		Start: poller.Latest, Flow: flow.Options{Group: group}, BusyInterval: 10 * time.Millisecond, Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var running sync.WaitGroup
	running.Go(func() {
		if err := live.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	<-live.Opened()

	writing, stopWriting := context.WithCancel(ctx)
	versions := make([]int, items) // of what is there; 0 is nothing
	for w := range 4 {
		writers.Go(func() {
			next := 2 // versions grow over deletions
			for writing.Err() == nil {
				i := mathrand.IntN(items/4)*4 + w
				next += 2
				if mathrand.IntN(4) == 0 {
					tb.remove(i)
					versions[i] = -1
				} else {
					tb.put(i, next)
					versions[i] = next
				}
			}
		})
	}
	for range 3 { // each reads the table whole, and is stopped on the way
		stopped := 0
		for finished := false; !finished; stopped++ {
			part, end := context.WithCancel(ctx)
			var pages atomic.Int32
			s, err := New(localConfig(), r, Options{Table: tb.name, Store: store, Again: true, Flow: flow.Options{Group: group},
				Scan: ScanOptions{Segments: 5, PageItems: 7, ReadUnits: 100, Logger: quiet(), Hooks: ScanHooks{Scanned: func(Call) {
					if pages.Add(1) == 40 { // of about 60
						end()
					}
				}}}})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Run(part); err != nil {
				t.Fatal(err)
			}
			end()
			finished = s.Progress().Finished
		}
		if stopped < 2 {
			t.Error("the table was read without a stop")
		}
	}
	stopWriting()
	writers.Wait()

	want := map[string]int64{}
	for rec, err := range Scan(t.Context(), localConfig(), tb.name, ScanOptions{Segments: 3, Logger: quiet()}) {
		if err != nil {
			t.Fatal(err)
		}
		k, _ := rec.Keys.Lookup("sk")
		v, _ := rec.New.Lookup("rev")
		want[k.Str()], _ = v.Int64()
		if got := rec.New.Only("pk", "sk"); !rec.Keys.Equal(got) || rec.Table != tb.name {
			t.Errorf("keys %s of %s", rec.Keys.Raw(), rec.New.Raw())
		}
	}
	for i, version := range versions {
		if got := want[strconv.Itoa(i)]; version > 0 && got != int64(version) || version < 0 && got != 0 {
			t.Errorf("Scan says that item %d is of version %d, written was %d", i, got, version)
		}
	}
	localtest.Await(t, "the documents are those of the table", func() string { return docs.is(want) })
	stop()
	running.Wait()
	if err := store.Close(); err != nil {
		t.Error(err)
	}
	t.Logf("%d of %d items are left", len(want), items)
}
