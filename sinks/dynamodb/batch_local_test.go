//go:build integration

package dynamodb_test

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsdynamodb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/internal/tally"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/sinks/dynamodb"
	"github.com/sluicehq/sluice/streamtest"
)

// newTable makes a table with a partition key pk (S) and a sort key sk of a
// type, and indexes by v (S), "by-v" of whole items and "keys-by-v" of their keys,
// and returns its name.
func newTable(t testing.TB, sk types.ScalarAttributeType) string {
	t.Helper()
	name := localtest.Name("sink")
	db := awsdynamodb.NewFromConfig(localtest.DynamoDB(t))
	_, err := db.CreateTable(t.Context(), &awsdynamodb.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS},
			{AttributeName: aws.String("sk"), AttributeType: sk},
			{AttributeName: aws.String("v"), AttributeType: types.ScalarAttributeTypeS},
		},
		KeySchema: []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}, {AttributeName: aws.String("sk"), KeyType: types.KeyTypeRange}},
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{{
			IndexName: aws.String("by-v"), KeySchema: []types.KeySchemaElement{{AttributeName: aws.String("v"), KeyType: types.KeyTypeHash}},
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
		}, {
			IndexName: aws.String("keys-by-v"), KeySchema: []types.KeySchemaElement{{AttributeName: aws.String("v"), KeyType: types.KeyTypeHash}},
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := db.DeleteTable(context.Background(), &awsdynamodb.DeleteTableInput{TableName: &name}); err != nil {
			t.Error(err)
		}
	})
	return name
}

