//go:build integration

package poller

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/state/boltstate"
)

func init() { child = daemon }

// What the child is told.
const (
	tableEnv   = "SLUICE_POLLER_TEST_TABLE"
	stateEnv   = "SLUICE_POLLER_TEST_STATE"
	effectsEnv = "SLUICE_POLLER_TEST_EFFECTS"
	delayEnv   = "SLUICE_POLLER_TEST_DELAY" // of each effect, at most
)

// daemon is a small real one: its effect of a change is a line in a file. It
// is written by one call, so that a killed process has made it whole or not at
// all; what the kernel has taken survives the process.
func daemon() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	fmt.Println("listening to signals")
	delay, err := time.ParseDuration(os.Getenv(delayEnv))
	must(err)
	effects, err := os.OpenFile(os.Getenv(effectsEnv), os.O_APPEND|os.O_WRONLY, 0)
	must(err)
	store, err := boltstate.Open(os.Getenv(stateEnv), boltstate.Options{})
	must(err)
	m := matcher(func(ctx context.Context, rec *sluice.Record) error {
		id, n, err := version(rec)
		if err != nil {
			return err
		}
		if rand.IntN(50) == 0 {
			return errors.New("now and then")
		}
		if err := sleep(ctx, rand.N(delay)); err != nil {
			return err
		}
		_, err = fmt.Fprintf(effects, "%s %d\n", id, n)
		return err
	})
	m.route.Backoff = time.Millisecond
	o := testOptions(store, os.Getenv(tableEnv))
	o.BusyInterval, o.CheckpointEvery, o.Limit = 10*time.Millisecond, 5*time.Millisecond, 50
	p, err := New(localConfig(), m, o)
	must(err)
	must(p.Run(ctx))
	must(store.Close())
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// process is one run of the daemon.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	stderr bytes.Buffer
}

func spawn(t *testing.T, table, dir string, delay time.Duration) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(os.Args[0], "-test.run=^$")}
	p.cmd.Env = append(os.Environ(), childEnv+"=1", tableEnv+"="+table,
		stateEnv+"="+dir+"/state", effectsEnv+"="+dir+"/effects", delayEnv+"="+delay.String())
	p.cmd.Stderr = &p.stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		p.cmd.Wait() //nolint:errcheck // it is over in all but a failed test
	})
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("the daemon did not start: %v\n%s", err, p.stderr.String())
	}
	return p
}

// kill ends it by SIGKILL; a process that ended before, of itself, is a failure.
func (p *process) kill() {
	p.t.Helper()
	p.cmd.Process.Kill()
	err := p.cmd.Wait()
	if s, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !s.Signaled() || s.Signal() != syscall.SIGKILL {
		p.t.Fatalf("the daemon ended before it was killed: %v\n%s", err, p.stderr.String())
	}
}

// term ends it by SIGTERM and expects exit status 0.
func (p *process) term() {
	p.t.Helper()
	p.cmd.Process.Signal(syscall.SIGTERM)
	if err := p.cmd.Wait(); err != nil {
		p.t.Fatalf("after SIGTERM: %v\n%s", err, p.stderr.String())
	}
}

// effect is one line of the effects file.
type effect struct {
	id string
	n  int
}

// effects follows the file that the daemons write.
type effects struct {
	t    *testing.T
	r    *bufio.Reader
	part string // of a line
	all  []effect
}

func newEffects(t *testing.T, dir string) *effects {
	t.Helper()
	f, err := os.Create(dir + "/effects")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return &effects{t: t, r: bufio.NewReader(f)}
}

// until reads lines until enough returns true.
func (f *effects) until(enough func() bool) {
	f.t.Helper()
	localtest.Await(f.t, "effects of another process", func() string {
		for !enough() {
			if !f.read() {
				return fmt.Sprint(len(f.all))
			}
		}
		return ""
	})
}

