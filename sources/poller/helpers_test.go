package poller

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"go.uber.org/goleak"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/state"
)

// child, when set, is what this test binary does when it was started by itself.
var child func()

func TestMain(m *testing.M) {
	if child != nil && os.Getenv(childEnv) != "" {
		child()
		return
	}
	goleak.VerifyTestMain(m, // but connections kept for the next call
		goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}

const childEnv = "SLUICE_POLLER_TEST_CHILD"

// one is a Matcher of one route that takes every record.
type one struct{ route *sluice.Route }

func (o one) Match(dst []*sluice.Route, _ *sluice.Record) ([]*sluice.Route, error) {
	return append(dst, o.route), nil
}
func (o one) Routes() []*sluice.Route { return []*sluice.Route{o.route} }

func matcher(h sluice.Handler) one { return one{&sluice.Route{Name: "test", Handler: h}} }

// sink notes what was handled, as "shard/number".
type sink struct {
	mu  sync.Mutex
	got []string
}

func short(rec *sluice.Record) string {
	return rec.ShardID + "/" + strings.TrimPrefix(string(rec.Sequence), stubBase)
}

func (s *sink) handle(_ context.Context, rec *sluice.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.got = append(s.got, short(rec))
	return nil
}

func (s *sink) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.got = nil
}

func (s *sink) all() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.got, " ")
}

// Park implements flow.DeadLetter.
func (s *sink) Park(ctx context.Context, rec *sluice.Record, _ sluice.Failure) error {
	return s.handle(ctx, rec)
}

var _ flow.DeadLetter = (*sink)(nil)

// of returns what was handled of the shards whose ids begin with one of letters.
func (s *sink) of(letters string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(slices.DeleteFunc(slices.Clone(s.got), func(g string) bool { return !strings.Contains(letters, g[:1]) }), " ")
}

// rig is one Poller on a stub within a bubble.
type rig struct {
	t    *testing.T
	p    *Poller
	stop context.CancelFunc
	done chan error
	over bool

	mu     sync.Mutex
	events []string // hooks, as "what shard …"
	lag    time.Duration

	openGaps int
}

// testOptions returns options with rare polls: a test that waits an hour asks less.
func testOptions(store state.Store, tables ...string) Options {
	o := Options{Store: store, Start: TrimHorizon, BusyInterval: time.Second, IdleInterval: 10 * time.Second, Logger: slog.New(slog.DiscardHandler)}
	for _, t := range tables {
		o.Streams = append(o.Streams, Stream{Table: t})
	}
	return o
}

func atDefaultPace(o Options) Options {
	o.BusyInterval, o.IdleInterval = 0, 0
	return o
}

// start runs a Poller; the rig's hooks note what happens.
func start(t *testing.T, s interface{ config() aws.Config }, h sluice.Handler, o Options) *rig {
	t.Helper()
	return startMatching(t, s, matcher(h), o)
}

func startMatching(t *testing.T, s interface{ config() aws.Config }, m one, o Options) *rig {
	t.Helper()
	r := &rig{t: t, done: make(chan error, 1)}
	note := func(format string, args ...any) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.events = append(r.events, fmt.Sprintf(format, args...))
	}
	o.Hooks = Hooks{
		Lineage:      o.Hooks.Lineage,
		ShardStarted: func(s Shard, after sluice.Sequence) { note("started %s", s.ID) },
		ShardEnded:   func(s Shard, e End) { note("%s %s", e, s.ID) },
		Dropped:      func(s Shard, n int) { note("dropped %s %d", s.ID, n) },
		Lag: func(_ Shard, lag time.Duration) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.lag = lag
		},
		Gap: func(g sluice.Gap) {
			if g.Next != "" {
				note("replaced")
				return
			}
			note("gap %s %s", g.ShardID, strings.TrimPrefix(string(g.After), stubBase))
		},
		OpenGaps: func(_ string, n int) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.openGaps = n
		},
	}
	p, err := New(s.config(), m, o)
	if err != nil {
		t.Fatal(err)
	}
	r.p = p
	t.Cleanup(r.checkMemory)
	var ctx context.Context
	ctx, r.stop = context.WithCancel(t.Context())
	go func() { r.done <- p.Run(ctx) }()
	synctest.Wait()
	return r
}

// end stops the Poller and returns what Run returned.
func (r *rig) end() error {
	r.t.Helper()
	r.stop()
	err := <-r.done
	r.over = true
	return err
}

// checkMemory finds what was not given back once Run and all handlers have
// returned.
func (r *rig) checkMemory() {
	if synctest.Wait(); !r.over {
		return
	}
	if m := r.p.memory(); m.Pinned != 0 || m.Waiting != 0 {
		r.t.Errorf("%d bytes of pages are taken and %d shards wait after the end", m.Pinned, m.Waiting)
	}
}

func (r *rig) mustEnd() {
	r.t.Helper()
	if err := r.end(); err != nil {
		r.t.Fatalf("Run: %v", err)
	}
}

func (r *rig) log() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.events, ", ")
}

func (r *rig) acknowledge() {
	r.t.Helper()
	if err := r.p.AcknowledgeGaps(r.t.Context(), r.p.Gaps()...); err != nil {
		r.t.Error(err)
	}
}

func (r *rig) ready() bool { return len(r.p.NotReady()) == 0 }

// unready fails unless health gives a reason with part in it, or, when part is
// empty, is ready.
func (r *rig) unready(part string) {
	r.t.Helper()
	h := r.p.NotReady()
	if reasons := strings.Join(h, "\n"); len(h) == 0 != (part == "") || !strings.Contains(reasons, part) {
		r.t.Errorf("ready %v, want the reason %q in: %s", len(h) == 0, part, reasons)
	}
}

func want(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\n got %s\nwant %s", what, got, want)
	}
}

// stored returns the positions of a table's shards, as "id@number", finished
// ones with a "!".
func stored(t *testing.T, s state.Store, table string) string {
	t.Helper()
	return storedOf(t, s, stubARN(table))
}

func storedOf(t *testing.T, s state.Store, arn string) string {
	t.Helper()
	shards, err := s.Shards(t.Context(), state.Stream{Application: "sluice", ARN: arn})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, sh := range shards {
		p := sh.ID + "@" + strings.TrimPrefix(sh.Position.Sequence, stubBase)
		if sh.Position.Finished {
			p += "!"
		}
		out = append(out, p)
	}
	return strings.Join(out, " ")
}

func bubble(t *testing.T, f func(t *testing.T)) { t.Helper(); synctest.Test(t, f) }

func pass(d time.Duration) { time.Sleep(d); synctest.Wait() }

// crowd makes a table of shards that hold so many records, of distinct items,
// with a text in each.
func crowd(s *stub, table string, shards, records int, text string) (all []*stubShard) {
	for i := range shards {
		sh := &stubShard{id: fmt.Sprintf("%s%04d", table, i), text: text}
		for n := range records {
			s.put(sh, fmt.Sprint(n))
		}
		all = append(all, sh)
	}
	s.table(table, all...)
	return all
}

// slowly makes days pass with fewer calls.
func slowly(o Options) Options {
	o.BusyInterval, o.IdleInterval, o.CheckpointEvery, o.HeartbeatEvery = 5*time.Second, 5*time.Second, 5*time.Second, 5*time.Second
	return o
}
