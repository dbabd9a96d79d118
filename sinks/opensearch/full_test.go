package opensearch

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice/internal/localtest"
)

// A cluster refuses requests or items above its capacity. It gets fewer requests at a
// time, not smaller ones, and has every document in the end.
func TestBulksStayFullUnderLoad(t *testing.T) {
	if localtest.Elsewhere(t) { // TestRandomHistories has the race detector
		return
	}
	const (
		writers  = 160
		perBulk  = 20
		inFlight = 8
		capacity = 2 // requests at a time, while the cluster is slow
		calm     = 5 * time.Second
		slow     = 30 * time.Second
	)
	for _, of := range []string{"requests", "items"} {
		t.Run(of, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				loaded := func() bool { d := time.Since(start); return d >= calm && d < calm+slow }
				type phase struct{ requests, items, running, refused int }
				var phases [3]phase // calm, loaded with the limit settled, calm again
				at := func() *phase {
					switch d := time.Since(start); {
					case d < calm:
						return &phases[0]
					case d < calm+slow/2:
						return &phase{} // the limit is on its way
					case d < calm+slow:
						return &phases[1]
					}
					return &phases[2]
				}
				c := cluster{delay: 100 * time.Millisecond}
				over := map[int]bool{} // requests of which the items are refused
				c.request = func(n int, names []string) *reply {
					p := at()
					p.requests++
					p.items += len(names)
					p.running += c.running
					if !loaded() || c.running <= capacity {
						return nil
					}
					p.refused++
					if of == "requests" {
						return &reply{status: 429, body: fmt.Sprintf(errorBody, 429, "rejected_execution_exception")}
					}
					over[n] = true
					return nil
				}
				c.item = func(n int, _ string) *verdict {
					if over[n] {
						return &verdict{status: 429, typ: "rejected_execution_exception"}
					}
					return nil
				}
				s := c.sink(t, Options{MaxItems: perBulk, InFlight: inFlight, Timeout: time.Hour})
				var all sync.WaitGroup
				wrote := make([]int, writers)
				for w := range writers {
					all.Go(func() {
						for ; time.Since(start) < 2*calm+slow; wrote[w]++ {
							if err := s.Write(t.Context(), put("i", fmt.Sprint(w), fmt.Sprintf(`{"n":%d}`, wrote[w]))); err != nil {
								t.Error(err)
								return
							}
						}
					})
				}
				all.Wait()
				for w, n := range wrote {
					if got := c.docs[strings.Join([]string{"i", fmt.Sprint(w), ""}, "\x00")].body; got != fmt.Sprintf(`{"n":%d}`, n-1) {
						t.Errorf("writer %d: %s is there after %d writes", w, got, n)
					}
				}
				mean := func(n, of int) float64 { return float64(n) / float64(max(of, 1)) }
				var items, running [3]float64
				for i, p := range phases {
					items[i], running[i] = mean(p.items, p.requests), mean(p.running, p.requests)
					t.Logf("%s: %d requests, %d refused, %.1f items each, %.1f at a time",
						[]string{"before", "loaded", "after"}[i], p.requests, p.refused, items[i], running[i])
				}
				if phases[1].refused == 0 || phases[1].refused*2 > phases[1].requests {
					t.Errorf("%d of %d requests were refused", phases[1].refused, phases[1].requests)
				}
				if items[1] < 0.95*items[0] || items[2] < 0.9*items[0] {
					t.Errorf("items in a request: %.1f, want as many as before and after", items)
				}
				if running[1] > 1.5*capacity || running[1] > 0.6*running[0] || running[2] < 1.5*running[1] {
					t.Errorf("requests at a time: %.1f, want about %d in between", running, capacity)
				}
			})
		})
	}
}
