package batch

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// service gets the commits of a seed. It decides the answer of each item, and checks
// the limits of commits.
type service struct {
	t                         *testing.T
	seed                      uint64
	maxItems, maxBytes, slots int

	mu     sync.Mutex
	rng    *rand.Rand
	slotsN int
	landed map[int]int // commits that held the item
	failed map[int]bool
}

func (s *service) size(item int) int { return item % 7 }

func (s *service) commit(ctx context.Context, items []int) []error {
	s.mu.Lock()
	s.slotsN++
	if s.slotsN > s.slots {
		s.t.Errorf("seed %d: %d commits at once, limit %d", s.seed, s.slotsN, s.slots)
	}
	bytes := 0
	for _, item := range items {
		bytes += s.size(item)
		s.landed[item]++
	}
	if len(items) == 0 || len(items) > s.maxItems {
		s.t.Errorf("seed %d: commit of %d items, limit %d", s.seed, len(items), s.maxItems)
	}
	if s.maxBytes > 0 && bytes > s.maxBytes && len(items) > 1 {
		s.t.Errorf("seed %d: commit of %d bytes, limit %d", s.seed, bytes, s.maxBytes)
	}
	if _, ok := ctx.Deadline(); !ok {
		s.t.Errorf("seed %d: commit without a deadline", s.seed)
	}
	took := time.Duration(s.rng.IntN(20)) * time.Millisecond
	fate := s.rng.IntN(14)
	var errs []error
	switch fate {
	case 0, 1, 2: // panic, Goexit, a wrong number of errors
		for _, item := range items {
			s.failed[item] = true
		}
	case 3, 4:
		errs = make([]error, len(items))
		for i := range errs {
			if s.rng.IntN(3) == 0 {
				errs[i] = errItem(items[i])
				s.failed[items[i]] = true
			}
		}
	}
	s.mu.Unlock()
	time.Sleep(took)
	s.mu.Lock()
	s.slotsN--
	s.mu.Unlock()
	switch fate {
	case 0:
		panic("commit")
	case 1:
		runtime.Goexit()
	case 2:
		return make([]error, len(items)+1)
	}
	return errs
}

type errItem int

func (e errItem) Error() string { return "item failed" }

// check compares an answer with the fate of the item.
func (s *service) check(item int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sent, failed := s.landed[item], s.failed[item]
	var own errItem
	switch {
	case sent > 1:
		s.t.Errorf("seed %d: item %d sent %d times", s.seed, item, sent)
	case err == nil && (sent == 0 || failed):
		s.t.Errorf("seed %d: item %d answered nil; sent %d times, failed %v", s.seed, item, sent, failed)
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		if sent != 0 {
			s.t.Errorf("seed %d: item %d said to be not sent, but was", s.seed, item)
		}
	case err != nil && !failed:
		s.t.Errorf("seed %d: item %d answered %v, but it is durable", s.seed, item, err)
	case errors.As(err, &own) && int(own) != item:
		s.t.Errorf("seed %d: item %d answered with the error of %d", s.seed, item, own)
	}
}

// With a linger for ever a lost signal is a deadlock, which synctest reports.
func TestSeedsNeverLoseASignal(t *testing.T) { neverLoseASignal(t, 250) }

func neverLoseASignal(t *testing.T, seeds uint64) {
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) { history(t, seed) })
		if t.Failed() {
			return
		}
	}
}

func history(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 7))
	var sinks []*Batcher[int]
	var services []*service
	for range 3 {
		s := &service{
			t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 11)),
			maxItems: 1 + rng.IntN(20), maxBytes: rng.IntN(2) * (1 + rng.IntN(30)), slots: 1 + rng.IntN(4),
			landed: map[int]int{}, failed: map[int]bool{},
		}
		services = append(services, s)
		sinks = append(sinks, New(s.commit, s.size, Options{
			MaxItems: s.maxItems, MaxBytes: s.maxBytes, InFlight: s.slots,
			Linger: -1, Timeout: time.Second,
		}))
	}
	var mu sync.Mutex
	last := 0
	ids := func(n int) []int {
		mu.Lock()
		defer mu.Unlock()
		items := make([]int, n)
		for i := range items {
			last++
			items[i] = last
		}
		return items
	}
	roll := func(n int) int { mu.Lock(); defer mu.Unlock(); return rng.IntN(n) }
	do := func(ctx context.Context) {
		k := roll(3)
		if roll(6) == 0 {
			items := ids(roll(30))
			errs := sinks[k].DoAll(ctx, items)
			if errs != nil && len(errs) != len(items) {
				t.Errorf("seed %d: %d errors for %d items", seed, len(errs), len(items))
			}
			for i, item := range items {
				var err error
				if errs != nil {
					err = errs[i]
				}
				services[k].check(item, err)
			}
			return
		}
		item := ids(1)[0]
		services[k].check(item, sinks[k].Do(ctx, item))
	}
	job := func(ctx context.Context) {
		switch roll(15) {
		case 0:
			runtime.Goexit()
		case 1: // waits for something that is no sink
			time.Sleep(time.Duration(roll(50)) * time.Millisecond)
		case 2: // several goroutines of one handler
			var wg sync.WaitGroup
			for range 3 {
				wg.Go(func() { do(ctx) })
			}
			wg.Wait()
		case 3: // leaves a goroutine behind that goes on with the context
			go do(ctx)
		case 4:
			c, cancel := context.WithTimeout(ctx, time.Duration(roll(10))*time.Millisecond)
			defer cancel()
			do(c)
			return
		case 5:
			c, cancel := context.WithCancel(ctx)
			go func() { time.Sleep(time.Duration(roll(10)) * time.Millisecond); cancel() }()
			do(c)
			return
		}
		for range roll(3) {
			do(ctx)
		}
	}
	var wg sync.WaitGroup
	var hosts []*host
	for range 1 + roll(3) {
		h := &host{limit: 1 + roll(16)}
		hosts = append(hosts, h)
		jobs := slices.Repeat([]func(context.Context){job}, 1+roll(100))
		wg.Go(func() {
			for page := range slices.Chunk(jobs, 30) {
				h.submit(page...)
			}
			h.wait()
		})
	}
	wg.Wait()
	time.Sleep(time.Hour)
	synctest.Wait()
	for _, h := range hosts {
		if !h.scope.Idle() || h.running != 0 {
			t.Errorf("seed %d: idle %v, %d running at the end", seed, h.scope.Idle(), h.running)
		}
		h.scope.Enter(1)
		if h.scope.Idle() {
			t.Errorf("seed %d: the scope's count ended below zero", seed)
		}
	}
	for i, b := range sinks {
		if b.open != nil || len(b.ready) != 0 || b.inFlight != 0 {
			t.Errorf("seed %d: sink %d ends with open %v, %d ready, %d in flight", seed, i, b.open != nil, len(b.ready), b.inFlight)
		}
	}
}
