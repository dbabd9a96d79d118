//go:build integration && unix

package fleettest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/localstack"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/state/dynamostate"
	"github.com/sluicehq/sluice/streamtest"
)

var seed = flag.Uint64("seed", 0, "of the chaos; 0 is a new one")

const (
	daemons  = 4
	items    = 300
	mostIll  = 2                    // workers at a time
	writeGap = 5 * time.Millisecond // between two writes
	keptLogs = 1000                 // lines, after a failure

	mostLatency = 400 * time.Millisecond // of an effect, each way
)

// Four daemons share a stream while it is written and its shards split. In random
// order they are killed, stopped for longer than they may be silent, ended in order,
// and cut off from the state table. No change is lost, each item's effects are in
// order, and the positions are stored: after an orderly end nothing is repeated.
func TestChaos(t *testing.T) {
	localtest.OwnDynamoDB(t)
	c := newChaos(t)
	for range daemons {
		c.start()
	}
	stopWriting := c.write()
	for n := 0; n < steps && !t.Failed(); n++ {
		c.step()
	}
	for len(c.ill) > 0 {
		c.heal(0)
	}
	stopWriting()
	c.settle()
	c.check()
}

// chaos is a fleet and what happens to it.
type chaos struct {
	t       *testing.T
	f       *Fleet
	began   time.Time
	random  *rand.Rand
	healthy []*Worker
	ill     []illness
	did     map[string]int
	state   *dynamostate.Store

	mu   sync.Mutex
	logs []string
}

// illness is what happened to a worker. end ends it, and returns the worker if it runs.
type illness struct {
	name string
	end  func() *Worker
}

func newChaos(t *testing.T) *chaos {
	t.Helper()
	s := *seed
	if s == 0 {
		s = rand.Uint64()
	}
	t.Logf("again: go test -tags integration -run %s -seed %d", t.Name(), s)
	c := &chaos{t: t, began: time.Now(), random: rand.New(rand.NewPCG(s, 0)), did: make(map[string]int)}
	dir := t.TempDir()
	program := filepath.Join(dir, "sluice")
	if err := localstack.Build(t.Context(), program, append(raceFlags, "github.com/sluicehq/sluice/cmd/sluice")...); err != nil {
		t.Fatal(err)
	}
	var err error
	c.f, err = New(t.Context(), Options{
		Program: program, Dir: dir, DynamoDB: *localtest.DynamoDB(t).BaseEndpoint, State: localtest.Name("fleet"), Shards: shards, Logged: c.logged,
	})
	if err != nil {
		t.Fatal(err)
	}
	if c.state, err = c.f.Store(); err != nil {
		t.Fatal(err)
	}
	c.f.Effects.Latency = func() (before, after time.Duration) { // many effects are on their way at any time
		return rand.N(mostLatency), rand.N(mostLatency)
	}
	t.Cleanup(func() {
		if err := errors.Join(c.state.Close(), c.f.Close()); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("the end of the workers' logs:\n%s", strings.Join(c.logs[max(0, len(c.logs)-keptLogs):], "\n"))
		}
	})
	return c
}

func (c *chaos) logf(format string, args ...any) {
	c.t.Helper()
	c.t.Logf("%5.1fs %6d effects: %s", time.Since(c.began).Seconds(), c.f.Effects.Len(), fmt.Sprintf(format, args...))
}

func (c *chaos) logged(worker, line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.logs = append(c.logs, worker+": "+line)
	if strings.Contains(line, "DATA RACE") {
		c.t.Errorf("%s has a data race", worker)
	}
}

// start starts a worker.
func (c *chaos) start() *Worker {
	c.t.Helper()
	w, err := c.f.Start(c.t.Context(), localtest.Patience)
	if err != nil {
		c.t.Fatal(err)
	}
	c.healthy = append(c.healthy, w)
	// A daemon ends if it cannot read its state at its start. Faults come later.
	localtest.Await(c.t, w.Name+" reads", func() string {
		if c.living(); w.Started(c.t.Context()) {
			return ""
		}
		return "not yet"
	})
	return w
}

// write writes items until the returned function is called.
func (c *chaos) write() (stop func()) {
	ctx, cancel := context.WithCancel(c.t.Context())
	var writing sync.WaitGroup
	writing.Go(func() {
		tick := time.NewTicker(writeGap)
		defer tick.Stop()
		for n := 0; ctx.Err() == nil; n++ {
			c.f.Write(fmt.Sprintf("item-%d", n%items))
			<-tick.C
		}
	})
	return func() { cancel(); writing.Wait() }
}

