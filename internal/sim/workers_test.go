package sim

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is how long a seed may take. Most take a fraction of a second. One in
// 100,000 takes 10 s of processor time, and minutes on a busy machine.
const patience = 20 * time.Minute

// work runs the seeds that come by standard input, a line each, and answers
// each by a line.
func work(t *testing.T) {
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(800) // there is little to keep, and much that goes
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var seed uint64
		if _, err := fmt.Sscan(in.Text(), &seed); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		h := run(t, seed, false)
		r := result{Seed: seed, Violations: h.check.failed()}
		if len(r.Violations) > 0 {
			r.Trace = h.trace.String()
		} else if *twice {
			r.Differs = run(t, seed, false).trace.String() != h.trace.String()
		}
		r.Took = time.Since(start)
		line, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("%s%s\n", answerMark, line)
	}
}

// answerMark begins the lines that are for the parent.
const answerMark = "sim\t"

// process is a worker as its parent sees it.
type process struct {
	cmd   *exec.Cmd
	in    interface{ Write([]byte) (int, error) }
	lines *bufio.Reader
	errs  bytes.Buffer
}

func startProcess(bin string) (*process, error) {
	p := &process{cmd: exec.Command(bin, "-test.run=^TestSim$", "-test.timeout=0", "-worker", fmt.Sprintf("-twice=%v", *twice))}
	p.cmd.Stderr = &p.errs
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	outPipe, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.in, p.lines = in, bufio.NewReader(outPipe)
	return p, p.cmd.Start()
}

// run has the worker run a seed. A worker that dies of it or hangs is a
// violation, and over.
func (p *process) run(seed uint64) (r result, over bool) {
	watch := time.AfterFunc(patience, func() { p.cmd.Process.Signal(syscall.SIGQUIT) })
	defer watch.Stop()
	fmt.Fprintln(p.in, seed)
	var other []byte
	for {
		line, err := p.lines.ReadBytes('\n')
		if err != nil {
			p.cmd.Wait()
			text := fmt.Sprintf("the process died or did not answer for %v:\n%s%s", patience, other, p.errs.String())
			return result{Seed: seed, Violations: []violation{{propRun, text}}, Trace: text}, true
		}
		if rest, ok := bytes.CutPrefix(line, []byte(answerMark)); ok {
			if err := json.Unmarshal(rest, &r); err != nil {
				panic(err)
			}
			return r, false
		}
		other = append(other, line...)
	}
}

func (p *process) kill() {
	p.cmd.Process.Kill()
	p.cmd.Wait()
}

// runSeeds runs n seeds from seed on, with as many workers as there are
// processors.
func runSeeds(t *testing.T, bin string, seed uint64, n int, stopAtFirst bool) *summary {
	s := &summary{}
	start := time.Now()
	var mu sync.Mutex
	next := 0
	take := func() (uint64, bool) {
		mu.Lock()
		defer mu.Unlock()
		if next >= n || stopAtFirst && len(s.failed) > 0 {
			return 0, false
		}
		next++
		return seed + uint64(next-1), true
	}
	progress := newProgress(n)
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), n) {
		workers.Go(func() {
			var p *process
			defer func() {
				if p != nil {
					p.kill()
				}
			}()
			for {
				seed, ok := take()
				if !ok {
					return
				}
				if p == nil {
					var err error
					if p, err = startProcess(bin); err != nil {
						t.Error(err)
						return
					}
				}
				r, over := p.run(seed)
				if over {
					p = nil
				}
				mu.Lock()
				s.add(r)
				progress.show(s)
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	progress.end()
	s.took = time.Since(start)
	return s
}

// progress is a line at a terminal.
type progress struct {
	on   bool
	n    int
	last time.Time
}

func newProgress(n int) *progress {
	fi, err := os.Stderr.Stat()
	return &progress{on: err == nil && fi.Mode()&os.ModeCharDevice != 0, n: n}
}

func (p *progress) show(s *summary) {
	if !p.on || time.Since(p.last) < 200*time.Millisecond && s.ran < p.n {
		return
	}
	p.last = time.Now()
	fmt.Fprintf(os.Stderr, "\r%d of %d seeds, %d failed\x1b[K", s.ran, p.n, len(s.failed))
}

func (p *progress) end() {
	if p.on {
		fmt.Fprintln(os.Stderr)
	}
}
