package sluice_test

import (
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/benchdata"
)

func BenchmarkDecodeEvent(b *testing.B) {
	for name, data := range map[string][]byte{
		"modify1500": benchdata.Event(benchdata.Modify, 100),
		"keys300":    benchdata.Event(benchdata.KeysOnly, 100),
		"large50k":   benchdata.Event(benchdata.Large, 20),
		"single":     benchdata.Event(benchdata.Modify, 1),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			records := 0
			for b.Loop() {
				page, err := sluice.DecodeEvent(data)
				if err != nil {
					b.Fatal(err)
				}
				records = len(page.Records)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*records), "ns/record")
		})
	}
}

func BenchmarkImage(b *testing.B) {
	image := sluice.DecodeRecord(benchdata.Modify(1)).New
	b.Run("json", func(b *testing.B) {
		doc := image.AppendJSON(nil)
		b.SetBytes(int64(len(doc)))
		b.ReportAllocs()
		for b.Loop() {
			doc = image.AppendJSON(doc[:0])
		}
	})
	b.Run("lookup", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, ok := image.Lookup("entityType"); !ok {
				b.Fatal("no entityType")
			}
		}
	})
}
