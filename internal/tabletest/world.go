package tabletest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/outcomes"
)

// World has tables, queues and a clock. It is used in a bubble of
// testing/synctest, where its waits take no time, and by one goroutine.
type World struct {
	DB

	// Twice hands over each record and message twice.
	Twice bool
	// Rand, if set, selects the next event among the ready ones: the first
	// record of each item, and all due messages. It repeats some of them, at
	// once or later.
	Rand *rand.Rand

	Sent   []Sent  // all that was sent
	Parked []error // what failed for good

	offset  time.Duration
	ready   []sluice.Record // of the streams
	waiting []*message
	ids     int
}

// Sent is a message that was sent.
type Sent struct {
	At    time.Time
	Queue string
	sluice.Message
}

type message struct {
	queue string
	due   time.Time
	m     sluice.Message
}

// NewWorld returns a world without tables, in which it is now.
func NewWorld(now time.Time) *World { return &World{offset: time.Until(now)} }

// Now is the world's time.
func (w *World) Now() time.Time { return time.Now().Add(w.offset).UTC() }

// Queue returns the way into a queue.
func (w *World) Queue(name string) func(context.Context, sluice.Message) error {
	return func(_ context.Context, m sluice.Message) error {
		if m.Delay < 0 || m.Delay > 15*time.Minute || m.Delay%time.Second != 0 {
			return sluice.Permanent(fmt.Errorf("no queue delays a message by %v", m.Delay))
		}
		w.Sent = append(w.Sent, Sent{w.Now(), name, m})
		w.enqueue(name, m)
		return nil
	}
}

func (w *World) enqueue(queue string, m sluice.Message) {
	w.ids++
	m.ID, m.Sent = fmt.Sprintf("m%d", w.ids), w.Now()
	w.waiting = append(w.waiting, &message{queue, w.Now().Add(m.Delay), m})
}

// Replay hands over records once more, as a source does that has lost its
// position.
func (w *World) Replay(recs ...sluice.Record) { w.ready = append(w.ready, recs...) }

// Run passes ready events to h until the given time, and returns when none is left
// that is ready by then.
func (w *World) Run(ctx context.Context, h sluice.Handler, until time.Time) error {
	for steps := 0; ; steps++ {
		if steps > 100_000 {
			return errors.New("tabletest: the world does not come to rest")
		}
		for _, rec := range w.Records() {
			rec.Created = rec.Created.Add(w.offset)
			w.ready = append(w.ready, rec)
		}
		due := w.due()
		switch {
		case len(w.ready) > 0 && (len(due) == 0 || w.Rand == nil || w.Rand.IntN(2) == 0):
			if err := w.record(ctx, h); err != nil {
				return err
			}
		case len(due) > 0:
			m := due[0]
			if w.Rand != nil {
				m = due[w.Rand.IntN(len(due))]
			}
			if err := w.message(ctx, h, m); err != nil {
				return err
			}
		default:
			next := until
			for _, m := range w.waiting {
				if m.due.Before(next) {
					next = m.due
				}
			}
			wait := next.Sub(w.Now())
			if wait <= 0 {
				return nil
			}
			time.Sleep(wait)
		}
	}
}

func (w *World) due() []*message {
	var due []*message
	for _, m := range w.waiting {
		if !m.due.After(w.Now()) {
			due = append(due, m)
		}
	}
	slices.SortStableFunc(due, func(a, b *message) int { return cmp.Compare(a.due.UnixNano(), b.due.UnixNano()) })
	return due
}

// record hands over the next record of a stream until it is settled: as a shard
// does, it stands in the way of the later ones of its item.
func (w *World) record(ctx context.Context, h sluice.Handler) error {
	i := 0
	if w.Rand != nil {
		i = w.Rand.IntN(len(w.ready))
		for j := range w.ready[:i] {
			if w.ready[j].Table == w.ready[i].Table && w.ready[j].Keys.Equal(w.ready[i].Keys) {
				i = j
				break
			}
		}
	}
	rec := w.ready[i]
	w.ready = slices.Delete(w.ready, i, i+1)
	for range w.times() {
		for tries := 0; ; tries++ {
			err := h(ctx, &rec)
			if err == nil || sluice.IsSkip(err) {
				break
			}
			if sluice.IsPermanent(err) {
				w.Parked = append(w.Parked, err)
				break
			}
			if tries == 1000 {
				return fmt.Errorf("tabletest: a record is not settled: %w", err)
			}
			time.Sleep(wait(err))
		}
	}
	return nil
}

func (w *World) times() int {
	if w.Twice || w.Rand != nil && w.Rand.IntN(3) == 0 {
		return 2
	}
	return 1
}

func (w *World) message(ctx context.Context, h sluice.Handler, m *message) error {
	for range w.times() {
		m.m.Received++
		if m.m.Received > 1000 {
			return fmt.Errorf("tabletest: message %s is not settled", m.m.Body)
		}
		err := h(ctx, m.m.Record("arn:aws:sqs:eu-west-1:123456789012:"+m.queue))
		switch {
		case err == nil, sluice.IsSkip(err):
		case sluice.IsPermanent(err):
			w.Parked = append(w.Parked, err)
		default: // it stays in the queue
			m.due = w.Now().Add(wait(err))
			return nil
		}
	}
	w.waiting = slices.DeleteFunc(w.waiting, func(o *message) bool { return o == m })
	if w.Rand != nil && w.Rand.IntN(4) == 0 { // and comes again
		again := m.m
		again.Delay = time.Duration(w.Rand.IntN(900)) * time.Second
		w.enqueue(m.queue, again)
	}
	return nil
}

func wait(err error) time.Duration {
	if r, ok := errors.AsType[*outcomes.Retry](err); ok {
		return r.After
	}
	return time.Second
}
