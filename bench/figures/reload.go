//go:build unix

package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/sluicehq/sluice/bench/local"
)

// reloadFigures replaces the file of a daemon under load, whose route sends to another
// queue each time.
func (b *bench) reloadFigures(ctx context.Context) error {
	const table, reloads = "reload", 11
	if err := b.service.createTable(ctx, table); err != nil {
		return err
	}
	if _, err := b.service.enableStream(ctx, table); err != nil {
		return err
	}
	taken := &sends{first: make(chan string, reloads+1), times: map[string]*sent{}}
	queues := httptest.NewServer(taken)
	defer queues.Close()
	write := func(i int) error {
		text := fmt.Sprintf("source: {tables: [%s], start: TRIM_HORIZON}\nentityType: entityType\nsinks: {q: {sqs: {queue: q%d}}}\nroutes: [{name: send, on: \"search#*\", send: {to: q, body: record}}]\n"+
			"daemon: {state: %s, listen: \"off\", logFormat: json}\n", table, i, b.path(table))
		return os.WriteFile(b.path("reload.yaml"), []byte(text), 0o600)
	}
	if err := write(0); err != nil {
		return err
	}
	d, err := b.start(ctx, "sluice", []string{"SLUICE_ENDPOINT_SQS=" + queues.URL}, []string{"run", "--config", b.path("reload.yaml")})
	if err != nil {
		return err
	}
	defer d.Kill()
	writing, stop := context.WithCancel(ctx)
	failed := make(chan error, 1)
	go func() {
		for i := 0; ; i++ {
			if err := b.service.put(writing, table, i); err != nil {
				failed <- err
				return
			}
		}
	}()
	defer stop()
	for i := 0; ; i++ {
		select {
		case <-taken.first: // of the queue of this file
		case err := <-failed:
			return err
		case <-d.Ended():
			return d.Failure(fmt.Errorf("it ended by itself"))
		case <-time.After(patience):
			return d.Failure(fmt.Errorf("nothing is sent to queue q%d within %v", i, patience))
		}
		if i == reloads {
			break
		}
		time.Sleep(time.Second) // under load
		if err := write(i + 1); err != nil {
			return err
		}
		if err := d.Signal(syscall.SIGHUP); err != nil {
			return err
		}
	}
	stop()
	if err := d.Stop(); err != nil {
		return err
	}
	gaps := taken.gaps(reloads)
	fmt.Printf("cost reload_gap_ms %.0f\n", local.Median(gaps))
	b.logf("%d reloads: from %.0f to %.0f ms", reloads, slices.Min(gaps), slices.Max(gaps))
	return nil
}

// sends answers as SQS, and notes when messages come.
type sends struct {
	first chan string // queues, at their first message

	mu    sync.Mutex
	times map[string]*sent
}

type sent struct{ first, last time.Time }

// gaps returns the times, in milliseconds, from the last message of each queue to the
// first of the next.
func (s *sends) gaps(n int) (all []float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range n {
		old, next := s.times[fmt.Sprint("q", i)], s.times[fmt.Sprint("q", i+1)]
		all = append(all, next.first.Sub(old.last).Seconds()*1000)
	}
	return all
}

func (s *sends) note(queue string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.times[queue] == nil {
		s.times[queue] = &sent{first: now}
		s.first <- queue
	}
	s.times[queue].last = now
}

func (s *sends) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	local.ServeQueue(w, r, func(queue string, _ []local.Message) bool {
		s.note(queue)
		return true
	})
}
