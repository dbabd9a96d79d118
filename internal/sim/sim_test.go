package sim

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

var (
	seeds  = flag.Int("seeds", 10, "histories that TestSim runs")
	seed1  = flag.Uint64("seed", 1, "the first of them; alone, its trace is printed")
	out    = flag.String("out", "", "folder for the traces of failing seeds")
	twice  = flag.Bool("twice", false, "run each seed twice and count those whose traces differ")
	first  = flag.Bool("first", false, "end with the first seed that fails")
	worker = flag.Bool("worker", false, "be a worker process: run the seeds that come by standard input")
)

// result is how a seed ended.
type result struct {
	Seed       uint64
	Violations []violation
	Trace      string // when it failed
	Differs    bool   // from a second run
	Took       time.Duration
}

// TestSim runs histories, each in a bubble of synctest, on several processes
// with one processor each.
func TestSim(t *testing.T) {
	switch {
	case *worker:
		work(t)
	case *seeds == 1:
		replay(t)
	default:
		sum := runSeeds(t, os.Args[0], *seed1, *seeds, *first)
		for _, r := range sum.failed {
			t.Errorf("seed %d: %v", r.Seed, r.Violations[0])
		}
		if *out != "" {
			sum.write(t, *out)
		}
		if *twice {
			fmt.Printf("%d of %d seeds gave another trace when they were run again\n", sum.differ, sum.ran)
		}
		fmt.Println(sum)
	}
}

// run runs a seed.
func run(t *testing.T, seed uint64, verbose bool) *history {
	var h *history
	synctest.Test(t, func(t *testing.T) { h = runHistory(t, seed, verbose) })
	return h
}

// replay runs one seed until it fails, for the order in which goroutines run
// is the scheduler's affair, and prints its trace.
func replay(t *testing.T) {
	const tries = 10
	runtime.GOMAXPROCS(1)
	var h *history
	for range tries {
		if h = run(t, *seed1, true); len(h.check.failed()) > 0 {
			break
		}
	}
	fmt.Print(h.trace)
	for _, v := range h.check.failed() {
		t.Errorf("seed %d: %v", *seed1, v)
	}
}

// summary is how many seeds ended.
type summary struct {
	ran    int
	differ int
	failed []result
	took   time.Duration
}

func (s *summary) String() string {
	return fmt.Sprintf("%d seeds in %v, %.0f a second; %d failed",
		s.ran, s.took.Round(time.Millisecond), float64(s.ran)/s.took.Seconds(), len(s.failed))
}

func (s *summary) add(r result) {
	s.ran++
	if r.Differs {
		s.differ++
	}
	if len(r.Violations) > 0 {
		s.failed = append(s.failed, r)
		slices.SortFunc(s.failed, func(a, b result) int { return cmp.Compare(a.Seed, b.Seed) })
	}
}

// write keeps the traces of what failed.
func (s *summary) write(t *testing.T, dir string) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, r := range s.failed {
		path := filepath.Join(dir, fmt.Sprintf("seed-%d.txt", r.Seed))
		if err := os.WriteFile(path, []byte(r.Trace), 0o644); err != nil {
			t.Fatal(err)
		}
		t.Logf("seed %d: its trace is in %s", r.Seed, path)
	}
}
