package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/benchdata"
)

const tableARN = "arn:aws:dynamodb:eu-west-1:123456789012:table/orders"

func scanSource(keys ...string) ScanSource {
	return ScanSource{TableARN: tableARN, TableID: "id-1", Region: "eu-west-1", Keys: keys}
}

func decodeScan(t *testing.T, data string, src ScanSource) ScanPage {
	t.Helper()
	page, err := DecodeScan([]byte(data), src)
	if err != nil {
		t.Fatal(err)
	}
	return page
}

func TestDecodeScan(t *testing.T) {
	page := decodeScan(t, ` {"ConsumedCapacity":{"CapacityUnits":128.5,"TableName":"orders"},"Count":2,
		"Items":[ {"n":{"N":"1"},"pk":{"S":"a\u0062<"},"sk":{"N":"7"}} , {"pk":{"S":"b"},"sk":{"N":"8"},"deep":{"M":{"x":{"L":[{"NULL":true}]}}}}],
		"LastEvaluatedKey":{"pk":{"S":"b"},"sk":{"N":"8"}},"ScannedCount":9,"later":[1]} `, scanSource("pk", "sk"))
	if page.Units != 128.5 || page.Scanned != 9 || string(page.Last.Raw()) != `{"pk":{"S":"b"},"sk":{"N":"8"}}` || len(page.Records) != 2 {
		t.Fatalf("%v units, last %s, %d records", page.Units, page.Last.Raw(), len(page.Records))
	}
	rec := &page.Records[0]
	if rec.Err() != nil || rec.EventName != sluice.Snapshot || rec.Origin != sluice.Backfilled || rec.Table != "orders" ||
		rec.StreamARN != tableARN || rec.Region != "eu-west-1" || rec.Sequence != "" || !rec.Created.IsZero() || rec.Old.Exists() {
		t.Errorf("%+v, %v", rec, rec.Err())
	}
	if k, n := string(rec.Keys.Raw()), string(rec.New.Raw()); k != `{"pk":{"S":"a\u0062<"},"sk":{"N":"7"}}` || n != `{"n":{"N":"1"},"pk":{"S":"a\u0062<"},"sk":{"N":"7"}}` {
		t.Errorf("keys %s, image %s", k, n)
	}
	// Its parked bytes decode to the same record.
	again := sluice.DecodeRecord(bytes.Clone(rec.Raw()))
	if again.Err() != nil || summary(again) != summary(rec) {
		t.Errorf("its text is %s\nwhich is   %s\nrather than %s (%v)", rec.Raw(), summary(again), summary(rec), again.Err())
	}

	end := decodeScan(t, `{"Items":[],"Count":0}`, scanSource("pk"))
	if end.Last.Exists() || len(end.Records) != 0 || end.Units != 0 {
		t.Errorf("%+v", end)
	}
}

// An item's id is the same in every answer, and no other item's.
func TestDecodeScanEventIDs(t *testing.T) {
	id := func(src ScanSource, it string) string {
		return decodeScan(t, `{"Items":[`+it+`]}`, src).Records[0].EventID
	}
	src := scanSource("a", "b")
	want := id(src, `{"a":{"S":"x<"},"b":{"B":"AAEC"},"v":{"N":"1"}}`)
	if len(want) != 32 {
		t.Errorf("id %q", want)
	}
	if got := id(src, ` { "v":{"N":"2"},"b": {"B":"AAEC"} ,"a":{"S":"x\u003c"}}`); got != want {
		t.Errorf("another version of the item has the id %s, want %s", got, want)
	}
	seen := map[string]string{want: "the first"}
	other, recreated := src, src
	other.TableARN, recreated.TableID = tableARN+"2", "id-2"
	for name, got := range map[string]string{
		"other sort key":  id(src, `{"a":{"S":"x<"},"b":{"B":"AAED"}}`),
		"other type":      id(src, `{"a":{"S":"x<"},"b":{"S":"AAEC"}}`),
		"moved border":    id(src, `{"a":{"S":"x<A"},"b":{"B":"AEC="}}`),
		"other table":     id(other, `{"a":{"S":"x<"},"b":{"B":"AAEC"}}`),
		"recreated table": id(recreated, `{"a":{"S":"x<"},"b":{"B":"AAEC"}}`),
		"number":          id(src, `{"a":{"S":"x<"},"b":{"N":"1"}}`),
		"other number":    id(src, `{"a":{"S":"x<"},"b":{"N":"2"}}`),
	} {
		if first, ok := seen[got]; ok {
			t.Errorf("%s has the id of %s", name, first)
		}
		seen[got] = name
	}
}

