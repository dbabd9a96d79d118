package flow_test

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/batch"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/item"
)

// The wild tests run a flow with default options against a sink that fails as
// sinks do, in virtual time. A test describes the sink in a scene, sends
// traffic through the world that open returns, and checks the figures of
// world.end. `go test -v -run Wild` prints one line of figures a scenario.

var (
	errRefused = sluice.Overloaded(errors.New("429: too many requests"))
	errPlain   = errors.New("503: try later")
	errBroken  = errors.New("500: this record")
)

// trim is the age at which the stream loses a record.
const trim = 24 * time.Hour

// scene describes a sink. The zero value takes every record in 10 ms.
type scene struct {
	latency time.Duration // of a request (default 10 ms)

	// capacity is how many requests the sink works on at a time. It answers
	// refusal to any further one, in the time of refusing.
	capacity func(at time.Duration) int
	refusal  error         // default errRefused
	refusing time.Duration // default 2 ms

	// answer is the sink's answer to a request that it takes; at is when the
	// request began. wait is how long the answer takes beyond latency.
	answer func(at time.Duration, f *fate) error
	wait   func(at time.Duration, f *fate) time.Duration

	affected func(item int) bool // whose latency is reported apart from the healthy items'
	bad      func(f *fate) bool  // a record that belongs into the dead letters

	age     time.Duration // of the records when they are submitted, by our own clock
	ahead   time.Duration // of the stream's clock our own is
	timeout time.Duration // of the route
	bulks   bool          // records go through a batch.Batcher; a request is a bulk
}

// fate is what has become of one record.
type fate struct {
	item int
	nth  int           // among the records of its item, from 0
	due  time.Duration // when the source had it

	calls    int
	failures int
	called   time.Duration // of the first call
	failed   time.Duration // of the first failure
	ended    time.Duration // when it was settled or parked
	settled  bool
	parked   bool
}

// world is a flow before the sink of a scene. Times are counted from its begin.
type world struct {
	scene
	t     *testing.T
	begun time.Time
	flow  *flow.Flow
	group *flow.Group
	bulk  *batch.Batcher[*fate]

	mu       sync.Mutex
	fates    []*fate
	items    map[int]*changes
	busy     int // requests that the sink works on
	requests int // that it took
	refused  int
	taken    int // records in the requests that it took

	line []string // of figures, printed at the end
}

// changes counts the records of one item.
type changes struct {
	keys             sluice.Item
	submitted, ended int
	running          bool
}

// wild runs a scenario in virtual time, as a test of its own.
func wild(t *testing.T, name string, s scene, run func(w *world)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		if localtest.Elsewhere(t) { // TestSeeds has the race detector, batches and all
			return
		}
		synctest.Test(t, func(t *testing.T) {
			w := open(t, s)
			defer func() { t.Logf("%s: %s", t.Name(), strings.Join(w.line, "; ")) }()
			run(w)
		})
	})
}

func open(t *testing.T, s scene) *world {
	if s.latency == 0 {
		s.latency = 10 * time.Millisecond
	}
	if s.refusing == 0 {
		s.refusing = 2 * time.Millisecond
	}
	if s.refusal == nil {
		s.refusal = errRefused
	}
	w := &world{scene: s, t: t, begun: time.Now(), items: map[int]*changes{}}
	if s.bulks {
		w.bulk = batch.New(func(_ context.Context, fs []*fate) []error { return w.request(fs) }, nil, batch.Options{})
	}
	m := one{&sluice.Route{Name: "wild", Handler: w.handle, Timeout: s.timeout}}
	w.group = flow.NewGroup(m)
	w.flow = flow.Open(t.Context(), m, flow.Options{
		DeadLetter: (*letters)(w),
		Logger:     slog.New(slog.DiscardHandler),
		Group:      w.group,
		Clock:      func() time.Time { return time.Now().Add(-s.ahead) },
	})
	return w
}

// at is the time since the begin.
func (w *world) at() time.Duration { return time.Since(w.begun) }

// traffic submits rate records a second for d, of as many items in turn.
func (w *world) traffic(rate, items int, d time.Duration) {
	w.trafficOf(rate, d, func(n int) int { return n % items })
}

