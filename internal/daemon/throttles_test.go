package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/pauses"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/state"
	"github.com/sluicehq/sluice/streamtest"
)

// sharedValues are values that several workers share.
type sharedValues struct {
	*state.Memory
	mu    sync.Mutex
	news  uint64
	mute  bool // announcements are lost
	reads int
	fails error
}

// set changes how s behaves.
func (s *sharedValues) set(mute bool, fails error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mute, s.fails = mute, fails
}

func (s *sharedValues) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reads
}

func (s *sharedValues) GetValue(ctx context.Context, app, name string) ([]byte, bool, error) {
	s.mu.Lock()
	s.reads++
	err := s.fails
	s.mu.Unlock()
	if err != nil {
		return nil, false, err
	}
	return s.Memory.GetValue(ctx, app, name)
}

func (s *sharedValues) SwapValue(ctx context.Context, app, name string, seen, data []byte) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	have, ok, err := s.Memory.GetValue(ctx, app, name)
	if err != nil || ok != (seen != nil) || !bytes.Equal(have, seen) {
		return false, err
	}
	return true, s.PutValue(ctx, app, name, data)
}

func (s *sharedValues) Announce(context.Context, string) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mute {
		return []string{"other"}, nil
	}
	s.news++
	return nil, nil
}

func (s *sharedValues) News(string) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.news
}

// pausable is a process with the routes a and b.
type pausable struct {
	*throttles
	t   *testing.T
	log *bytes.Buffer
}

func startPausable(t *testing.T, ctx context.Context, store state.Values) *pausable {
	t.Helper()
	return startPausableWith(t, ctx, store, false)
}

// startPausableWith: more says that the process calls routes without a claim, too.
func startPausableWith(t *testing.T, ctx context.Context, store state.Values, more bool) *pausable {
	t.Helper()
	m := router.New()
	for _, name := range []string{"a", "b"} {
		m.Handle(name+"#*", func(context.Context, *sluice.Record) error { return nil }, router.Name(name))
	}
	p := &pausable{t: t, log: new(bytes.Buffer)}
	p.throttles = newThrottles(store, "app", flow.NewGroup(m), true, more, slog.New(slog.NewTextHandler(p.log, nil)))
	if err := p.refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	go p.watch(ctx)
	return p
}

func (p *pausable) paused(route string) bool {
	states := p.group.States()
	return states[slices.IndexFunc(states, func(s flow.RouteState) bool { return s.Route == route })].Throttle.Paused
}

func (p *pausable) want(when string, paused bool) {
	p.t.Helper()
	if got := p.paused("a"); got != paused {
		p.t.Errorf("%s: paused %v, want %v", when, got, paused)
	}
}

func (p *pausable) post(query string) (code int, a RouteChange, body string) {
	w := httptest.NewRecorder()
	p.routes("").ServeHTTP(w, httptest.NewRequest("POST", "http://127.0.0.1/routes/"+query, nil))
	_ = json.Unmarshal(w.Body.Bytes(), &a)
	return w.Code, a, w.Body.String()
}

// A pause takes effect on all workers within 5 s, and ends by itself on all. A worker
// that starts meanwhile ends it with the others. At rest a worker reads once a minute.
func TestPauseOfAFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer stop()
		store := &sharedValues{Memory: state.NewMemory()}
		one, two := startPausable(t, ctx, store), startPausable(t, ctx, store)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if store.reads < 20 || store.reads > 24 {
			t.Errorf("%d reads of two workers in 10 minutes at rest", store.reads)
		}
		code, a, _ := one.post("pause?route=a&for=1h")
		one.want("at once", true)
		if code != 200 || a.Route != "a" || !a.Paused || a.LeftSeconds != 3600 || a.Before != nil || a.State != "works" {
			t.Errorf("%d %+v", code, a)
		}
		time.Sleep(4 * time.Second)
		two.want("the other worker", true)
		time.Sleep(30 * time.Minute)
		three := startPausable(t, ctx, store)
		three.want("a new worker", true)
		time.Sleep(29*time.Minute + 50*time.Second)
		for _, w := range []*pausable{one, two, three} {
			w.want("before the end", true)
		}
		time.Sleep(10*time.Second + throttleTick)
		for _, w := range []*pausable{one, two, three} {
			w.want("after the end", false)
		}
		if all, err := pauses.Read(t.Context(), store, "app"); err != nil || len(all) > 0 {
			t.Errorf("stored after the end: %v, %v", all, err)
		}
		store.set(true, nil)
		if code, a, _ := two.post("slow?route=a&for=1h&concurrency=2&rate=0.5"); code != 200 || !strings.Contains(a.Warning, "other could not be told, and follow within a minute") {
			t.Errorf("%d %+v", code, a)
		}
		time.Sleep(61 * time.Second)
		if got, want := one.group.States()[0].Throttle, (flow.Throttle{Concurrency: 2, Rate: 0.5}); got != want {
			t.Errorf("a worker that was not told: %+v", got)
		}
		store.set(false, nil)
		if code, a, _ := one.post("resume?route=a"); code != 200 || a.Before == nil || a.Before.Rate != 0.5 || a.Throttled() {
			t.Errorf("%d %+v", code, a)
		}
		time.Sleep(4 * time.Second)
		synctest.Wait()
		if got := two.group.States()[0].Throttle; got != (flow.Throttle{}) || !strings.Contains(two.log.String(), "an operator has resumed it") {
			t.Errorf("after a resume: %+v\n%s", got, two.log)
		}
	})
}