// step makes a worker ill, or ends an illness, and waits until the fleet has gone on.
func (c *chaos) step() {
	c.t.Helper()
	if len(c.ill) == 0 || len(c.ill) < mostIll && c.random.IntN(2) == 0 {
		c.strike()
	} else {
		c.heal(c.random.IntN(len(c.ill)))
	}
	if c.random.IntN(2) == 0 {
		c.divide()
	}
	want := c.f.Effects.Len() + 1 + c.random.IntN(400)
	localtest.Await(c.t, "more effects", func() string {
		c.living()
		if have := c.f.Effects.Len(); have < want {
			return fmt.Sprintf("%d of %d", have, want)
		}
		return ""
	})
}

// living fails the test when a worker has ended by itself.
func (c *chaos) living() {
	c.t.Helper()
	for _, w := range c.healthy {
		select {
		case <-w.Ended():
			c.t.Fatal(w.Failure(errors.New("it ended by itself")))
		default:
		}
	}
}

// divide splits or replaces a shard.
func (c *chaos) divide() {
	open := slices.DeleteFunc(c.f.Table.Shards(), func(s streamtest.ShardInfo) bool { return !s.Open })
	if id := open[c.random.IntN(len(open))].ID; c.random.IntN(3) == 0 {
		c.f.Table.Split(id)
	} else {
		c.f.Table.Roll(id)
	}
}

// strike makes a worker ill, mostly one that has work.
func (c *chaos) strike() {
	c.t.Helper()
	i := c.random.IntN(len(c.healthy))
	if last := c.f.Effects.All(max(0, c.f.Effects.Len()-100)); len(last) > 0 && c.random.IntN(4) > 0 {
		busy := last[c.random.IntN(len(last))].Worker
		i = max(0, slices.IndexFunc(c.healthy, func(w *Worker) bool { return w.Name == busy }))
	}
	w := c.healthy[i]
	c.healthy = slices.Delete(c.healthy, i, i+1)
	illness := c.illness(w)
	c.did[illness.name]++
	c.logf("%s: %s", w.Name, illness.name)
	c.ill = append(c.ill, illness)
}

// illness draws one.
func (c *chaos) illness(w *Worker) illness {
	c.t.Helper()
	switch c.random.IntN(8) {
	case 0, 1:
		w.Kill()
		return illness{"killed", func() *Worker { c.overtaken(2); return nil }}
	case 2:
		if err := w.Stop(); err != nil {
			c.t.Fatal(err)
		}
		return illness{"ended", func() *Worker { return nil }}
	case 3, 4:
		c.signal(w, syscall.SIGSTOP)
		return illness{"stopped", func() *Worker {
			c.overtaken(5)
			if c.random.IntN(4) == 0 {
				w.Kill()
				return nil
			}
			c.signal(w, syscall.SIGCONT)
			return w
		}}
	}
	cuts := []struct {
		name  string
		fault streamtest.ProxyFault
	}{
		{"cut off", streamtest.ProxyFault{Drop: true}},
		{"refused", streamtest.ProxyFault{Status: 503, Body: "no"}},
		{"late", streamtest.ProxyFault{Delay: time.Duration(1+c.random.IntN(8)) * time.Second}},
		{"unanswered", streamtest.ProxyFault{DropAnswer: true}},
		{"answered late", streamtest.ProxyFault{DelayAnswer: time.Duration(1+c.random.IntN(8)) * time.Second}},
		{"often unanswered", streamtest.ProxyFault{DropAnswer: true, Share: 0.5, Seed: c.random.Uint64()}},
		{"sent twice", streamtest.ProxyFault{Duplicate: true}},
	}
	cut := cuts[c.random.IntN(len(cuts))]
	heal := w.State.Fail(cut.fault)
	return illness{cut.name, func() *Worker {
		c.overtaken(5)
		heal()
		return w
	}}
}

// overtaken waits in of cases out of six until all that is written now has its effects:
// then others have the shards of a worker that does nothing.
func (c *chaos) overtaken(of int) {
	c.t.Helper()
	if c.random.IntN(6) < of {
		c.caughtUp()
	}
}

func (c *chaos) signal(w *Worker, s syscall.Signal) {
	c.t.Helper()
	if err := w.Signal(s); err != nil {
		c.t.Fatal(err)
	}
}

// heal ends an illness. A worker that runs no more is replaced.
func (c *chaos) heal(i int) {
	c.t.Helper()
	was := c.ill[i]
	c.ill = slices.Delete(c.ill, i, i+1)
	if w := was.end(); w != nil {
		c.healthy = append(c.healthy, w)
		c.logf("%s: no more %s", w.Name, was.name)
		return
	}
	c.logf("%s: starts", c.start().Name)
}
