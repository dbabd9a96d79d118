package flow

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/localtest"
)

// paused is a flow of routes a and b. Route a fails for items that begin with abad.
type paused struct {
	*Flow
	t   *testing.T
	bad atomic.Bool
	d   letters
	n   int // records
}

func openPaused(t *testing.T, maxAge time.Duration) *paused {
	p := &paused{t: t}
	p.bad.Store(true)
	m := onTwo(func(_ context.Context, r *sluice.Record) error {
		if keyOf(r)[1] == 'b' && p.bad.Load() {
			return errDown
		}
		return nil
	}, ok)
	m.routes[0].MaxAge = maxAge
	p.Flow = Open(t.Context(), m, Options{Logger: quiet, DeadLetter: &p.d})
	return p
}

// submit submits one record of an item that fails, and then records of others for d.
func (p *paused) submit(item string, d time.Duration) {
	p.t.Helper()
	p.n++
	mustSubmit(p.t, p.Flow, live(item, p.n, time.Now()))
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Second) {
		p.n++
		mustSubmit(p.t, p.Flow, live(fmt.Sprint("a", p.n%30), p.n, time.Now()))
	}
}

// pause pauses route a for d.
func (p *paused) pause(d time.Duration) {
	p.group.Throttle("a", Throttle{Paused: true})
	time.Sleep(d)
	p.group.Throttle("a", Throttle{})
}

func (p *paused) want(when string, parked int) {
	p.t.Helper()
	synctest.Wait()
	if got := len(p.d.all()); got != parked {
		p.t.Errorf("%s: %d records are parked, want %d", when, got, parked)
	}
}

// A pause counts neither for the age of a record nor for poison.
func TestAPauseAgesNothing(t *testing.T) {
	for _, maxAge := range []time.Duration{0, 5 * time.Minute} { // poison after 10 minutes
		synctest.Test(t, func(t *testing.T) {
			p := openPaused(t, maxAge)
			p.submit("abad", 2*time.Minute)
			p.pause(9 * time.Hour)
			p.submit("a0", 2*time.Minute)
			p.want("after 4 minutes of failing", 0)
			p.submit("a0", 9*time.Minute)
			p.want("after 13 minutes of failing", 1)
			mustClose(t, p.Flow, uint64(p.n))
		})
	}
}

// A route that was paused in an outage goes on with a probe. If that fails, the outage
// holds all records, as it did before the pause, until they are too old.
func TestPauseInAnOutage(t *testing.T) {
	for _, mended := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			p := openPaused(t, 2*time.Hour)
			for i := range 100 {
				p.submit(fmt.Sprint("abad", i), 0)
			}
			time.Sleep(time.Minute)
			p.bad.Store(!mended)
			p.group.Throttle("a", Throttle{Paused: true})
			time.Sleep(10 * time.Hour)
			if s := p.group.States()[0]; s.State != Outage || s.Trouble() != "" || len(p.Held()) != 0 {
				t.Errorf("%v, %q, %d held", s.State, s.Trouble(), len(p.Held()))
			}
			p.group.Throttle("a", Throttle{})
			if !mended {
				time.Sleep(119*time.Minute - time.Second)
				p.want("before the records are too old", 0)
				if s := p.group.States()[0]; s.State != Outage {
					t.Errorf("after the pause: %v", s.State)
				}
				time.Sleep(2 * time.Second)
				p.want("at the age, without the pause", 100)
			}
			mustClose(t, p.Flow, 100)
			p.want("at the end", map[bool]int{false: 100}[mended])
		})
	}
}

// After a pause a record is parked for its age before the stream trims it.
func TestAPauseAndTheTrim(t *testing.T) {
	if localtest.Elsewhere(t) { // many hours
		return
	}
	synctest.Test(t, func(t *testing.T) {
		p := openPaused(t, 20*time.Hour)
		for i := range 10 {
			p.submit(fmt.Sprint("abad", i), 0)
		}
		time.Sleep(10 * time.Hour)
		p.pause(12 * time.Hour)
		time.Sleep(time.Hour - time.Second) // 2 hours are left
		p.want("an hour before the trim", 0)
		time.Sleep(2 * time.Second)
		p.want("half of the time later", 10)
		mustClose(t, p.Flow, 10)
	})
}