// trafficOf is traffic whose n-th record is of item pick(n).
func (w *world) trafficOf(rate int, d time.Duration, pick func(n int) int) {
	from := w.at()
	all := int(d.Seconds() * float64(rate))
	tick := max(1, rate/50) // records a time: a page every 20 ms at most
	for n := 0; n < all; n += tick {
		due := from + time.Duration(n)*time.Second/time.Duration(rate)
		time.Sleep(due - w.at())
		recs := make([]sluice.Record, 0, tick)
		for i := n; i < min(n+tick, all); i++ {
			recs = append(recs, w.record(pick(i), due))
		}
		w.submit(recs)
	}
}

// burst submits n records at once, of as many items in turn.
func (w *world) burst(n, items int) {
	recs := make([]sluice.Record, n)
	for i := range recs {
		recs[i] = w.record(i%items, w.at())
	}
	w.submit(recs)
}

// submitOne submits a record of item i.
func (w *world) submitOne(i int) { w.submit([]sluice.Record{w.record(i, w.at())}) }

// record makes the next change of an item.
func (w *world) record(i int, due time.Duration) sluice.Record {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.items[i]
	if c == nil {
		c = &changes{keys: item.Of(item.String("pk", strconv.Itoa(i)))}
		w.items[i] = c
	}
	f := &fate{item: i, nth: c.submitted, due: due}
	c.submitted++
	w.fates = append(w.fates, f)
	return sluice.Record{
		EventName: sluice.Modify,
		Table:     "t",
		Sequence:  recordtest.Sequence(len(w.fates)),
		Created:   w.begun.Add(due - w.age),
		Keys:      c.keys,
		SizeBytes: 500,
	}
}

func (w *world) submit(recs []sluice.Record) {
	if _, err := w.flow.Submit(w.t.Context(), recs...); err != nil {
		w.t.Errorf("Submit: %v", err)
	}
}

// fateOf finds the fate of a record. mu is held.
func (w *world) fateOf(rec *sluice.Record) *fate {
	return w.fates[recordtest.Nth(rec.Sequence)-1] // which panics where the page of rec was given back
}

// handle is the route's handler.
func (w *world) handle(ctx context.Context, rec *sluice.Record) error {
	f, c := w.begin(rec)
	var err error
	if w.bulk != nil {
		err = w.bulk.Do(ctx, f)
	} else {
		err = w.request([]*fate{f})[0]
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	c.running = false
	if err != nil && !sluice.IsSkip(err) {
		if f.failures++; f.failures == 1 {
			f.failed = w.at()
		}
		return err
	}
	f.settled, f.ended = true, w.at()
	c.ended++
	return err
}

// begin notes a call and holds that it is in order.
func (w *world) begin(rec *sluice.Record) (*fate, *changes) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := w.fateOf(rec)
	c := w.items[f.item]
	if f.calls++; f.calls == 1 {
		f.called = w.at()
	}
	if c.running || c.ended != f.nth {
		w.t.Errorf("change %d of item %d runs with %d ended; one runs beside it: %v", f.nth, f.item, c.ended, c.running)
	}
	c.running = true
	return f, c
}

// request is the sink's: it answers one error a record.
func (w *world) request(fs []*fate) []error {
	errs := make([]error, len(fs))
	w.mu.Lock()
	at := w.at()
	if w.capacity != nil && w.busy >= w.capacity(at) {
		w.refused++
		w.mu.Unlock()
		time.Sleep(w.refusing)
		for i := range errs {
			errs[i] = w.refusal
		}
		return errs
	}
	w.busy++
	w.requests++
	w.taken += len(fs)
	took := w.latency
	for i, f := range fs {
		if w.answer != nil {
			errs[i] = w.answer(at, f)
		}
		if w.wait != nil {
			took = max(took, w.latency+w.wait(at, f))
		}
	}
	w.mu.Unlock()
	time.Sleep(took)
	w.mu.Lock()
	w.busy--
	w.mu.Unlock()
	return errs
}

// letters are the dead letters of a world.
type letters world

func (l *letters) Park(_ context.Context, rec *sluice.Record, _ sluice.Failure) error {
	w := (*world)(l)
	w.mu.Lock()
	defer w.mu.Unlock()
	f := w.fateOf(rec)
	f.parked, f.ended = true, w.at()
	w.items[f.item].ended++
	return nil
}
