package streamtest

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/item"
)

func TestTimeToLive(t *testing.T) {
	p := newProbe(t)
	table := p.s.CreateTable("sessions", TableOptions{PartitionKey: "id"})
	table.Put(`{"id":{"S":"1"},"ttl":{"N":"1"}}`)
	want(t, "an item that is not there", table.Expire(`{"id":{"S":"2"}}`), "")
	table.Expire(`{"id":{"S":"1"}}`)
	table.Put(`{"id":{"S":"1"}}`)
	table.Delete(map[string]any{"id": "1"})
	page, err := p.page(p.must(p.iterator(table, table.Shards()[0].ID, horizon)), 0)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range page.Records {
		got = append(got, fmt.Sprint(r.EventName, " ", r.IsTTL()))
	}
	want(t, "records", got, "[INSERT false REMOVE true INSERT false REMOVE false]")
}

// The sizes of the records in AWS's documentation of Lambda events.
func TestDocumentedSizes(t *testing.T) {
	table := NewService(nil).CreateTable("sizes", TableOptions{PartitionKey: "Id"})
	table.Put(`{"Id":{"N":"101"},"Message":{"S":"New item!"}}`)
	table.Put(`{"Id":{"N":"101"},"Message":{"S":"This item has changed"}}`)
	table.Delete(`{"Id":{"N":"101"}}`)
	var got []int
	for _, r := range table.stream.shards[0].records {
		got = append(got, r.size)
	}
	want(t, "SizeBytes", got, "[26 59 38]")
}

// Plain Go values and DynamoDB JSON make the same items.
func TestPlainValues(t *testing.T) {
	type name string
	table := NewService(nil).CreateTable("orders", TableOptions{})
	seq := table.Put(map[string]any{
		"pk": "a\n\"", "i": 1, "u": uint8(2), "f": 1.5, "big": 1e21, "n": json.Number("12345678901234567890"), "t": true, "nil": nil, "b": []byte{0, 255},
		"m": map[string]any{"x": "y"}, "l": []any{1, "z", []any{}}, "named": name("v"), "f32": float32(0.1),
	})
	again := `{"pk":{"S":"a\n\""},"i":{"N":"1"},"u":{"N":"2"},"f":{"N":"1.5"},"big":{"N":"1000000000000000000000"},"n":{"N":"12345678901234567890"},"t":{"BOOL":true},` +
		`"nil":{"NULL":true},"b":{"B":"AP8="},"m":{"M":{"x":{"S":"y"}}},"l":{"L":[{"N":"1"},{"S":"z"},{"L":[]}]},"named":{"S":"v"},"f32":{"N":"0.1"}}`
	it, err := item.Parse([]byte(again))
	if err != nil {
		t.Fatal(err)
	}
	if seq == "" || table.Put(again) != "" || table.Put([]byte(again)) != "" || table.Put(it) != "" {
		t.Error("they differ")
	}
}

// A caller may change what it gave.
func TestItemsAreCopies(t *testing.T) {
	p := newProbe(t)
	table := p.s.CreateTable("orders", TableOptions{})
	text := []byte(`{"pk":{"S":"a"}}`)
	table.Put(text)
	copy(text, strings.Repeat("x", len(text)))
	want(t, "the record", p.letters(p.must(p.iterator(table, table.Shards()[0].ID, horizon))), "a")
	want(t, "the change", string(table.Changes()[0].Keys.Raw()), `{"pk":{"S":"a"}}`)
}