func openLocal(t testing.TB, o dynamodb.Options) *dynamodb.Store {
	t.Helper()
	o.Timeout = cmp.Or(o.Timeout, localtest.Patience)
	st, err := dynamodb.New(localtest.DynamoDB(t), o)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// openThrough comes to the server through a proxy.
func openThrough(t testing.TB, p *streamtest.Proxy, o dynamodb.Options) *dynamodb.Store {
	t.Helper()
	cfg := localtest.DynamoDB(t)
	cfg.BaseEndpoint = aws.String(p.URL())
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	cfg.HTTPClient = &http.Client{Transport: transport}
	st, err := dynamodb.New(cfg, o)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func parse(t testing.TB, text string) sluice.Item {
	t.Helper()
	it, err := item.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return it
}

// count reads all items of a partition.
func count(t testing.TB, st *dynamodb.Store, q dynamo.Query) (n int) {
	t.Helper()
	for _, err := range dynamo.All(t.Context(), st.Query, q) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

// Values of all types are read as they were written.
func TestServerKeepsItemsAsTheyAre(t *testing.T) {
	st, table := openLocal(t, dynamodb.Options{}), newTable(t, types.ScalarAttributeTypeB)
	if err := st.Check(t.Context(), table); err != nil {
		t.Fatal(err)
	}
	it := parse(t, `{"pk":{"S":"a \"é😀\u2028 <&>"},"sk":{"B":"AP9//w=="},"n":{"N":"12345678901234567890123456789012345678"},"small":{"N":"-1.5E-130"},
		"ns":{"NS":["123456789012345678901234567890","1"]},"bs":{"BS":["AP9//w==","AA=="]},"ss":{"SS":["x"]},"e":{"S":""},"eb":{"B":""},
		"m":{"M":{"a.b":{"L":[{"BOOL":false},{"NULL":true},{"M":{}}]}}},"flag":{"BOOL":true}}`)
	key := it.Only("pk", "sk")
	if err := st.Put(t.Context(), table, it); err != nil {
		t.Fatal(err)
	}
	got, err := st.Get(t.Context(), table, key)
	if err != nil || !got.Equal(it) {
		t.Errorf("%s %v", got.Raw(), err)
	}
	if v, _ := got.Lookup("sk"); v.Kind() != item.B || string(v.Bytes()) != "\x00\xff\x7f\xff" {
		t.Errorf("sk is %s", v.Raw())
	}
	if v, _ := got.Lookup("n"); v.Str() != "12345678901234567890123456789012345678" {
		t.Errorf("n is %s", v.Raw())
	}
	if err := st.Delete(t.Context(), table, key); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got, err := st.Get(t.Context(), table, key); err != nil || got.Exists() {
			t.Errorf("%s %v", got.Raw(), err)
		}
		if err := st.Delete(t.Context(), table, key); err != nil { // of what is not there
			t.Error(err)
		}
	}
}

// To the server, 1 and 1.0 are one key.
func TestServerTakesRepeatedKeys(t *testing.T) {
	st, table := openLocal(t, dynamodb.Options{}), newTable(t, types.ScalarAttributeTypeN)
	its := []sluice.Item{}
	for i, n := range []string{"1", "1.0", "10e-1", "2", "1.00"} {
		its = append(its, item.Of(item.String("pk", "a"), item.Number("sk", n), item.Number("i", fmt.Sprint(i))))
	}
	if errs := st.PutAll(t.Context(), table, its); errs != nil {
		t.Fatal(errs)
	}
	got, err := st.Get(t.Context(), table, item.Of(item.String("pk", "a"), item.Number("sk", "1")))
	if i, _ := got.Lookup("i"); err != nil || i.Str() != "4" {
		t.Errorf("%s %v", got.Raw(), err)
	}
	if n := count(t, st, dynamo.Query{Table: table, Partition: item.String("pk", "a")}); n != 2 {
		t.Errorf("%d items", n)
	}
}

func TestServerQueries(t *testing.T) {
	st, table := openLocal(t, dynamodb.Options{}), newTable(t, types.ScalarAttributeTypeS)
	var its []sluice.Item
	for i := range 100 {
		its = append(its, item.Of(item.String("pk", "p"), item.String("sk", fmt.Sprintf("%c#%02d", 'a'+i%2, i)), item.String("v", fmt.Sprint("v", i%10)), item.String("status", "x"), item.String("a.b", "y")))
	}
	its = append(its, item.Of(item.String("pk", "q"), item.String("sk", "a#00")))
	if errs := st.PutAll(t.Context(), table, its); errs != nil {
		t.Fatal(errs)
	}
	p := item.String("pk", "p")
	for name, c := range map[string]struct {
		q           dynamo.Query
		n           int
		first, last string
	}{
		"a partition": {dynamo.Query{Partition: p}, 100, "a#00", "b#99"},
		"in pages":    {dynamo.Query{Partition: p, Limit: 7}, 100, "a#00", "b#99"},
		"backwards":   {dynamo.Query{Partition: p, Limit: 30, Descending: true}, 100, "b#99", "a#00"},
		"prefix":      {dynamo.Query{Partition: p, Sort: dynamo.Prefix("sk", "b#")}, 50, "b#01", "b#99"},
		"before":      {dynamo.Query{Partition: p, Sort: dynamo.Before(item.String("sk", "a#10"))}, 5, "a#00", "a#08"},
		"after":       {dynamo.Query{Partition: p, Sort: dynamo.After(item.String("sk", "b#95"))}, 2, "b#97", "b#99"},
		"between":     {dynamo.Query{Partition: p, Sort: dynamo.Between(item.String("sk", "a#98"), item.String("sk", "b#03"))}, 3, "a#98", "b#03"},
		"equal":       {dynamo.Query{Partition: p, Sort: dynamo.Sort{Op: "=", Key: item.String("sk", "a#98")}}, 1, "a#98", "a#98"},
		"none":        {dynamo.Query{Partition: item.String("pk", "none")}, 0, "", ""},
		"an index":    {dynamo.Query{Index: "by-v", Partition: item.String("v", "v3"), Limit: 4}, 10, "", ""},
		"whole items": {dynamo.Query{Index: "by-v", Partition: item.String("v", "v3"), Whole: true}, 10, "", ""},
		"some attributes, of reserved and dotted names": {dynamo.Query{Partition: p, Attributes: []string{"sk", "status", "a.b", "absent", "sk"}}, 100, "a#00", "b#99"},
	} {
		t.Run(name, func(t *testing.T) {
			c.q.Table = table
			var got []sluice.Item
			for it, err := range dynamo.All(t.Context(), st.Query, c.q) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, it)
				if want := len(c.q.Attributes); want > 0 && it.Len() != 3 {
					t.Fatalf("%s", it.Raw())
				}
			}
			if len(got) != c.n {
				t.Fatalf("%d items, want %d", len(got), c.n)
			}
			if c.first == "" {
				return
			}
			first, _ := got[0].Lookup("sk")
			last, _ := got[c.n-1].Lookup("sk")
			if first.Str() != c.first || last.Str() != c.last {
				t.Errorf("from %s to %s", first.Str(), last.Str())
			}
		})
	}
}

// An index that has not all of an item cannot say so in its items.
func TestServerRefusesWholeItemsOfAnIndexOfKeys(t *testing.T) {
	st, table := openLocal(t, dynamodb.Options{}), newTable(t, types.ScalarAttributeTypeS)
	_, err := st.Query(t.Context(), dynamo.Query{Table: table, Index: "keys-by-v", Partition: item.String("v", "v3"), Whole: true})
	if !sluice.IsPermanent(err) || !strings.Contains(err.Error(), "keys-by-v") {
		t.Errorf("%v: want a refusal of the index, for good", err)
	}
}