// Whatever the clock of the operator's machine: a running worker counts by its own
// monotonic clock. A worker that starts goes by the wall clock, and goes on at the
// latest when a running one has removed the pause.
func TestPauseByWrongClocks(t *testing.T) {
	for name, c := range map[string]struct {
		wrong time.Duration // the clock of the operator's machine
		rest  time.Duration // of the pause, of a worker that starts in its middle
	}{
		"right":  {0, 30 * time.Minute},
		"ahead":  {24 * time.Hour, 30 * time.Minute},
		"behind": {-24 * time.Hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				defer synctest.Wait()
				defer stop()
				store := &sharedValues{Memory: state.NewMemory()}
				time.Sleep(time.Second)
				running := startPausable(t, ctx, store)
				time.Sleep(time.Minute)
				p := pauses.New("a", time.Hour, 0, 0)
				p.Since = p.Since.Add(c.wrong)
				if _, err := pauses.Set(t.Context(), store, "app", p); err != nil {
					t.Fatal(err)
				}
				time.Sleep(30 * time.Minute)
				starting := startPausable(t, ctx, &sharedValues{Memory: store.Memory})
				begin, ends := time.Now(), map[*pausable]time.Duration{}
				for time.Since(begin) < 2*time.Hour {
					for _, w := range []*pausable{running, starting} {
						if _, ended := ends[w]; !ended && !w.paused("a") {
							ends[w] = time.Since(begin)
						}
					}
					time.Sleep(time.Second)
				}
				about := func(got, want time.Duration) bool { return got >= want-62*time.Second && got <= want+62*time.Second }
				if !about(ends[starting], c.rest) || !about(ends[running], 30*time.Minute) {
					t.Errorf("the rest of the pause: %v of the starting worker, want %v; %v of the running one", ends[starting], c.rest, ends[running])
				}
			})
		})
	}
}

// While the state cannot be read, pauses stay, and end at their time.
func TestPauseWithoutItsState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer stop()
		store := &sharedValues{Memory: state.NewMemory()}
		w := startPausable(t, ctx, store)
		w.post("pause?route=a&for=1h")
		store.set(false, errors.New("no connection"))
		time.Sleep(59 * time.Minute)
		w.want("before the end", true)
		time.Sleep(time.Minute + time.Second)
		w.want("after the end", false)
		store.set(false, nil)
		time.Sleep(2 * time.Minute)
		w.want("after the end, with the state", false)
		if code, _, body := w.post("pause?route=a&for=1h"); code != 200 {
			t.Errorf("%d %s", code, body)
		}
		w.want("a second pause", true)
	})
}

// A worker that reads queues beside tables has no row before its first claim, so nobody
// can tell it. It follows within 5 s all the same.
func TestPauseOfAWorkerWithoutAClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer stop()
		store := &sharedValues{Memory: state.NewMemory(), mute: true}
		w := startPausableWith(t, ctx, store, true)
		time.Sleep(10 * time.Second)
		_, _ = pauses.Set(t.Context(), store, "app", pauses.New("a", time.Hour, 0, 0))
		time.Sleep(5 * time.Second)
		w.want("after 5 s", true)
		store.set(false, nil)
		_, _ = store.Announce(ctx, "app") // by its first claim
		time.Sleep(5 * time.Second)
		before := store.count()
		time.Sleep(10 * time.Minute)
		if n := store.count() - before; n > 11 {
			t.Errorf("%d reads in 10 minutes after the claim", n)
		}
	})
}

