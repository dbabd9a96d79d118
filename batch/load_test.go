package batch_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/batch"
)

// loaded is a service that refuses requests above its capacity, and takes 50 ms for
// others.
type loaded struct {
	mu                       sync.Mutex
	capacity                 int
	refusal                  error
	running, most            int
	taken, requests, refused int
}

func (s *loaded) commit(_ context.Context, items []int) []error {
	s.mu.Lock()
	if s.running >= s.capacity {
		s.refused++
		s.mu.Unlock()
		errs := make([]error, len(items))
		for i := range errs {
			errs[i] = s.refusal
		}
		return errs
	}
	s.running++
	s.most = max(s.most, s.running)
	s.requests++
	s.taken += len(items)
	s.mu.Unlock()
	time.Sleep(50 * time.Millisecond)
	s.mu.Lock()
	s.running--
	s.mu.Unlock()
	return nil
}

// callers send n items, each until it is taken.
func callers(t *testing.T, b *batch.Batcher[int], n int) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			for b.Do(t.Context(), i) != nil {
				time.Sleep(time.Duration(i%100) * time.Millisecond)
			}
		})
	}
	all.Wait()
}

func TestRefusalsForLoadMakeFewerAndFullerCommits(t *testing.T) {
	for _, capacity := range []int{1, 2, 4} {
		synctest.Test(t, func(t *testing.T) {
			s := &loaded{capacity: capacity, refusal: sluice.Overloaded(errors.New("429"))}
			b := batch.New(s.commit, nil, batch.Options{InFlight: 8})
			start := time.Now()
			callers(t, b, 10_000)
			ideal := 100 * 50 * time.Millisecond / time.Duration(capacity)
			if took := time.Since(start); took > 2*ideal {
				t.Errorf("capacity %d: took %v, possible are %v", capacity, took, ideal)
			}
			if full := s.taken / s.requests; full < 80 {
				t.Errorf("capacity %d: %d items a commit", capacity, full)
			}
			if s.refused > s.requests {
				t.Errorf("capacity %d: %d commits refused of %d", capacity, s.refused, s.requests+s.refused)
			}
			// The service has room again: so many commits run at a time as may.
			s.capacity = 8
			callers(t, b, 20_000)
			if s.most != 8 {
				t.Errorf("capacity %d, then 8: %d commits at a time", capacity, s.most)
			}
		})
	}
}

// An error that does not say that it is for load changes nothing.
func TestPlainFailuresLeaveTheSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &loaded{refusal: errors.New("down")}
		b := batch.New(s.commit, nil, batch.Options{InFlight: 8, Linger: time.Millisecond})
		var all sync.WaitGroup
		start := time.Now()
		for range 1000 {
			all.Go(func() { _ = b.Do(t.Context(), 1) })
		}
		all.Wait()
		if took := time.Since(start); took > 10*time.Millisecond {
			t.Errorf("took %v", took)
		}
	})
}

// A service that refuses everything gets single commits with pauses between
// them, and is found again within the longest pause.
func TestPausesBetweenRefusedCommits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &loaded{refusal: sluice.Overloaded(errors.New("429"))}
		b := batch.New(s.commit, nil, batch.Options{InFlight: 8})
		var end time.Time
		var all sync.WaitGroup
		all.Go(func() {
			for b.Do(t.Context(), 1) != nil {
			}
			end = time.Now()
		})
		time.Sleep(10 * time.Minute)
		s.mu.Lock()
		if s.refused < 150 || s.refused > 800 {
			t.Errorf("%d commits in 10 minutes", s.refused)
		}
		s.capacity = 1
		s.mu.Unlock()
		up := time.Now()
		all.Wait()
		if took := end.Sub(up); took > 4100*time.Millisecond {
			t.Errorf("taken %v after the service was back", took)
		}
	})
}

// hostile panics when it is looked at.
type hostile struct{ error }

func (hostile) As(any) bool { panic("As") }

func TestAnErrorThatPanicsReleasesTheCallers(t *testing.T) {
	b := batch.New(func(_ context.Context, items []int) []error { return []error{hostile{errors.New("x")}} }, nil, batch.Options{InFlight: 1})
	for range 3 {
		if err := b.Do(t.Context(), 1); err == nil {
			t.Fatal("no error")
		}
	}
}
