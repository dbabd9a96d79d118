package snapshot

import (
	"context"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice/internal/localtest"
)

// All segments together use units at the configured rate, for any page size and share
// of throttled calls.
func TestBudget(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	for name, test := range map[string]struct {
		capacity int64
		o        ScanOptions
		rate     float64
	}{
		"a quarter of what is provisioned": {capacity: 80, rate: 20},
		"a share":                          {capacity: 80, o: ScanOptions{Share: 0.5, Segments: 4}, rate: 40},
		"units":                            {capacity: 80, o: ScanOptions{ReadUnits: 5, Segments: 3}, rate: 5},
		"less than an item a second":       {capacity: 1, o: ScanOptions{Share: 1}, rate: 1},
		"large pages":                      {o: ScanOptions{ReadUnits: 300, Segments: 5}, rate: 300},
		"on demand":                        {rate: 1000},
	} {
		for _, throttled := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					st := newStub(600)
					st.capacity, st.perItem, st.pageSize, st.bytes = test.capacity, 2, 100, 600*2*4096
					if throttled {
						st.fail = func(op string, nth int) string {
							if op == "Scan" && nth%3 == 0 {
								return "ProvisionedThroughputExceededException"
							}
							return ""
						}
					}
					start := time.Now()
					var units float64
					var refused int
					var mu sync.Mutex
					test.o.Logger = quiet()
					test.o.Hooks.Scanned = func(c Call) {
						mu.Lock()
						defer mu.Unlock()
						units += c.Units
						if c.Throttled {
							refused++
						}
					}
					n := 0
					for _, err := range Scan(t.Context(), st.config(), tableName, test.o) {
						if err != nil {
							t.Fatal(err)
						}
						n++
					}
					took := time.Since(start).Seconds()
					if n != 600 || units != 1200 {
						t.Errorf("%d items, %v units", n, units)
					}
					if (refused > 0) != throttled {
						t.Errorf("%d calls were throttled", refused)
					}
					// A second's worth is there at once, and the last page is not waited for.
					least, most := (1200-200)/test.rate-1, 1200/test.rate+1
					if took < least || !throttled && took > most {
						t.Errorf("1200 units at %v a second took %.1f s, want %.1f to %.1f", test.rate, took, least, most)
					}
					if test.rate < wholePage { // a page is worth no more than a second
						for _, c := range st.scans()[1:] {
							if worth := float64(c.n) * st.perItem; worth > max(test.rate, st.perItem) && c.in.Limit > 1 {
								t.Errorf("a page of %v units at %v a second", worth, test.rate)
								break
							}
						}
					}
				})
			})
		}
	}
}

// Calls that are throttled are repeated less and less often.
func TestThrottlesBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStub(5)
		st.fail = func(op string, nth int) string {
			if op == "Scan" && nth < 12 {
				return "ThrottlingException"
			}
			return ""
		}
		n := 0
		for _, err := range Scan(t.Context(), st.config(), tableName, ScanOptions{Logger: quiet(), Patience: time.Hour}) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		if calls := st.scans(); n != 5 || len(calls) != 13 || calls[12].at.Sub(calls[0].at) < 5*time.Second {
			t.Errorf("%d items, %d calls within %v", n, len(calls), calls[len(calls)-1].at.Sub(calls[0].at))
		}
	})
}

// A broken answer is asked for again, and never counts as the end of the segment. If
// answers stay broken, the reading ends with an error.
func TestBadAnswers(t *testing.T) {
	for _, how := range []string{"cut", "damaged", "void", "InternalServerError", "ThrottlingException"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := newStub(35)
				st.fail = func(op string, nth int) string {
					if op == "Scan" && nth%3 > 0 {
						return how
					}
					return ""
				}
				var got seen
				for rec, err := range Scan(t.Context(), st.config(), tableName, ScanOptions{Logger: quiet()}) {
					if err != nil {
						t.Fatal(err)
					}
					got.add(rec)
				}
				if n := got.all(t, st); n != 35 {
					t.Errorf("%d records", n)
				}
				st.fail = func(op string, _ int) string {
					if op == "Scan" {
						return how
					}
					return ""
				}
				var last error
				start := time.Now()
				for _, err := range Scan(t.Context(), st.config(), tableName, ScanOptions{Logger: quiet(), Patience: time.Minute}) {
					last = err
				}
				if last == nil || !strings.Contains(last.Error(), `table "orders": dynamodb:Scan`) || time.Since(start) > time.Minute {
					t.Errorf("after %v: %v", time.Since(start), last)
				}
			})
		})
	}
}

// An error that no retry repairs is returned at once.
func TestFatal(t *testing.T) {
	for code, want := range map[string]string{
		"ResourceNotFoundException": "Is it spelt as in the service",
		"AccessDeniedException":     "Allow the action",
		"ValidationException":       "ValidationException",
	} {
		for _, op := range []string{"DescribeTable", "Scan"} {
			synctest.Test(t, func(t *testing.T) {
				st := newStub(35)
				st.fail = func(o string, nth int) string {
					if o == op && nth == 0 {
						return code
					}
					return ""
				}
				start := time.Now()
				var got seen
				err := newSource(t, st, routed(into(&got)), testOptions(started(t))).Run(t.Context())
				if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "dynamodb:"+op) || time.Since(start) > time.Second {
					t.Errorf("%s of %s, after %v: %v", code, op, time.Since(start), err)
				}
			})
		}
	}
}

// A caller that stops a Scan early leaves no goroutine and no call.
func TestScanEndsEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStub(200)
		st.took = time.Second
		for range Scan(t.Context(), st.config(), tableName, ScanOptions{Segments: 4, Logger: quiet()}) {
			break
		}
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		n := 0
		var last error
		for _, err := range Scan(ctx, st.config(), tableName, ScanOptions{Segments: 4, Logger: quiet()}) {
			if n++; n == 30 {
				cancel()
			}
			last = err
		}
		if last != context.Canceled || n > 100 {
			t.Errorf("after %d records: %v", n, last)
		}
		calls := len(st.scans())
		time.Sleep(time.Minute)
		if len(st.scans()) != calls {
			t.Error("it is still reading")
		}
	})
}

func TestDefaultSegments(t *testing.T) {
	most := defaultSegments(math.MaxInt64 / 2)
	var got []int
	for _, mb := range []int64{0, 1, 256, 257, 600} {
		got = append(got, min(defaultSegments(mb<<20), most))
	}
	want := []int{1, 1, 1, min(2, most), min(3, most)}
	if !slices.Equal(got, want) || most < 1 || most > maxSegments {
		t.Errorf("%v, want %v; at most %d", got, want, most)
	}
}