// hangingValues are values whose reads hang until their ctx ends.
type hangingValues struct {
	*sharedValues
	hangs chan struct{} // closed: they do
}

func (h *hangingValues) GetValue(ctx context.Context, app, name string) ([]byte, bool, error) {
	select {
	case <-h.hangs:
		<-ctx.Done()
		return nil, false, ctx.Err()
	default:
		return h.sharedValues.GetValue(ctx, app, name)
	}
}

// A pause ends at its time, though a request to the state hangs.
func TestPauseEndsWhileTheStateHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer stop()
		store := &hangingValues{&sharedValues{Memory: state.NewMemory()}, make(chan struct{})}
		w := startPausable(t, ctx, store)
		for _, route := range []string{"a", "b"} {
			if code, _, body := w.post("pause?for=1h&route=" + route); code != 200 {
				t.Fatal(code, body)
			}
			time.Sleep(time.Second)
		}
		close(store.hangs)
		time.Sleep(59 * time.Minute)
		w.want("before the end", true)
		time.Sleep(time.Minute + 2*time.Second)
		w.want("after the end", false)
		if w.paused("b") {
			t.Error("the second is still paused")
		}
	})
}

// localValues are values that one process changes.
type localValues struct {
	*state.Memory
	stored func()     // called once a value is stored
	fails  chan error // of the next reads
}

func (l *localValues) GetValue(ctx context.Context, app, name string) ([]byte, bool, error) {
	select {
	case err := <-l.fails:
		return nil, false, err
	default:
	}
	if ctx.Err() != nil {
		return nil, false, ctx.Err()
	}
	return l.Memory.GetValue(ctx, app, name)
}

func (l *localValues) PutValue(ctx context.Context, app, name string, data []byte) error {
	defer l.stored()
	return l.Memory.PutValue(ctx, app, name, data)
}

// A change that is stored takes effect, though the client does not wait for it, and
// though it cannot be read at first.
func TestStoredPauseTakesEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer stop()
		client, leave := context.WithCancel(t.Context())
		store := &localValues{Memory: state.NewMemory(), stored: leave, fails: make(chan error, 1)}
		w := startPausable(t, ctx, store)
		r := httptest.NewRequestWithContext(client, "POST", "http://127.0.0.1/routes/pause?route=a&for=1h", nil)
		w.routes("").ServeHTTP(httptest.NewRecorder(), r)
		w.want("after the client left", true)
		store.stored = func() { store.fails <- errors.New("no connection") }
		if code, _, _ := w.post("resume?route=a"); code == 200 {
			t.Errorf("resume: %d, though its effect is not known", code)
		}
		time.Sleep(3 * time.Second)
		w.want("after a read that failed", false)
	})
}

func TestPausingRefuses(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	w := startPausable(t, ctx, state.NewMemory())
	for query, want := range map[string]string{
		"pause?route=c&for=1h":                     `404 there is no route "c": want one of a, b`,
		"resume?route=c":                           `404 there is no route "c": want one of a, b`,
		"pause?route=a":                            `400 for: "" is no time`,
		"pause?route=a&for=13h":                    "400 for: 13h0m0s: want more than 0, and 12h0m0s at most",
		"pause?route=a&for=-1h":                    "400 for: -1h0m0s",
		"pause?route=a&for=1h&rate=1":              `400 there is no parameter "rate"`,
		"slow?route=a&for=1h":                      "400 want concurrency, rate, or both",
		"slow?route=a&for=1h&rate=NaN":             `400 rate: "NaN"`,
		"slow?route=a&for=1h&rate=1&concurrency=0": `400 concurrency: "0"`,
	} {
		if code, _, body := w.post(query); !strings.HasPrefix(strings.TrimSpace(strings.Join([]string{httpCode(code), body}, " ")), want) {
			t.Errorf("%s: %d %s, want %s", query, code, body, want)
		}
	}
	if all, err := pauses.Read(t.Context(), w.store, "app"); err != nil || len(all) > 0 {
		t.Errorf("stored: %v, %v", all, err)
	}
}

