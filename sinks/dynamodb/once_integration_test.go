//go:build integration

package dynamodb_test

import (
	"fmt"
	"math"
	mathrand "math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsdynamodb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/sinks/dynamodb"
)

// table makes a table with the key "pk".
func pkTable(t *testing.T, db *awsdynamodb.Client) string {
	t.Helper()
	name := localtest.Name("test")
	if _, err := db.CreateTable(t.Context(), &awsdynamodb.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}},
	}); err != nil {
		t.Fatal(err)
	}
	return name
}

func keyed(format string, args ...any) sluice.Item {
	return item.Of(item.String("pk", fmt.Sprintf(format, args...)))
}

type world struct {
	db                *awsdynamodb.Client
	store             *dynamodb.Store
	counters, markers string
}

func newWorld(t *testing.T) *world {
	cfg := localtest.DynamoDB(t)
	store, err := dynamodb.New(cfg, dynamodb.Options{Timeout: localtest.Patience})
	if err != nil {
		t.Fatal(err)
	}
	db := awsdynamodb.NewFromConfig(cfg)
	return &world{db, store, pkTable(t, db), pkTable(t, db)}
}

func (w *world) put(t *testing.T, table string, it sluice.Item) {
	t.Helper()
	if err := w.store.Write(t.Context(), dynamo.Put(table, it)); err != nil {
		t.Fatal(err)
	}
}

// number is "" when there is none.
func (w *world) number(t *testing.T, key sluice.Item, name string) string {
	t.Helper()
	it, err := w.store.Get(t.Context(), w.counters, key)
	if err != nil {
		t.Fatal(err)
	}
	v, _ := it.Lookup(name)
	return v.Str()
}

func (w *world) unit(id string, adds ...dynamo.Add) dynamo.Unit {
	for i := range adds {
		adds[i].Table = w.counters
	}
	return dynamo.Unit{Marker: dynamo.NewMarker(w.markers, id, time.Now().Add(72*time.Hour)), Adds: adds}
}