func TestDecodeScanRefuses(t *testing.T) {
	const it = `{"pk":{"S":"a"}}`
	for data, want := range map[string]string{
		``:                                     "it is empty",
		`[]`:                                   "a bare array",
		`{}`:                                   "no Items",
		`{"Items":null}`:                       "not an array",
		`{"Items":[` + it:                      "unexpected end",
		`{"Items":[` + it + `,]}`:              "an item is expected",
		`{"Items":[` + it + ` ` + it + `]}`:    "missing comma",
		`{"Items":[1]}`:                        "an item is expected",
		`{"Items":[` + it + `],"Count":2}`:     "holds 1 items, but says 2",
		`{"Items":[],"Items":[]}`:              "duplicate member",
		`{"Items":[]} x`:                       "data after",
		`{"Items":[{"x":{"S":"a"}}]}`:          "is it another table?",
		`{"Items":[],"LastEvaluatedKey":{}}`:   "LastEvaluatedKey is empty",
		`{"Items":[],"LastEvaluatedKey":[]}`:   "LastEvaluatedKey",
		`{"Items":[],"ConsumedCapacity":"x"}`:  "ConsumedCapacity",
		`{"Items":[{"pk":{"S":"a"}`:            "unexpected end",
		`{"Table":{"TableName":"t"}}`:          "no Items",
		`{"Items":[],"LastEvaluatedKey":{"a"}`: "LastEvaluatedKey",
	} {
		page, err := DecodeScan([]byte(data), scanSource("pk"))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "offset") {
			t.Errorf("%s: %v, want %q", data, err, want)
		}
		if page.Records != nil || page.Last.Exists() {
			t.Errorf("%s: with the error came %+v", data, page)
		}
	}
}

// An invalid item hides no other item, and is also invalid when read again.
func TestDecodeScanBadItem(t *testing.T) {
	page := decodeScan(t, `{"Items":[{"pk":{"S":"a"}},{"pk":{"S":"b"},"v":{"B":"?"}},{"pk":{"S":"c"}}],"Count":3}`, scanSource("pk"))
	for i, rec := range page.Records {
		if bad := i == 1; (rec.Err() != nil) != bad || bad && !sluice.IsPermanent(rec.Err()) {
			t.Errorf("record %d: %v", i, rec.Err())
		}
	}
	bad := page.Records[1]
	if again := sluice.DecodeRecord(bad.Raw()); again.Err() == nil || bad.EventID == "" || again.EventID != bad.EventID {
		t.Errorf("decoded again: %v, id %s", again.Err(), again.EventID)
	}
}

// For any answer, each record equals its text.
func FuzzDecodeScan(f *testing.F) {
	for _, data := range []string{
		`{"Items":[{"pk":{"S":"a"}},{"pk":{"S":"b"},"v":{"B":"?"}}],"Count":2,"LastEvaluatedKey":{"pk":{"S":"b"}}}`,
		`{"ConsumedCapacity":{"CapacityUnits":0.5},"Items":[{"pk":{"N":"1"},"l":{"L":[{"M":{}}]}}]}`,
		`{"Items":[]}`, `{"Items":[{}]}`, `{"Items":[{"pk":{"S":"\ud800"}}]}`,
	} {
		f.Add([]byte(data))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		page, err := DecodeScan(bytes.Clone(data), scanSource("pk"))
		if err != nil {
			return
		}
		if !json.Valid(data) {
			for i := range page.Records {
				if page.Records[i].Err() != nil {
					return // of an item that is no JSON only the end is looked for
				}
			}
			t.Fatalf("decoded text that is not JSON: %q", data)
		}
		for i := range page.Records {
			rec := &page.Records[i]
			again := sluice.DecodeRecord(rec.Raw())
			if (again.Err() == nil) != (rec.Err() == nil) || summary(again) != summary(rec) {
				t.Fatalf("%s\nis    %s (%v)\nagain %s (%v)", rec.Raw(), summary(rec), rec.Err(), summary(again), again.Err())
			}
			if rec.Err() == nil && !rec.Keys.Equal(rec.New.Only("pk")) {
				t.Fatalf("keys %s of %s", rec.Keys.Raw(), rec.New.Raw())
			}
		}
	})
}

func scanAnswer(n int) []byte {
	var items [][]byte
	for i := range n {
		items = append(items, benchdata.Item(i, 1))
	}
	return fmt.Appendf(nil, `{"Count":%d,"Items":[%s],"ScannedCount":%d}`, n, bytes.Join(items, []byte(",")), n)
}

func BenchmarkDecodeScan(b *testing.B) {
	const n = 700 // about 1 MB
	data, src := scanAnswer(n), scanSource("PK", "SK")
	b.ReportAllocs()
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		page, err := DecodeScan(data, src)
		if err != nil || len(page.Records) != n {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/item")
}

// summary is all that a record of a scan says.
func summary(r *sluice.Record) string {
	return fmt.Sprintf("%s %s %s %s %s %d %s %s", r.EventID, r.EventName, r.Table, r.StreamARN, r.Region, r.SizeBytes, r.Keys.Raw(), r.New.Raw())
}