func httpCode(code int) string { return map[int]string{400: "400", 404: "404"}[code] }

// A daemon pauses a route, keeps the pause over a restart, and stops quickly meanwhile.
func TestDaemonPauses(t *testing.T) {
	noAWS(t)
	svc := streamtest.NewService(t)
	table := svc.CreateTable("orders", streamtest.TableOptions{PartitionKey: "id"})
	table.Put(map[string]any{"id": "one"})
	args := []string{"--table", "orders", "--start", "TRIM_HORIZON", "--listen", "127.0.0.1:0", "--grace", "10m",
		"--state", filepath.Join(t.TempDir(), "state.db"), "--endpoint-dynamodb", svc.URL()}
	c := startChild(t, "echo", nil, args...)
	c.until("handled one", 1)
	if code, _ := c.askWith("wrong-wrong-wrong", "POST", "/routes/pause?route=*%23*&for=1h"); code != 401 {
		t.Errorf("without the token: %d", code)
	}
	if code, body := c.ask("POST", "/routes/pause?route=*%23*&for=1h"); code != 200 || !strings.Contains(body, `"paused":true`) {
		t.Fatalf("pause: %d %s", code, body)
	}
	table.Put(map[string]any{"id": "two"})
	stop := func() {
		t.Helper()
		c.signal(syscall.SIGTERM)
		if code := c.exit(); code != 0 {
			t.Fatalf("exit %d:\n%s", code, c.output())
		}
	}
	stop()
	table.Put(map[string]any{"id": "three"})
	c = startChild(t, "echo", nil, args...)
	c.until("route paused by an operator", 1)
	for {
		if _, body := c.ask("GET", "/routes"); strings.Contains(body, `"waitingRecords":2`) && strings.Contains(body, `"trimSeconds":`) {
			break
		}
	}
	if code, body := c.ask("GET", "/readyz"); code != 200 {
		t.Errorf("a pause is no failure: %d %s", code, body)
	}
	if _, body := c.ask("GET", "/"); !strings.Contains(body, "route *#*: paused for ") {
		t.Errorf("the status: %s", body)
	}
	if _, body := c.ask("GET", "/metrics"); !strings.Contains(body, `sluice_route_paused{route="*#*"} 1`) {
		t.Error("no metric")
	}
	if strings.Contains(c.output(), "handled") {
		t.Errorf("handled in the pause:\n%s", c.output())
	}
	if code, body := c.ask("POST", "/routes/resume?route=*%23*"); code != 200 || !strings.Contains(body, `"before":{`) {
		t.Errorf("resume: %d %s", code, body)
	}
	c.until("handled two", 1)
	c.until("handled three", 1)
	stop()
}

// The routes of a new file have the pauses of now, whatever they inherited.
func TestPausesOfANewGroup(t *testing.T) {
	m := router.New()
	h := func(context.Context, *sluice.Record) error { return nil }
	m.Handle("a#*", h, router.Name("a"))
	m.Handle("b#*", h, router.Name("b"))
	var log bytes.Buffer
	th := newThrottles(state.NewMemory(), "shop", flow.NewGroup(m), false, false, slog.New(slog.NewTextHandler(&log, nil)))
	th.known = map[string]*running{"b": {Pause: pauses.New("b", time.Hour, 0, 0)}, "renamed": {Pause: pauses.New("renamed", time.Hour, 0, 0)}}
	next := flow.NewGroup(m)
	next.Throttle("a", flow.Throttle{Paused: true}) // which ended meanwhile
	th.use(next, false, false)
	if s := next.States(); s[0].Throttle.Paused || !s[1].Throttle.Paused {
		t.Errorf("a %+v, b %+v: want b alone paused", s[0].Throttle, s[1].Throttle)
	}
	if all := th.list().Routes; len(all) != 3 || all[1].Route != "b" || !all[1].Paused || all[2].Route != "renamed" || !all[2].Paused || all[2].State != "" {
		t.Errorf("listed: %+v, want the pause of the renamed route, too", all)
	}
	if text := log.String(); strings.Count(text, "a route that this daemon does not have") != 1 || !strings.Contains(text, "route=renamed") {
		t.Errorf("it logs %q", text)
	}
}