// read reads a line when there is one.
func (f *effects) read() bool {
	f.t.Helper()
	line, err := f.r.ReadString('\n')
	f.part += line
	if errors.Is(err, io.EOF) {
		return false
	}
	var e effect
	if _, scan := fmt.Sscanf(f.part, "%s %d\n", &e.id, &e.n); scan != nil || err != nil {
		f.t.Fatalf("line %q: %v, %v", f.part, err, scan)
	}
	f.all, f.part = append(f.all, e), ""
	return true
}

// rest reads what is there and returns all effects.
func (f *effects) rest() []effect {
	f.t.Helper()
	for f.read() {
	}
	return f.all
}

// A process killed at any moment loses no change and reorders none of an item.
func TestLocalKilledLosesNothing(t *testing.T) { killedLosesNothing(t, 15) }

func killedLosesNothing(t *testing.T, rounds int) {
	const items = 40
	localtest.OwnDynamoDB(t)
	c, table := newTable(t, types.StreamViewTypeNewAndOldImages)
	dir := t.TempDir()
	file := newEffects(t, dir)

	writing, stopWriting := context.WithCancel(t.Context())
	defer stopWriting()
	written := make([]int, items) // versions of each item
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			for writing.Err() == nil {
				for i := w; i < items; i += 4 {
					if err := change(t.Context(), c, table, fmt.Sprint(i), written[i]+1); err != nil {
						t.Error(err)
						return
					}
					written[i]++
				}
				sleep(writing, 20*time.Millisecond) //nolint:errcheck // the loop looks
			}
		})
	}
	for range rounds {
		p := spawn(t, table, dir, 20*time.Millisecond)
		if rand.IntN(3) > 0 { // while it works; else at any time, also while it starts
			before := len(file.rest())
			file.until(func() bool { return len(file.all) > before })
		}
		sleep(t.Context(), rand.N(400*time.Millisecond)) //nolint:errcheck // a random moment
		p.kill()
	}
	stopWriting()
	writers.Wait()

	p := spawn(t, table, dir, 20*time.Millisecond)
	total := 0
	for _, n := range written {
		total += n
	}
	first := map[effect]bool{}
	counted := 0
	file.until(func() bool {
		for ; counted < len(file.all); counted++ {
			first[file.all[counted]] = true
		}
		return len(first) >= total
	})
	p.term()
	got := file.rest()

	last := map[string]int{}
	for _, e := range got {
		if e.n > last[e.id]+1 {
			t.Errorf("item %s: version %d was handled before version %d", e.id, e.n, last[e.id]+1)
		}
		last[e.id] = max(last[e.id], e.n)
	}
	for i, n := range written {
		if last[fmt.Sprint(i)] != n {
			t.Errorf("item %d: %d versions were written, %d handled", i, n, last[fmt.Sprint(i)])
		}
	}
	t.Logf("%d changes, killed %d times, %d handled again", total, rounds, len(got)-total)
}

// SIGTERM drains, stores and exits 0; a restart repeats nothing.
func TestLocalTermRepeatsNothing(t *testing.T) {
	const changes, stops = 300, 3
	c, table := newTable(t, types.StreamViewTypeNewAndOldImages)
	dir := t.TempDir()
	file := newEffects(t, dir)
	for n := range changes {
		mustChange(t, c, table, fmt.Sprint(n%7), n)
	}
	for s := range stops {
		p := spawn(t, table, dir, 10*time.Millisecond)
		file.until(func() bool { return len(file.all) > s*changes/stops })
		p.term()
	}
	p := spawn(t, table, dir, 10*time.Millisecond)
	file.until(func() bool { return len(file.all) >= changes })
	p.term()
	seen := map[effect]int{}
	for _, e := range file.rest() {
		if seen[e]++; seen[e] > 1 {
			t.Errorf("%v was handled %d times", e, seen[e])
		}
	}
	if len(seen) != changes {
		t.Errorf("%d of %d changes were handled", len(seen), changes)
	}
}
