package escalation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/internal/localtest"
)

var errCrash = errors.New("crashed")

// mortal is a process that dies at the n-th of the points that it passes:
// before and after each read, write, call and send. A dead one does nothing.
type mortal struct {
	n    int // points that are left; negative is immortal
	dead bool
}

func (m *mortal) passes() error {
	if m.n--; m.n == 0 {
		m.dead = true
	}
	if m.dead {
		return errCrash
	}
	return nil
}

// climb runs a rota in which the process dies at point n of its life, and
// another takes its place. It reports whether it came to n.
func climb(t *testing.T, n int, change func(*rota)) (w *rota, died bool) {
	w = newRounds(t)
	if change != nil {
		change(w)
	}
	life := &mortal{n: n}
	w.ReadFault = life.passes
	w.Fault = func(_ bool, ops []dynamo.Op) error {
		if w.outside {
			return nil
		}
		return life.passes()
	}
	began := make(map[string]time.Time)
	w.contact = func(_ context.Context, try Try) error {
		if err := life.passes(); err != nil {
			return err
		}
		if before, ok := began[try.DedupeKey]; ok && w.Now().Sub(before) < 2*time.Minute && !life.dead {
			t.Errorf("crash at %d: %s was called again after %v, within its lease", n, try.DedupeKey, w.Now().Sub(before))
		}
		began[try.DedupeKey] = w.Now()
		return life.passes()
	}
	c := w.config()
	send := c.Config.Send
	c.Config.Send = func(ctx context.Context, m sluice.Message) error {
		if err := life.passes(); err != nil {
			return err
		}
		if w.sending != nil {
			w.sending(m)
		}
		return errors.Join(send(ctx, m), life.passes())
	}
	watch := c.Config.Watch.Send
	c.Config.Watch.Send = func(ctx context.Context, m sluice.Message) error {
		if err := life.passes(); err != nil {
			return err
		}
		return errors.Join(watch(ctx, m), life.passes())
	}
	h := w.handleWith(t, c)
	handle := func(ctx context.Context, rec *sluice.Record) error {
		err := h(ctx, rec)
		if life.dead { // whoever gets the record next is another process
			died = true
			*life = mortal{n: -1}
			return errCrash
		}
		return err
	}
	for _, e := range append(w.events, event{3 * time.Hour, func(*testing.T) {}}) {
		if err := w.Run(t.Context(), handle, start.Add(e.at)); err != nil || len(w.Parked) > 0 {
			t.Fatalf("crash at %d: %v %v", n, err, w.Parked)
		}
		e.do(t)
	}
	return w, died
}

// One attempt for each step, in order, and an end.
func (w *rota) holds(t *testing.T, when string, outcomes ...string) {
	t.Helper()
	var got []string
	for _, it := range w.Items("rings") {
		at, _ := it.Lookup("at")
		n, _ := it.Lookup("n")
		outcome, _ := it.Lookup("outcome")
		if at.Str() == "" {
			t.Errorf("%s: not attempted: %s", when, it.Raw())
		}
		round, _ := it.Lookup("round")
		got = append(got, strings.TrimSpace(round.Str()+" "+n.Str()+" "+outcome.Str()))
	}
	if !slices.Equal(got, outcomes) || w.state() != "no_response" {
		t.Errorf("%s: attempts %q, want %q; the page is %s", when, got, outcomes, w.state())
	}
	if len(w.alarms) > 0 {
		t.Errorf("%s: alarms %+v", when, w.alarms)
	}
	inRound := func(call string) string { // its round before its number
		number, round, _ := strings.Cut(strings.Fields(call)[1], "@")
		return round + " " + number
	}
	for i, call := range w.calls {
		if !strings.Contains(call, "P1#") || i > 0 && inRound(call) < inRound(w.calls[i-1]) {
			t.Errorf("%s: calls %q", when, w.calls)
		}
	}
}

