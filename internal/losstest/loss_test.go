//go:build integration

package losstest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/handlers/projection"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/run"
	"github.com/sluicehq/sluice/sinks/opensearch"
	"github.com/sluicehq/sluice/state/boltstate"
	"github.com/sluicehq/sluice/streamtest"
)

// A table changes 8,000 times, and 100,000 times as a proof. A daemon writes the
// documents. Meanwhile their server is killed once (twice as a proof), refuses every
// request for a while, always refuses long ones, and breaks connections after its work.
// In the end table and index are equal, and no document ever became older.
func TestNothingIsLost(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	began := time.Now()
	told := func(what string) { t.Logf("%5.1fs  %s", time.Since(began).Seconds(), what) }
	localtest.OwnDynamoDB(t)
	server := localtest.OwnOpenSearch(t)
	tab, x := newTable(t), newIndex(t, server.URL)
	told("table and index are there")
	proxy := streamtest.NewProxy(t, server.URL)
	tooLong := spoil(proxy)

	w := &watch{}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	d := newDaemon(t, tab, x, proxy.URL(), w)
	running.Go(func() { d.run(ctx, t) })
	running.Go(func() { w.run(ctx, t, x) })
	running.Go(func() {
		if err := tab.fill(ctx); err != nil && ctx.Err() == nil {
			t.Error(err)
		}
		told("all changes are made")
	})

	await := func(what string, done func(writes, left int) bool) {
		t.Helper()
		localtest.Await(t, what, func() string {
			if d.ended.Load() {
				t.Fatal("the daemon ended by itself")
			}
			writes, left := w.count()
			if done(writes, left) {
				return ""
			}
			return fmt.Sprintf("%d writes, %d items left", writes, left)
		})
	}
	for _, at := range kills {
		await("enough is written for a kill", func(writes, _ int) bool { return writes >= at })
		server.Kill()
		w.died()
		told("killed")
		server.Start()
		told("started again")
	}
	await("the last version of every item is written", func(_, left int) bool { return left == 0 })
	told("all is written")
	stop()
	running.Wait()

	compare(t, tab, x, d.documents)
	d.noDeadLetters(t)
	long, done := int(tooLong.Load()), proxy.Counts()
	t.Logf("%d acknowledged writes of %d changes, %d looks; of %d requests %d were too long, %d refused, %d without their answer",
		w.writes, changes, w.looks, done.Requests, long, done.Answered-long, done.AnswersDropped)
	if long == 0 || done.Answered == long || done.AnswersDropped == 0 {
		t.Error("something that was to go wrong has not")
	}
	if w.looks == 0 {
		t.Error("nobody has looked at the documents")
	}
	told("compared")
}

// spoil makes the proxy misbehave, in addition to the server's faults. It counts the
// requests that were too long.
func spoil(proxy *streamtest.Proxy) *atomic.Int64 {
	var tooLong atomic.Int64
	bulk := func(r *http.Request, _ []byte) bool { return strings.HasSuffix(r.URL.Path, "/_bulk") }
	proxy.Fail(streamtest.ProxyFault{
		Match: func(r *http.Request, body []byte) bool {
			long := bulk(r, body) && len(body) > 41_000 // a large item beside a few others
			if long {
				tooLong.Add(1)
			}
			return long
		},
		Status: http.StatusRequestEntityTooLarge, Body: "Request Entity Too Large",
	})
	proxy.Fail(streamtest.ProxyFault{
		Match: bulk, After: 100, Times: 40, Status: http.StatusTooManyRequests,
		Body: `{"error":{"type":"circuit_breaking_exception","reason":"too much"},"status":429}`,
	})
	proxy.Fail(streamtest.ProxyFault{Match: bulk, Share: 0.1, Seed: 1, DropAnswer: true})
	return &tooLong
}

// daemon is an application with one projection.
type daemon struct {
	documents *projection.Projection
	state     string
	app       run.App
	env       map[string]string
	ended     atomic.Bool
}

const application = "losstest"

func newDaemon(t *testing.T, tab *table, x *index, url string, w *watch) *daemon {
	t.Helper()
	c, err := opensearch.Connect(opensearch.Connection{URLs: []string{url}})
	if err != nil {
		t.Fatal(err)
	}
	sink, err := opensearch.New(c, opensearch.Options{Timeout: 5 * time.Second}) // shorter than a start takes, so that the flow has to wait, too
	if err != nil {
		t.Fatal(err)
	}
	write := func(ctx context.Context, op document.Op) error {
		if err := sink.Write(ctx, op); err != nil {
			return err
		}
		return w.acknowledged(op)
	}
	p, err := projection.New(write, projection.Options{Index: x.name, ID: "{pk}", Version: projection.ByAttribute("rev")})
	if err != nil {
		t.Fatal(err)
	}
	r := router.New()
	r.Handle("thing#*", p.Handle, router.NeedsBoth())
	return &daemon{
		documents: p,
		state:     filepath.Join(t.TempDir(), "state.db"),
		app: run.App{
			Name: application, Tables: []string{tab.name},
			Routes: func(context.Context, run.Setup) (sluice.Matcher, error) { return r, nil },
		},
		env: map[string]string{
			"SLUICE_ENDPOINT_DYNAMODB": *localtest.DynamoDB(t).BaseEndpoint},
	}
}

// run is the daemon's whole life.
func (d *daemon) run(ctx context.Context, t *testing.T) {
	defer d.ended.Store(true)
	var log bytes.Buffer
	args := []string{"--start", "TRIM_HORIZON", "--listen", "off", "--state", d.state}
	if exit := run.Run(ctx, d.app, args, func(name string) string { return d.env[name] }, io.Discard, &log); exit != 0 {
		t.Errorf("exit %d; log:\n%s", exit, log.String())
	}
}

// noDeadLetters holds that the end was not reached by giving up.
func (d *daemon) noDeadLetters(t *testing.T) {
	t.Helper()
	s, err := boltstate.Open(d.state, boltstate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	letters, err := s.ListLetters(t.Context(), application, "", 3)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range letters {
		t.Errorf("dead letter %s: %.500s", l.ID, l.Data)
	}
}
