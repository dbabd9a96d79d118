package quorum

import (
	"context"
	"slices"
	"testing"
)

type due struct{ told int }

func (d *due) MarkDue() { d.told++ }

func TestScopeTellsOnceWhenNobodyIsLeft(t *testing.T) {
	var s Scope
	a, b, gone := &due{}, &due{}, &due{}
	s.Enter(2)
	for _, d := range []*due{a, b, gone} {
		if !s.Watch(d) {
			t.Error("first Watch says that the batch is watched already")
		}
	}
	if s.Watch(a) {
		t.Error("second Watch says that the batch was not watched")
	}
	s.Unwatch(gone)
	s.Leave(1)
	if a.told != 0 || s.Idle() {
		t.Errorf("told %d times, idle %v with one member left", a.told, s.Idle())
	}
	s.Leave(1)
	if a.told != 1 || b.told != 1 || gone.told != 0 || !s.Idle() {
		t.Errorf("told %d, %d and, unwatched, %d times; idle %v; want 1, 1, 0, true", a.told, b.told, gone.told, s.Idle())
	}
	s.Enter(1)
	s.Leave(1)
	if a.told != 1 {
		t.Errorf("told %d times by a scope that watches no longer", a.told)
	}
}

// A goroutine that a handler left behind takes the count below zero.
func TestScopeIsIdleBelowZero(t *testing.T) {
	var s Scope
	d := &due{}
	s.Leave(2)
	s.Watch(d)
	s.Enter(1)
	s.Leave(1)
	if d.told != 1 {
		t.Errorf("told %d times at -2, want 1", d.told)
	}
}

// More sinks than fit in markDue's array.
func TestScopeTellsMany(t *testing.T) {
	var s Scope
	s.Enter(1)
	ds := make([]due, 20)
	for i := range ds {
		s.Watch(&ds[i])
	}
	s.Leave(1)
	for i := range ds {
		if ds[i].told != 1 {
			t.Errorf("batch %d told %d times", i, ds[i].told)
		}
	}
}

// recorder is a Host that notes its calls, with the scope's count at each.
type recorder struct {
	name  string
	scope *Scope
	log   *[]string
}

func (r *recorder) Parked(n int)   { r.note("parked", n) }
func (r *recorder) Unparked(n int) { r.note("unparked", n) }
func (r *recorder) note(what string, n int) {
	*r.log = append(*r.log, r.name+" "+what+string(rune('0'+n))+" at"+string(rune('0'+r.scope.active.Load())))
}

func TestUnparkCountsByFlow(t *testing.T) {
	var log []string
	flow := func(name string) func() *Member {
		s := &Scope{}
		h := &recorder{name, s, &log}
		return func() *Member { s.Enter(1); return &Member{Scope: s, Host: h} }
	}
	f, g := flow("f"), flow("g")
	ms := []*Member{f(), f(), nil, g(), f()}
	for _, m := range ms {
		m.Park()
	}
	if !ms[0].Scope.Idle() || !ms[3].Scope.Idle() {
		t.Error("not idle with all parked")
	}
	Unpark(ms)
	want := []string{
		"f parked1 at3", "f parked1 at2", "g parked1 at1", "f parked1 at1",
		"f unparked2 at2", "g unparked1 at1", "f unparked1 at3",
	}
	if !slices.Equal(log, want) {
		t.Errorf("got  %q\nwant %q", log, want)
	}
}

// A handler counts once for any number of waiting goroutines. A second goroutine that
// joins another batch, with no handler left, must make that batch due.
func TestSecondGoroutineOfAParkedHandler(t *testing.T) {
	var s Scope
	s.Enter(1)
	m := &Member{Scope: &s}
	m.Park()
	d := &due{}
	s.Watch(d)
	m.Park()
	if d.told != 1 {
		t.Errorf("second batch told %d times, want 1", d.told)
	}
	Unpark([]*Member{m})
	if !s.Idle() {
		t.Error("awake although one of its goroutines waits")
	}
	Unpark([]*Member{m})
	if s.active.Load() != 1 {
		t.Errorf("active %d at the end, want 1", s.active.Load())
	}
}

// A commit can end between a caller's joining and its parking.
func TestUnparkBeforePark(t *testing.T) {
	var s Scope
	s.Enter(1)
	m := &Member{Scope: &s}
	Unpark([]*Member{m})
	m.Park()
	if s.active.Load() != 1 || m.depth.Load() != 0 {
		t.Errorf("active %d, depth %d; want 1, 0", s.active.Load(), m.depth.Load())
	}
}

func TestFrom(t *testing.T) {
	if From(t.Context()) != nil {
		t.Error("member in a bare context")
	}
	m := &Member{}
	ctx, cancel := context.WithCancel(With(t.Context(), m))
	defer cancel()
	if From(ctx) != m {
		t.Error("member lost")
	}
	From(t.Context()).Park() // nil is passed over
}