func TestMistakes(t *testing.T) {
	create := func(o TableOptions) func(*Service) { return func(s *Service) { s.CreateTable("orders", o) } }
	with := func(f func(*Table)) func(*Service) {
		return func(s *Service) { f(s.CreateTable("orders", TableOptions{SortKey: "sk"})) }
	}
	putting := func(v any) func(*Service) { return with(func(t *Table) { t.Put(v) }) }
	for _, c := range []struct {
		want string
		do   func(*Service)
	}{
		{`invalid name "a b"`, func(s *Service) { s.CreateTable("a b", TableOptions{}) }},
		{`table "orders" exists`, func(s *Service) { s.CreateTable("orders", TableOptions{}); s.CreateTable("orders", TableOptions{}) }},
		{`unknown StreamViewType "X"`, create(TableOptions{View: "X"})},
		{`Shards is -1`, create(TableOptions{Shards: -1})},
		{`both keys are "pk"`, create(TableOptions{SortKey: "pk"})},
		{`there is no table "orders"`, func(s *Service) { s.DeleteTable("orders") }},
		{`a sluice.Item or a map[string]any`, putting(struct{}{})},
		{`the item is absent`, putting(sluice.Item{})},
		{`not DynamoDB JSON`, putting(`{"pk":"a"}`)},
		{`key attribute "pk" is missing`, putting(`{"sk":{"S":"a"}}`)},
		{`key attribute "sk" is missing`, putting(`{"pk":{"S":"a"}}`)},
		{`key attribute "sk" is a BOOL`, putting(`{"pk":{"S":"a"},"sk":{"BOOL":true}}`)},
		{`key attribute "sk" is a S of length 0`, putting(`{"pk":{"S":"a"},"sk":{"S":""}}`)},
		{`key attribute "sk" is a N, but was a S`, with(func(t *Table) { t.Put(`{"pk":{"S":"a"},"sk":{"S":"b"}}`); t.Put(`{"pk":{"S":"a"},"sk":{"N":"1"}}`) })},
		{`attribute "x": a set that holds a member twice`, putting(`{"pk":{"S":"a"},"sk":{"S":"b"},"x":{"NS":["1","1.0"]}}`)},
		{`attribute "x": attribute "y": an empty set`, putting(`{"pk":{"S":"a"},"sk":{"S":"b"},"x":{"M":{"y":{"SS":[]}}}}`)},
		{`an attribute without a name`, putting(`{"pk":{"S":"a"},"sk":{"S":"b"},"":{"S":"c"}}`)},
		{`attribute "x": a value of type chan int`, putting(map[string]any{"pk": "a", "sk": "b", "x": make(chan int)})},
		{`attribute "pk": "a\xff" is not UTF-8`, putting(map[string]any{"pk": "a\xff", "sk": "b"})},
		{`attribute "x\xff": its name is not UTF-8`, putting(map[string]any{"pk": "a", "sk": "b", "x\xff": 1})},
		{`an item of 409607 bytes`, putting(map[string]any{"pk": "a", "sk": "b", "x": strings.Repeat("x", 400<<10)})},
		{`want the key attributes ["pk" "sk"] and no others`, with(func(t *Table) { t.Delete(`{"pk":{"S":"a"},"sk":{"S":"b"},"x":{"S":"c"}}`) })},
		{`table orders was deleted`, func(s *Service) {
			t := s.CreateTable("orders", TableOptions{})
			s.DeleteTable("orders")
			t.Put(`{"pk":{"S":"a"}}`)
		}},
		{`no open shard "x"`, with(func(t *Table) { t.Split("x") })},
		{`no open shard`, with(func(t *Table) { id := t.Shards()[0].ID; t.Roll(id); t.Roll(id) })},
		{`no stream that is enabled`, with(func(t *Table) { t.DisableStream(); t.DisableStream() })},
		{`has a stream already`, with(func(t *Table) { t.EnableStream("") })},
		{`holds 0 records, not 1`, with(func(t *Table) { t.Trim(t.Shards()[0].ID, 1) })},
		{`no shard "x"`, with(func(t *Table) { t.Hide("x", 1) })},
		{`Hide: table orders: -1 listings`, with(func(t *Table) { t.Hide(t.Shards()[0].ID, -1) })},
		{`the clock does not go back`, func(s *Service) { s.Advance(-1) }},
		{`Limits.PageRecords is -1`, func(s *Service) { s.SetLimits(Limits{PageRecords: -1}) }},
		{`a negative After`, func(s *Service) { s.Fail(Fault{Hang: true, After: -1}) }},
		{`Fault.Op is "GetRecord"; want one of DescribeStream, DescribeTable, GetRecords, GetShardIterator, ListStreams`, func(s *Service) { s.Fail(Fault{Op: "GetRecord", Hang: true}) }},
		{`a fault that does nothing`, func(s *Service) { s.Fail(Fault{Op: "GetRecords", Times: 2}) }},
		{`Fault.Empty and Records are of GetRecords, Loop is of DescribeStream`, func(s *Service) { s.Fail(Fault{Op: "DescribeStream", Empty: true}) }},
		{`Fault.Empty and Records are of GetRecords, Loop is of DescribeStream`, func(s *Service) { s.Fail(Fault{Op: "GetRecords", Loop: true}) }},
		{`Fault.Empty and Records are of GetRecords, Loop is of DescribeStream`, func(s *Service) { s.Fail(Fault{Empty: true, Loop: true}) }},
		{`Chaos.Hang is 2`, func(s *Service) { s.Chaos(Chaos{Hang: 2}) }},
		{`Chaos.Cut is NaN`, func(s *Service) { s.Chaos(Chaos{Cut: math.NaN()}) }},
	} {
		if msg := panics(c.do); !strings.Contains(msg, c.want) {
			t.Errorf("%q does not say %q", msg, c.want)
		}
	}
}
