//go:build unix

package main

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/sluicehq/sluice/bench/local"
)

// handled is how many records every route has done.
func handled(s local.Series) int {
	least := math.MaxInt
	for _, route := range routes {
		n := 0.0
		for _, outcome := range []string{"done", "skipped"} {
			n += s[fmt.Sprintf("sluice_records_total{outcome=%q,route=%q}", outcome, route)]
		}
		least = min(least, int(n))
	}
	return least
}

// parked is how many records became dead letters.
func parked(s local.Series) (n float64) {
	for name, v := range s {
		if strings.HasPrefix(name, `sluice_records_total{outcome="parked"`) {
			n += v
		}
	}
	return n
}

// sample is one look at the daemon: under load, or at a rest, when every record
// is handled.
type sample struct {
	at              time.Duration // since the first write
	rest            bool
	lag             int     // records
	rss, goroutines float64 // bytes, and their number
}

func (w *world) sample(at time.Duration, m local.Series) (sample, error) {
	s := sample{at: at, lag: max(0, int(w.written.Load())-handled(m)), rss: m["process_resident_memory_bytes"], goroutines: m["go_goroutines"]}
	if s.rss == 0 || s.goroutines == 0 {
		return s, errors.New("the daemon's metrics lack process_resident_memory_bytes or go_goroutines: the first is there on Linux only")
	}
	return s, nil
}

// memory is the median of the resident memory in the nth fifth of the time, from
// 0, under load.
func memory(samples []sample, whole time.Duration, n int) (float64, error) {
	var found []float64
	for _, s := range samples {
		if !s.rest && s.at >= whole*time.Duration(n)/5 && s.at < whole*time.Duration(n+1)/5 {
			found = append(found, s.rss)
		}
	}
	if len(found) == 0 {
		return 0, fmt.Errorf("the daemon did not answer once in fifth %d of the time", n+1)
	}
	return local.Median(found), nil
}

// grew reports whether a leak is likely: the value has grown by more than equal
// loads differ. A garbage collector lets memory swing, and idle connections come
// and go.
func grew(before, after, plus float64) bool { return after > before*1.25+plus }

// judge prints memory and goroutines, and tells which grew. Under load there is a
// goroutine for each record in hand, so that those at rests are compared.
func judge(samples []sample, whole time.Duration) (wrong []error) {
	var rests []float64
	for _, s := range samples {
		if s.rest {
			rests = append(rests, s.goroutines)
		}
	}
	if len(rests) < 2 {
		wrong = append(wrong, fmt.Errorf("the daemon came to a rest %d times, want twice", len(rests)))
	} else {
		early, end := rests[0], rests[len(rests)-1]
		fmt.Printf("soak goroutines_early %.0f\nsoak goroutines_end %.0f\n", early, end)
		if grew(early, end, 40) {
			wrong = append(wrong, fmt.Errorf("goroutines grew from %.0f to %.0f", early, end))
		}
	}
	second, err := memory(samples, whole, 1)
	if err != nil {
		return append(wrong, err)
	}
	last, err := memory(samples, whole, 4)
	if err != nil {
		return append(wrong, err)
	}
	fmt.Printf("soak rss_second_mb %.1f\nsoak rss_last_mb %.1f\n", second/1e6, last/1e6)
	if grew(second, last, 16e6) {
		wrong = append(wrong, fmt.Errorf("resident memory grew from %.1f to %.1f MB", second/1e6, last/1e6))
	}
	return wrong
}

// pace is how fast the writer may go, in writes a second.
type pace struct {
	rate float64
}

// next adapts the rate to the lag and to the writes of the last second. The rate
// rises by a tenth while the daemon follows and the writer reaches it. It falls at
// once when the daemon does not follow.
func (p *pace) next(lag, bound int, written float64) float64 {
	switch {
	case lag > bound:
		p.rate = max(min(p.rate, written)*0.7, writers*perCall)
	case written >= p.rate*0.8:
		p.rate = min(p.rate*1.1, mostRate)
	}
	return p.rate
}