// A pause ends no partial outage, in which nothing is poison.
func TestPauseInAPartialOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := openPaused(t, 0)
		for i := range 8 {
			p.submit(fmt.Sprint("abad", i), 0)
		}
		p.submit("a0", 2*time.Minute)
		if s := p.group.States()[0]; s.State != Partial {
			t.Fatalf("%v", s.State)
		}
		p.pause(time.Hour)
		if s := p.group.States()[0]; s.State != Partial || s.Failing != 8 {
			t.Errorf("after the pause: %v, %d failing", s.State, s.Failing)
		}
		p.bad.Store(false)
		mustClose(t, p.Flow, uint64(p.n))
	})
}

// A record that grew too old in a pause is parked at its age without it, even if nothing
// else happens then.
func TestAgeBehindAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d letters
		release := make(chan struct{})
		m := onTwo(func(_ context.Context, r *sluice.Record) error {
			if keyOf(r) == "abad" {
				return errDown
			}
			<-release
			return nil
		}, ok)
		m.routes[0].MaxAge, m.routes[0].Concurrency = time.Hour, 1
		f := Open(t.Context(), m, Options{Logger: quiet, DeadLetter: &d})
		p := &paused{Flow: f, t: t}
		p.submit("abad", 0)
		time.Sleep(time.Second)
		p.submit("ahangs", 0)
		time.Sleep(time.Minute)
		p.pause(8 * time.Hour)
		time.Sleep(58 * time.Minute)
		synctest.Wait()
		if len(d.all()) != 0 {
			t.Errorf("parked: %v", d.all())
		}
		time.Sleep(2 * time.Minute)
		if len(d.all()) != 1 {
			t.Errorf("parked: %v", d.all())
		}
		close(release)
		mustClose(t, f, 2)
	})
}

// The record behind the first one of an item in a pause is called only after it. The
// pause counts for its age no more than for that of the first.
func TestAgeOfARecordBehindAnother(t *testing.T) {
	for name, origin := range map[string]sluice.Origin{"live": sluice.Live, "replayed": sluice.Replayed} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var d letters
				calls := 0
				m := onTwo(func(context.Context, *sluice.Record) error {
					if calls++; calls > 1 {
						return errDown
					}
					return nil
				}, ok)
				m.routes[0].MaxAge = 2 * time.Hour
				f := Open(t.Context(), m, Options{Logger: quiet, DeadLetter: &d})
				f.group.Throttle("a", Throttle{Paused: true})
				for n := range 2 {
					r := live("a", n+1, time.Now())
					r.Origin = origin
					mustSubmit(t, f, r)
				}
				time.Sleep(5 * time.Hour)
				f.group.Throttle("a", Throttle{})
				time.Sleep(2*time.Hour - time.Minute)
				if synctest.Wait(); len(d.all()) != 0 {
					t.Errorf("parked before its age: %v", d.all())
				}
				time.Sleep(2 * time.Minute)
				if synctest.Wait(); len(d.all()) != 1 {
					t.Errorf("parked at its age: %v", d.all())
				}
				mustClose(t, f, 2)
			})
		})
	}
}

// The message of a queue is in no stream, which could trim it.
func TestNoStreamTrimsAMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := routes(ok)
		g := NewGroup(m)
		g.Throttle("a", Throttle{Paused: true})
		f := Open(t.Context(), m, Options{Logger: quiet, Policy: Stop, Group: g})
		mustSubmit(t, f, live("x", 1, time.Now().Add(-23*time.Hour)))
		synctest.Wait()
		if s := g.States()[0]; s.Waiting != 1 || !s.Oldest.IsZero() || s.Trouble() != "" {
			t.Errorf("%d wait, the oldest since %v: %s", s.Waiting, s.Oldest, s.Trouble())
		}
		g.Throttle("a", Throttle{})
		mustClose(t, f, 1)
	})
}
