//go:build integration

package daemon

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/router"
)

func init() {
	// index prints the records that it handles, and handles backfilled items slowly.
	children["index"] = App{Name: "index", Routes: func(context.Context, Setup) (sluice.Matcher, error) {
		r := router.New()
		r.Handle("*#*", func(_ context.Context, rec *sluice.Record) error {
			id, _ := rec.Keys.Lookup("id")
			_, err := fmt.Println("changed", id.Str())
			return err
		})
		r.Handle("*#SNAPSHOT", func(_ context.Context, rec *sluice.Record) error {
			time.Sleep(5 * time.Millisecond)
			id, _ := rec.Keys.Lookup("id")
			_, err := fmt.Printf("read %s.\n", id.Str())
			return err
		}, router.Concurrency(1))
		return r, nil
	}}
	// refuses takes no item of a backfill.
	children["refuses"] = App{Name: "refuses", Routes: func(context.Context, Setup) (sluice.Matcher, error) {
		r := router.New()
		r.Handle("*#*", func(_ context.Context, rec *sluice.Record) error { _, err := fmt.Println("changed"); return err })
		r.Handle("*#SNAPSHOT", func(context.Context, *sluice.Record) error { return sluice.Permanent(errors.New("no version")) })
		return r, nil
	}}
}

// A daemon reads its table whole beside the stream, once: killed while it does,
// it goes on; when it is done, the flag does nothing any more.
func TestBackfill(t *testing.T) {
	const items = 300
	tb := newTable(t, images)
	for i := range items {
		tb.put(fmt.Sprint("item", i))
	}
	state := filepath.Join(t.TempDir(), "state.db")
	args := tb.args(state, "--start", "LATEST", "--backfill")
	c := startChild(t, "index", nil, args...)
	c.until("read ", 100)
	tb.put("live")
	c.until("changed live", 1)
	c.signal(syscall.SIGKILL)
	c.exit()
	first := c.output()

	c = startChild(t, "index", nil, args...)
	c.until("the backfill is finished", 1)
	both := first + "\n" + c.output()
	for i := range items {
		if !strings.Contains(both, fmt.Sprintf("read item%d.\n", i)) {
			t.Errorf("item%d was skipped", i)
		}
	}
	isFinished := func() {
		t.Helper()
		m := listening.FindStringSubmatch(c.output())
		if m == nil {
			t.Fatalf("no address:\n%s", c.output())
		}
		if code, body := get(t, "http://"+m[1]+"/readyz"); code != 200 {
			t.Errorf("%d %s", code, body)
		}
		if _, metrics := get(t, "http://"+m[1]+"/metrics"); !strings.Contains(metrics, fmt.Sprintf(`sluice_backfill_finished{backfill="",table="%s"} 1`, tb.name)) {
			t.Errorf("the metrics do not say that it is finished")
		}
	}
	isFinished()
	c.signal(syscall.SIGTERM)
	if code := c.exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}

	tb.put("later")
	c = startChild(t, "index", nil, args...)
	c.until("the backfill is finished: nothing is read", 1)
	c.until("changed later", 1)
	isFinished()
	c.signal(syscall.SIGTERM)
	c.exit()
	if strings.Contains(c.output(), "read item") {
		t.Errorf("it read the table again:\n%s", c.output())
	}
}

// Of two daemons one has the only segment of a small table. When it is killed, the other
// reads the rest.
func TestBackfillOfTwoDaemons(t *testing.T) {
	const items = 400
	tb, place := newTable(t, images), stateTable(t)
	for i := range items {
		tb.put(fmt.Sprint("item", i))
	}
	args := tb.args(place, "--start", "LATEST", "--backfill")
	first := startChild(t, "index", nil, args...)
	first.until("read ", 50)
	second := startChild(t, "index", nil, args...)
	first.until("read ", 100)
	first.signal(syscall.SIGKILL)
	first.exit()
	second.until("the backfill is finished", 1)
	both := first.output() + "\n" + second.output()
	for i := range items {
		if !strings.Contains(both, fmt.Sprintf("read item%d.\n", i)) {
			t.Errorf("item%d was skipped", i)
		}
	}
	third := startChild(t, "index", nil, args...)
	third.until("the backfill is finished: nothing is read", 1)
}

// The daemon reports an impossible backfill, and still reads the stream.
func TestBackfillThatIsRefused(t *testing.T) {
	tb := newTable(t, images)
	for i := range 150 {
		tb.put(fmt.Sprint("item", i))
	}
	state := filepath.Join(t.TempDir(), "state.db")
	c := startChild(t, "refuses", nil, tb.args(state, "--start", "LATEST", "--backfill")...)
	c.until("the backfill has ended before the table's end", 1)
	c.until("no version", 1)
	tb.put("live")
	c.until("changed", 1)
	m := listening.FindStringSubmatch(c.output())
	if code, body := get(t, "http://"+m[1]+"/readyz"); code != 503 || !strings.Contains(body, "the first 100 records failed for good") {
		t.Errorf("%d %s", code, body)
	}
	c.signal(syscall.SIGTERM)
	c.exit()

	expectExit(t, children["echo"], tb.args(state, "--backfill"), nil, 1, "--backfill (SLUICE_BACKFILL)", "no route takes SNAPSHOT records")
}
