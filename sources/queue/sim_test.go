package queue

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
)

var (
	simSeeds = flag.Int("sim.seeds", 5, "histories to simulate")
	simFrom  = flag.Uint64("sim.from", 1, "first seed")
)

// TestSim lets consumers run, crash and stop at random while SQS refuses calls,
// loses answers and is away for minutes, and then lets one go on in peace. In
// the end every message was handled or parked, none was deleted before, and no
// message of a group was started after a later one.
func TestSim(t *testing.T) { simulate(t, *simSeeds) }

func simulate(t *testing.T, seeds int) {
	for seed := *simFrom; seed < *simFrom+uint64(seeds); seed++ {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			bubble(t, func(t *testing.T) { newSim(t, seed).run() })
		})
	}
}

type sim struct {
	t    *testing.T
	rand *rand.Rand
	stub *stub

	mu      sync.Mutex
	calm    bool
	away    time.Time // SQS is, until then
	done    map[string]bool
	parked  map[string]bool
	started map[string]int // position of the last one started, by group
	starts  map[string]int
}

func newSim(t *testing.T, seed uint64) *sim {
	s := &sim{t: t, rand: rand.New(rand.NewPCG(seed, 7)), stub: newStub("jobs", "jobs.fifo"),
		done: map[string]bool{}, parked: map[string]bool{}, started: map[string]int{}, starts: map[string]int{}}
	s.stub.fault = s.fault
	s.stub.deleted = func(m *stubMessage) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.done[m.id] && !s.parked[m.id] {
			t.Errorf("%s was deleted, and neither handled nor parked", m.id)
		}
	}
	return s
}

// draw returns a number below n.
func (s *sim) draw(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rand.IntN(n)
}

func (s *sim) fault(string, string) *fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.calm:
		return nil
	case time.Now().Before(s.away):
		return &fault{lost: true}
	}
	switch s.rand.IntN(40) {
	case 0:
		return &fault{lost: true}
	case 1:
		return &fault{lost: true, after: true}
	case 2:
		return &fault{code: "ThrottlingException"}
	case 3:
		return &fault{entry: map[int]string{s.rand.IntN(3): "InternalError"}}
	case 4:
		return &fault{entry: map[int]string{0: "sender:ReceiptHandleIsInvalid"}}
	case 5:
		return &fault{silent: map[int]bool{s.rand.IntN(3): true}}
	case 6:
		return &fault{delay: time.Duration(s.rand.IntN(9000)) * time.Millisecond}
	case 7:
		if s.rand.IntN(10) == 0 {
			s.away = time.Now().Add(time.Duration(s.rand.IntN(180)) * time.Second)
		}
	}
	return nil
}

// Park is the dead letters, which last, and fail now and then.
func (s *sim) Park(_ context.Context, rec *sluice.Record, _ sluice.Failure) error {
	if s.draw(4) == 0 {
		return errDown
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parked[rec.EventID] = true
	return nil
}

// handle handles as the process that l connects.
func (s *sim) handle(ctx context.Context, l *line, rec *sluice.Record) error {
	s.mu.Lock()
	if !l.isDead() {
		s.starts[rec.EventID]++
		if m, _ := rec.Message(); m.GroupID != "" {
			_, last, _ := strings.Cut(rec.EventID, "-")
			n, _ := strconv.Atoi(last)
			if n < s.started[m.GroupID] {
				s.t.Errorf("group %s: %d is started after %d", m.GroupID, n, s.started[m.GroupID])
			}
			s.started[m.GroupID] = n
		}
	}
	s.mu.Unlock()
	take := time.Duration(s.draw(3000)) * time.Millisecond
	if s.draw(15) == 0 {
		take *= 60
	}
	select {
	case <-time.After(take):
	case <-ctx.Done():
		return ctx.Err()
	}
	if l.isDead() {
		return errCut
	}
	switch s.draw(12) {
	case 0, 1, 2:
		return errDown
	case 3:
		return sluice.RetryAfter(time.Duration(s.draw(600))*time.Second, errDown)
	case 4:
		if s.draw(4) == 0 {
			return errNever
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done[rec.EventID] = true
	return nil
}

// process runs one consumer until ctx ends.
func (s *sim) process(ctx context.Context, l *line) {
	r := routesOf(func(ctx context.Context, rec *sluice.Record) error { return s.handle(ctx, l, rec) }, "job")
	c, err := New(l.config(), r, Options{
		Queues: []string{"jobs", "jobs.fifo"}, DeadLetter: s, Concurrency: 1 + s.draw(30), MaxReceives: 1 + s.draw(20),
		Visibility: time.Duration(10+s.draw(60)) * time.Second, Grace: time.Duration(5+s.draw(20)) * time.Second,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		s.t.Error(err)
		return
	}
	_ = c.Run(ctx) // may fail to start
}

func (s *sim) run() {
	const messages = 40
	var all sync.WaitGroup
	all.Go(func() {
		for i := range messages {
			s.stub.send("jobs", body(i))
			s.stub.send("jobs.fifo", fmt.Sprintf("g%d/%s", s.draw(4), body(i)))
			time.Sleep(time.Duration(s.draw(20)) * time.Second)
		}
	})
	for range 3 {
		all.Go(func() {
			for range 4 + s.draw(6) {
				l := s.stub.dial()
				ctx, stop := context.WithCancel(s.t.Context())
				var running sync.WaitGroup
				running.Go(func() { s.process(ctx, l) })
				time.Sleep(time.Duration(s.draw(300)) * time.Second)
				if s.draw(2) == 0 {
					l.cut() // a crash: nothing it does from now on counts
				}
				stop()
				if l.isDead() {
					all.Go(running.Wait)
				} else {
					running.Wait()
				}
			}
		})
	}
	all.Wait()
	s.mu.Lock()
	s.calm = true
	s.mu.Unlock()
	ctx, stop := context.WithCancel(s.t.Context())
	all.Go(func() { s.process(ctx, s.stub.dial()) })
	for range 70 {
		time.Sleep(time.Hour)
		if len(s.stub.left("jobs"))+len(s.stub.left("jobs.fifo")) == 0 {
			break
		}
	}
	stop()
	all.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range s.stub.queues {
		for _, m := range q.ms {
			switch {
			case !m.gone:
				s.t.Errorf("%s is still there, received %d times", m.id, m.received)
			case !s.done[m.id] && !s.parked[m.id]:
				s.t.Errorf("%s was neither handled nor parked", m.id)
			}
		}
	}
}