// Good writes succeed beside writes that the server always refuses.
func TestServerRefusesSomeWrites(t *testing.T) {
	st, table := openLocal(t, dynamodb.Options{}), newTable(t, types.ScalarAttributeTypeS)
	good := func(i int) sluice.Item {
		return item.Of(item.String("pk", "p"), item.String("sk", fmt.Sprint("s", i)))
	}
	var its []sluice.Item
	for i := range 60 {
		its = append(its, good(i))
	}
	its[7] = item.Of(item.String("pk", "p"), item.String("sk", ""))                                                                  // an empty key
	its[20] = item.Of(item.String("pk", "p"), item.Number("sk", "1"))                                                                // of another type
	its[40] = item.Of(item.String("pk", "p"), item.String("sk", "s"), item.String("x", strings.Repeat("x", 400<<10)))                // refused here
	its[41] = parse(t, `{"pk":{"S":"p"},"sk":{"S":"l"},"l":{"L":[`+strings.Repeat(`{"N":"123456789012345"},`, 60000)+`{"N":"1"}]}}`) // refused there
	for i, err := range st.PutAll(t.Context(), table, its) {
		bad := i == 7 || i == 20 || i == 40 || i == 41
		if sluice.IsPermanent(err) != bad || !bad && err != nil {
			t.Errorf("%d: %.500v", i, err)
		}
	}
	if n := count(t, st, dynamo.Query{Table: table, Partition: item.String("pk", "p")}); n != 56 {
		t.Errorf("%d items", n)
	}
	missing := localtest.Name("missing")
	for call, err := range map[string]error{
		"Check":  st.Check(t.Context(), table, missing),
		"Put":    st.Put(t.Context(), missing, good(1)),
		"Delete": st.Delete(t.Context(), missing, good(1)),
	} {
		if err == nil || sluice.IsPermanent(err) || !strings.Contains(err.Error(), "there is no such table") || !strings.Contains(err.Error(), missing) ||
			!strings.Contains(err.Error(), "at http://") || strings.Contains(err.Error(), table) {
			t.Errorf("%s: %v", call, err)
		}
	}
}

// 30 % of each request come back unprocessed, and some answers are lost. In the
// end all writes are there.
func TestServerGivesBackWrites(t *testing.T) {
	proxy := streamtest.NewProxy(t, *localtest.DynamoDB(t).BaseEndpoint)
	proxy.Fail(streamtest.ProxyFault{Op: "BatchWriteItem", Share: 0.02, Seed: 1, DropAnswer: true})
	proxy.Fail(streamtest.ProxyFault{Op: "BatchWriteItem", Share: 0.02, Seed: 2, Drop: true})
	proxy.Fail(streamtest.Unprocessed(0.3, 1))
	var counts tally.Tally
	st := openThrough(t, proxy, dynamodb.Options{Backoff: time.Millisecond, Attempts: 16, Metrics: &counts})
	table := newTable(t, types.ScalarAttributeTypeS)
	const all = 2000
	its := make([]sluice.Item, all)
	var odd []sluice.Item
	for i := range its {
		its[i] = item.Of(item.String("pk", fmt.Sprint("p", i%4)), item.String("sk", fmt.Sprintf("%05d", i)), item.Number("n", "1"))
		if i%2 == 1 {
			odd = append(odd, its[i].Only("pk", "sk"))
		}
	}
	if errs := st.PutAll(t.Context(), table, its); errs != nil {
		t.Fatalf("%.1000v", errs)
	}
	if units := counts.Sum("sluice_write_units_total"); units < all {
		t.Errorf("%v units were consumed by %d writes", units, all)
	}
	direct := openLocal(t, dynamodb.Options{})
	left := func() (n int) {
		for p := range 4 {
			n += count(t, direct, dynamo.Query{Table: table, Partition: item.String("pk", fmt.Sprint("p", p)), Attributes: []string{"sk"}})
		}
		return n
	}
	if n := left(); n != all {
		t.Errorf("%d of %d items", n, all)
	}
	if errs := st.DeleteAll(t.Context(), table, odd); errs != nil {
		t.Fatalf("%.1000v", errs)
	}
	if n := left(); n != all/2 {
		t.Errorf("%d items are left of %d", n, all/2)
	}
	if c := proxy.Counts(); c.Rewritten < 200 || c.Dropped == 0 || c.AnswersDropped == 0 {
		t.Errorf("the proxy did not fail enough: %+v", c)
	}
}