// Increments, each asked for three times, and many at a time.
func TestServerCountsExactly(t *testing.T) {
	w := newWorld(t)
	const increments, counters = 400, 5
	for i := range counters {
		w.put(t, w.counters, keyed("%d", i))
	}
	var ids []int
	for i := range increments {
		ids = append(ids, i, i, i)
	}
	mathrand.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	work := make(chan int, len(ids))
	for _, id := range ids {
		work <- id
	}
	close(work)
	var wg sync.WaitGroup
	var mu sync.Mutex
	first := map[int]int{}
	for range 64 {
		wg.Go(func() {
			for id := range work {
				got, err := w.store.Once(t.Context(), w.unit(fmt.Sprint(id),
					dynamo.Add{Key: keyed("%d", id%counters), By: map[string]int64{"n": 1, "sum": int64(id)}}))
				if err != nil {
					t.Error(err)
				} else if !got.Before {
					mu.Lock()
					first[id]++
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	for i := range counters {
		sum := 0
		for id := i; id < increments; id += counters {
			sum += id
		}
		if n, s := w.number(t, keyed("%d", i), "n"), w.number(t, keyed("%d", i), "sum"); n != fmt.Sprint(increments/counters) || s != fmt.Sprint(sum) {
			t.Errorf("counter %d: %s and %s, want %d and %d", i, n, s, increments/counters, sum)
		}
	}
	for id := range increments {
		if first[id] != 1 {
			t.Errorf("unit %d was first %d times", id, first[id])
		}
	}
}

// The server's reason for one unit does not fail the others.
func TestServerReasons(t *testing.T) {
	w := newWorld(t)
	w.put(t, w.counters, keyed("a"))
	w.put(t, w.counters, item.Of(item.String("pk", "text"), item.String("s", "text")))
	w.put(t, w.counters, item.Of(item.String("pk", "state"), item.String("s", "open")))
	one := func(key string) dynamo.Add { return dynamo.Add{Key: keyed("%s", key), By: map[string]int64{"n": 1}} }
	if got, err := w.store.Once(t.Context(), w.unit("before", one("a"))); err != nil || got.Before {
		t.Fatal(got, err)
	}
	text := one("text")
	text.By = map[string]int64{"s": 1}
	made := one("made")
	made.Create = true
	state := func(old string) dynamo.Op {
		return dynamo.Update(w.counters, keyed("state"), "SET #s = :new").If("#s = :old").Name("#s", "s").Value(":old", old).Value(":new", "closed")
	}
	with := func(u dynamo.Unit, ops ...dynamo.Op) dynamo.Unit { u.Ops = ops; return u }
	huge := dynamo.NewMarker(w.markers, "huge", time.Now())
	huge.Item = item.Of(item.String("pk", "huge"), item.String("x", strings.Repeat("x", 410_000)))
	for name, c := range map[string]struct {
		unit  dynamo.Unit
		check func(dynamo.Applied, error) bool
	}{
		"before":  {w.unit("before", one("a")), func(a dynamo.Applied, err error) bool { return err == nil && a.Before }},
		"counted": {w.unit("counted", one("a")), func(a dynamo.Applied, err error) bool { return err == nil && !a.Before && a.Dropped == nil }},
		"deleted": {w.unit("deleted", one("a"), one("gone")), func(a dynamo.Applied, err error) bool { return err == nil && fmt.Sprint(a.Dropped) == "[1]" }},
		"text":    {w.unit("text", text), func(_ dynamo.Applied, err error) bool { return sluice.IsPermanent(err) }},
		"number":  {w.unit("number", one("text")), func(_ dynamo.Applied, err error) bool { return err == nil }},
		"made":    {w.unit("made", made), func(a dynamo.Applied, err error) bool { return err == nil && a.Dropped == nil }},
		"closed":  {with(w.unit("closed", one("a")), state("closed")), func(_ dynamo.Applied, err error) bool { return dynamo.IsCondition(err) }},
		"huge":    {dynamo.Unit{Marker: huge}, func(_ dynamo.Applied, err error) bool { return sluice.IsPermanent(err) }},
		"syntax":  {with(w.unit("syntax", one("a")), dynamo.Update(w.counters, keyed("x"), "SETTLE")), func(_ dynamo.Applied, err error) bool { return sluice.IsPermanent(err) }},
		"key":     {with(w.unit("key", one("a")), dynamo.Delete(w.counters, item.Of(item.Number("pk", "1")))), func(_ dynamo.Applied, err error) bool { return sluice.IsPermanent(err) }},
		"table":   {with(w.unit("table", one("a")), dynamo.Delete(localtest.Name("missing"), keyed("x"))), func(_ dynamo.Applied, err error) bool { return err != nil && !sluice.IsPermanent(err) }},
		"large":   {w.unit("large", dynamo.Add{Key: keyed("a"), By: map[string]int64{"large": math.MaxInt64}}), func(_ dynamo.Applied, err error) bool { return err == nil }},
		"larger":  {w.unit("larger", dynamo.Add{Key: keyed("a"), By: map[string]int64{"large": math.MaxInt64}}), func(_ dynamo.Applied, err error) bool { return err == nil }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, err := w.store.Once(t.Context(), c.unit); !c.check(got, err) {
				t.Errorf("%+v %v", got, err)
			}
		})
	}
}

func TestServerDoesNotBringBackWhatWasDeleted(t *testing.T) {
	w := newWorld(t)
	w.put(t, w.counters, keyed("parent"))
	minus := dynamo.Add{Key: keyed("parent"), By: map[string]int64{"n": -1}}
	if got, err := w.store.Once(t.Context(), w.unit("1", minus)); err != nil || got.Dropped != nil {
		t.Fatal(got, err)
	}
	if err := w.store.Write(t.Context(), dynamo.Delete(w.counters, keyed("parent")).If("attribute_exists(pk)")); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if got, err := w.store.Once(t.Context(), w.unit(fmt.Sprint("late", i), minus)); err != nil || len(got.Dropped) != 1 {
				t.Error(got, err)
			}
		})
	}
	wg.Wait()
	if it, err := w.store.Get(t.Context(), w.counters, keyed("parent")); err != nil || it.Exists() {
		t.Errorf("the parent is back: %s %v", it.Raw(), err)
	}
}

// The Else of a dropped Add is written once, with the marker.
func TestServerWritesInPlaceOfAnAdd(t *testing.T) {
	w := newWorld(t)
	w.put(t, w.counters, keyed("there"))
	note := func(key string) dynamo.Op {
		return dynamo.Update(w.counters, keyed("note %s", key), "SET #n = :n").Name("#n", "n").Value(":n", 7)
	}
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() {
			gone, there := fmt.Sprint("gone", i), fmt.Sprint("there", i)
			u := w.unit(fmt.Sprint("else", i),
				dynamo.Add{Key: keyed("%s", gone), By: map[string]int64{"n": 1}, Else: note(gone)},
				dynamo.Add{Key: keyed("there"), By: map[string]int64{"n": 1}, Else: note(there)})
			for again := range 2 {
				got, err := w.store.Once(t.Context(), u)
				if err != nil || got.Before != (again == 1) || again == 0 && fmt.Sprint(got.Dropped) != "[0]" {
					t.Error(got, err)
				}
			}
			for key, want := range map[string]bool{gone: true, there: false} {
				if it, err := w.store.Get(t.Context(), w.counters, keyed("note %s", key)); err != nil || it.Exists() != want {
					t.Errorf("%s: %s %v", key, it.Raw(), err)
				}
			}
		})
	}
	wg.Wait()
}

