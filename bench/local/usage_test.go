//go:build unix

package local

import "testing"

func TestKibibytes(t *testing.T) {
	const status = "Name:\tdaemon\nVmHWM:\t   37100 kB\nVmRSS:\t   32400 kB\nThreads:\t9\n"
	if got, err := kibibytes(status, "VmRSS:"); err != nil || got != 32400*1024 {
		t.Errorf("%v, %v; want %d", got, err, 32400*1024)
	}
	if got, err := kibibytes(status, "VmSwap:"); err == nil {
		t.Errorf("a member that is not there is %v", got)
	}
}

func TestPercentile(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(i + 1)
	}
	for _, tt := range []struct {
		sorted []float64
		p      float64
		want   float64
	}{
		{hundred, 50, 50},
		{hundred, 99, 99},
		{hundred, 100, 100},
		{hundred[:10], 99, 10},
		{[]float64{3}, 0, 3},
		{[]float64{3}, 99, 3},
		{[]float64{1, 2, 4}, 50, 2},
		{[]float64{1, 2, 4, 8}, 50, 2},
	} {
		if got := Percentile(tt.sorted, tt.p); got != tt.want {
			t.Errorf("percentile %v of %d values: %v, want %v", tt.p, len(tt.sorted), got, tt.want)
		}
	}
	if got := Median([]float64{9, 1, 5}); got != 5 {
		t.Errorf("median %v, want 5: is the sample sorted?", got)
	}
}
