package projection

import (
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/benchdata"
	"github.com/sluicehq/sluice/item"
)

// newItem is the record of a new item of 1.44 KB.
func newItem(tb testing.TB) *sluice.Record {
	image, err := item.Parse(benchdata.Item(7, 2))
	if err != nil {
		tb.Fatal(err)
	}
	return &sluice.Record{EventName: sluice.Insert, Table: "t", Sequence: "8935985800002395190001559217", StreamARN: streamOf("2024-11-02T09:12:33.123"), Keys: image.Only("PK", "SK"), New: image}
}

func BenchmarkProject(b *testing.B) {
	modified := sluice.DecodeRecord(benchdata.Modify(7))
	modified.Sequence, modified.StreamARN = "8935985800002395190001559217", streamOf("2024-11-02T09:12:33.123")
	plain := Options{Index: "items", ID: "{PK}|{SK}", Version: BySequence()}
	shaped := plain
	shaped.Exclude = []string{"hash", "method.n", "ttl"}
	shaped.Rename = []Rename{{"order", "rank"}}
	shaped.Last = []Field{Constant("kind", "item"), Text("key", "{PK}|{SK}")}
	flat := shaped
	flat.Flatten = []Flatten{{"method", "method_"}}
	for _, bm := range []struct {
		name string
		o    Options
		rec  *sluice.Record
	}{
		{"insert1440", plain, newItem(b)},
		{"shaped1440", shaped, newItem(b)},
		{"flat1440", flat, newItem(b)},
		{"modify1500", plain, modified},
	} {
		p := must(b, nil, bm.o)
		b.Run(bm.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if ops, err := p.Project(bm.rec); err != nil || len(ops) != 1 {
					b.Fatal(ops, err)
				}
			}
		})
	}
	b.Run("json1440", func(b *testing.B) { // the body alone, nothing chosen
		rec := newItem(b)
		dst := make([]byte, 0, 2048)
		for b.Loop() {
			dst = rec.New.AppendJSON(dst[:0])
		}
	})
}
