package opensearch

import (
	"testing"

	"github.com/sluicehq/sluice/internal/docrules"
)

// BenchmarkExactRequests counts the requests of changes that have one version, as
// changes within a few seconds do.
func BenchmarkExactRequests(b *testing.B) {
	for _, bm := range []struct {
		name      string
		changes   int // of each document
		processes int // that take turns
	}{
		{"create-update/one-process", 2, 1},
		{"create-update/two-processes", 2, 2},
		{"10-changes/one-process", 10, 1},
		{"10-changes/two-processes", 10, 2},
	} {
		b.Run(bm.name, func(b *testing.B) {
			c := &cluster{}
			sinks := []*Sink{c.sink(b, Options{Linger: 1}), c.sink(b, Options{Linger: 1})}
			changes := 0
			for b.Loop() {
				c.docs = map[string]stored{}
				sinks[0].recent, sinks[1].recent = recent{}, recent{}
				for n := range bm.changes {
					op := exact("a", n, false)
					op.Version = 1 << docrules.TieBits
					if err := sinks[n%bm.processes].Write(b.Context(), op); err != nil {
						b.Fatal(err)
					}
					changes++
				}
			}
			b.ReportMetric(float64(len(c.requests)+len(c.read))/float64(changes), "requests/change")
			b.ReportMetric(0, "ns/op") // of the stub
		})
	}
}
