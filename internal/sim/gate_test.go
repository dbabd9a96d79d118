package sim

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
)

// errDead is what a dead life gets from the outside.
var errDead = errors.New("this process is dead")

// crash is where a life is killed: at its n-th interaction with the outside of
// one kind (empty: of any), either before it has an effect or when it has had
// one that the life does not learn of. n is 0 for a life that is not killed so.
type crash struct {
	kind  string
	n     int
	after bool
}

func (c crash) String() string {
	if c.n == 0 {
		return "none"
	}
	when, kind := "before", c.kind
	if c.after {
		when = "after"
	}
	if kind == "" {
		kind = "interaction"
	}
	return fmt.Sprintf("%s %s %d", when, kind, c.n)
}

// gate stands between one life of the poller and everything outside of it. Once
// it is shut nothing of that life has an effect any more. Whatever a process
// does to the world passes here, so that killing it at each passage covers
// every moment between two of its lines.
type gate struct {
	crash crash
	died  chan struct{} // closed by a crash

	mu     sync.Mutex
	shut   bool
	counts map[string]int
	inside sync.WaitGroup // calls that passed and have not come back
}

func newGate(c crash) *gate {
	return &gate{crash: c, died: make(chan struct{}), counts: map[string]int{}}
}

// enter lets an interaction pass, and numbers it among those of its kind.
// leave must follow when it does.
func (g *gate) enter(kind string) (n int, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut {
		return 0, false
	}
	g.counts[kind]++
	g.counts[""]++
	if !g.crash.after && g.due(kind) {
		g.die()
		return 0, false
	}
	g.inside.Add(1)
	return g.counts[kind], true
}

// unwind is deferred by whoever enters: a panic or an exit before leave is a
// mistake of the simulation. Its flow would take it for a handler's, and close
// would wait for ever.
func (g *gate) unwind(left *bool, check *checker) {
	if *left {
		return
	}
	check.violate(propRun, "a call unwinds within the gate: %v\n%s", recover(), debug.Stack())
	g.inside.Done()
}

// leave is false when the life does not learn how the interaction ended.
func (g *gate) leave(kind string, n int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside.Done()
	if g.shut {
		return false
	}
	if g.crash.after && (g.crash.kind == kind && n >= g.crash.n && g.crash.n > 0 || g.crash.kind == "" && g.due(kind)) {
		g.die()
		return false
	}
	return true
}

func (g *gate) due(kind string) bool {
	return g.crash.n > 0 && (g.crash.kind == "" || g.crash.kind == kind) && g.counts[g.crash.kind] >= g.crash.n
}

func (g *gate) die() {
	g.shut = true
	close(g.died)
}

// pass runs an effect that takes no time. The life must take a false answer
// for the end of the world.
func (g *gate) pass(kind string, effect func()) bool {
	n, ok := g.enter(kind)
	if !ok {
		return false
	}
	effect()
	return g.leave(kind, n)
}

// close shuts the gate, and waits for calls that had passed: they may have an
// effect, as what a process had on its way when it was killed.
func (g *gate) close() {
	g.mu.Lock()
	if !g.shut {
		g.die()
	}
	g.mu.Unlock()
	g.inside.Wait()
}

func (g *gate) isShut() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.shut
}

func (g *gate) passages() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.counts[""]
}