func TestServerWrites(t *testing.T) {
	w := newWorld(t)
	it := item.Of(item.String("pk", "k"), item.Number("n", "12345678901234567890123456789012345678"), item.Binary("b", []byte{0, 0xff, 0x7f, 0xff}))
	put := dynamo.Put(w.counters, it).If("attribute_not_exists(pk)")
	if err := w.store.Write(t.Context(), put); err != nil {
		t.Fatal(err)
	}
	err := w.store.Write(t.Context(), put)
	c, ok := err.(*dynamo.ConditionError) //nolint:errorlint // it is to be just that
	if !ok || !c.Items[0].Equal(it) {
		t.Errorf("%v", err)
	}
	err = w.store.Transact(t.Context(), dynamo.Check(w.counters, keyed("x"), "attribute_exists(pk)"), put, dynamo.Put(w.markers, keyed("m")))
	c, ok = err.(*dynamo.ConditionError) //nolint:errorlint // it is to be just that
	if !ok || fmt.Sprint(c.Failed) != "[0 1]" || c.Items[0].Exists() || !c.Items[1].Equal(it) {
		t.Errorf("%v", err)
	}
	if it, err := w.store.Get(t.Context(), w.markers, keyed("m")); err != nil || it.Exists() {
		t.Errorf("half a transaction: %s %v", it.Raw(), err)
	}
	value, _ := it.Lookup("b")
	if err := w.store.Transact(t.Context(),
		dynamo.Update(w.counters, keyed("k"), "SET #s = :s, #b = :b").Name("#s", "s").Name("#b", "b2").Value(":s", dynamo.Strings{"x", "y"}).Value(":b", value).If("attribute_exists(pk)"),
		dynamo.Put(w.markers, keyed("m"))); err != nil {
		t.Fatal(err)
	}
	got, err := w.store.Get(t.Context(), w.counters, keyed("k"))
	want, _ := item.Parse([]byte(`{"pk":{"S":"k"},"n":{"N":"12345678901234567890123456789012345678"},"b":{"B":"AP9//w=="},"b2":{"B":"AP9//w=="},"s":{"SS":["y","x"]}}`))
	if err != nil || !got.Equal(want) {
		t.Errorf("%s %v", got.Raw(), err)
	}
	for call, err := range map[string]error{
		"Write":    w.store.Write(t.Context(), dynamo.Update(w.counters, keyed("k"), "SET b :x").Value(":x", 1)),
		"Transact": w.store.Transact(t.Context(), dynamo.Update(w.counters, keyed("k"), "ADD s :x").Value(":x", 1)),
		"twice":    w.store.Transact(t.Context(), dynamo.Put(w.markers, keyed("m")), dynamo.Put(w.markers, keyed("m"))),
	} {
		if !sluice.IsPermanent(err) {
			t.Errorf("%s: %v", call, err)
		}
	}
}