// takenBack acknowledges the page after the second step, and takes that back.
func takenBack(w *rota) {
	w.events = []event{
		{10 * time.Minute, func(t *testing.T) { w.set(t, "state", "answered") }},
		{30 * time.Minute, func(t *testing.T) { w.set(t, "state", "ringing") }},
	}
}

func TestCrashAnywhere(t *testing.T) {
	if localtest.Elsewhere(t) { // TestCrashSeeds has the race detector
		return
	}
	contacted := []string{"0 contacted", "1 contacted", "2 contacted"}
	for _, tt := range []struct {
		name     string
		change   func(w *rota)
		stride   int // of the points: those of each step are alike
		outcomes []string
	}{
		{"three steps", nil, 1, contacted},
		{"a step is disabled while its message waits", func(w *rota) {
			w.sending = func(m sluice.Message) {
				if m.Attributes["dedupeKey"].Value == "P1#1" {
					w.outside = true
					w.put(t, "people", strings.Replace(inTeam("bob", 2, 60), "true", "false", 1))
					w.outside = false
				}
			}
		}, 1, []string{"0 contacted", "1 skipped", "2 contacted"}},
		{"each thing twice", func(w *rota) { w.Twice = true }, 2, contacted},
		{"the ladder twice", func(w *rota) { w.edit = func(c *ConsumerConfig) { c.Config.Repeat = 1 } }, 3,
			[]string{"0 contacted", "1 contacted", "2 contacted", "3 contacted", "4 contacted", "5 contacted"}},
		{"acknowledged, and taken back", takenBack, 2, []string{"0 contacted", "1 0 contacted", "1 contacted", "1 1 contacted", "1 2 contacted"}},
		{"deleted while it climbs, and put again", putAgain(10, strings.Replace(ringing, "10:00", "10:15", 1)), 2,
			[]string{"0 contacted", "1 0 contacted", "1 contacted", "1 1 contacted", "1 2 contacted"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			points := 0
			for died := true; died; {
				points += tt.stride
				synctest.Test(t, func(t *testing.T) {
					var w *rota
					w, died = climb(t, points, tt.change)
					w.holds(t, fmt.Sprintf("crash at %d", points), tt.outcomes...)
				})
				if t.Failed() {
					break
				}
			}
			if points < 40 {
				t.Errorf("only %d points", points)
			}
		})
	}
}

// Random order, repetitions and crashes.
func TestCrashSeeds(t *testing.T) {
	for seed := uint64(0); seed < 120; seed += 3 {
		synctest.Test(t, func(t *testing.T) {
			outcomes := []string{"0 contacted", "1 contacted", "2 contacted"}
			w, _ := climb(t, int(seed)+1, func(w *rota) {
				w.Rand = rand.New(rand.NewPCG(seed, 1))
				if seed%2 == 1 {
					takenBack(w)
					outcomes = []string{"0 contacted", "1 0 contacted", "1 contacted", "1 1 contacted", "1 2 contacted"}
				}
			})
			w.holds(t, fmt.Sprintf("seed %d", seed), outcomes...)
		})
		if t.Failed() {
			return
		}
	}
}

// The calls come when they are due, over hops, and the end after the last.
func TestLadderInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := climb(t, -1, nil)
		w.holds(t, "no crash", "0 contacted", "1 contacted", "2 contacted")
		if got, want := fmt.Sprint(w.calls), "[10:00:00 P1#0 ann 10:01:00 P1#1 bob 10:21:00 P1#2 cat]"; got != want {
			t.Errorf("calls %s, want %s", got, want)
		}
		var sent []string
		for _, s := range w.sent() {
			sent = append(sent, fmt.Sprint(s.At.Format("15:04:05"), "+", s.Delay.Seconds()))
		}
		if got, want := strings.Join(sent, " "), "10:00:00+0 10:00:00+60 10:01:00+900 10:16:00+300 10:21:00+120"; got != want {
			t.Errorf("sent %s, want %s", got, want)
		}
	})
}
