package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/sluicehq/sluice/internal/page"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/streamtest"
)

// Page and metrics show the held records and the reason.
func TestDaemonTellsWhatItHolds(t *testing.T) {
	noAWS(t)
	svc := streamtest.NewService(t)
	table := svc.CreateTable("orders", streamtest.TableOptions{PartitionKey: "id"})
	c := startChild(t, "holding", nil, "--table", "orders", "--start", "TRIM_HORIZON", "--listen", "127.0.0.1:0", "--log-level", "debug", "--grace", "10s",
		"--state", filepath.Join(t.TempDir(), "state.db"), "--endpoint-dynamodb", svc.URL())
	c.until("shard started", 1)
	if code, body := c.ask("GET", "/api/held"); code != 200 || !strings.Contains(body, `"held": []`) || !strings.Contains(body, `"unlisted": []`) {
		t.Errorf("/api/held: %d %q", code, body)
	}
	for _, id := range []string{"held", "held", "poison", "well"} {
		table.Put(map[string]any{"id": id, "payload": "secret"})
	}
	c.until("msg=handled", 3) // all but the second of held

	_, body := c.ask("GET", "/api/held")
	var got page.HeldItems
	if err := json.Unmarshal([]byte(body), &got); err != nil || len(got.Held) != 1 {
		t.Fatalf("/api/held: %s, %v", body, err)
	}
	shard, seq := table.Shards()[0].ID, string(table.Changes()[0].Sequence)
	if l := got.Held[0]; l.Source != "stream" || l.Table != "orders" || l.Shard != shard || l.Sequence != seq || len(l.Key) != 16 || l.Route != "work" ||
		l.Attempts != 1 || l.Bytes <= 0 || l.Stuck || l.Error != "retry after 1h0m0s: not\tyet\nof all" {
		t.Errorf("lane %+v", l)
	}
	var text strings.Builder
	got.Text(&text)
	body = text.String()
	if row := regexp.MustCompile(`(?m)^orders +` + shard + ` +` + seq + ` +[0-9a-f]{16} +work +1 +\d+s +\d+ +retry after 1h0m0s: not yet`); !row.MatchString(body) || strings.Contains(body, "of all") {
		t.Errorf("as text: %s", body)
	}

	_, body = c.ask("GET", "/")
	for _, want := range []string{"holding, version ", "\nworker ", "\nready\n", "held items: 1 (sluice status --held)", "dead letters: 1\n  1 of table orders, route work (record)", "table orders: 1 shard, lag ", shard} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q in the status:\n%s", want, body)
		}
	}
	var st page.Status
	if _, body := c.ask("GET", "/api/status"); json.Unmarshal([]byte(body), &st) != nil || !st.Ready || st.Reasons == nil || st.Held != 1 || len(st.Tables) != 1 || st.Tables[0].Unsettled < 2 {
		t.Errorf("status in JSON: %s", body)
	}
	_, body = c.ask("GET", "/metrics")
	for _, want := range []string{
		"\nsluice_ready 1\n", "\nsluice_held_lanes{route=\"work\"} 1\n", "\nsluice_dead_letters{kind=\"record\",route=\"work\"} 1\n",
		"\nsluice_stream_shards{state=\"reading\",table=\"orders\"} 1\n", "\nsluice_time_to_loss_seconds{table=\"orders\"} 86",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q in the metrics", strings.TrimSpace(want))
		}
	}
	if strings.Contains(c.output(), "secret") {
		t.Error("the log holds what is in the items")
	}
	c.signal(syscall.SIGTERM)
	if code := c.exit(); code != 0 {
		t.Errorf("exit %d:\n%s", code, c.output())
	}
	http.DefaultClient.CloseIdleConnections()
}

// Dead letters are counted now and then for metrics, and anew for who asks if that is quick.
func TestLetterCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls, took := 0, time.Second
		var fail error
		l := &letterCounts{count: func(context.Context) ([]deadletter.Count, error) {
			calls++
			time.Sleep(took)
			if fail != nil {
				return nil, fail
			}
			return []deadletter.Count{{N: calls}}, nil
		}}
		get := func(every time.Duration) []deadletter.Count {
			counts, _ := l.get(every)
			return counts
		}
		for range 3 {
			if got := get(countEvery); calls != 1 || len(got) != 1 || got[0].N != 1 {
				t.Errorf("%d calls, %v", calls, got)
			}
		}
		time.Sleep(49 * time.Second)
		if get(0); calls != 1 {
			t.Error("counted again within fifty times the time that it took")
		}
		time.Sleep(2 * time.Second)
		took = 0
		if got := get(countEvery); calls != 2 || got[0].N != 2 {
			t.Errorf("%d calls, %v", calls, got)
		}
		time.Sleep(countEvery - time.Second)
		if get(countEvery); calls != 2 {
			t.Error("counted again for metrics within half a minute")
		}
		at := time.Now()
		if got, counted := l.get(0); calls != 3 || got[0].N != 3 || !counted.Equal(at) {
			t.Errorf("for who asks: %d calls, %v of %v", calls, got, counted)
		}
		time.Sleep(countEvery)
		fail = errors.New("disk")
		if got, counted := l.get(0); calls != 4 || got[0].N != 3 || !counted.Equal(at) {
			t.Errorf("after a failure: %d calls, %v of %v", calls, got, counted)
		}
	})
}

// A store that hangs hangs nobody who asks.
func TestLetterCountsOfAStoreThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		var calls atomic.Int64
		l := &letterCounts{count: func(context.Context) ([]deadletter.Count, error) {
			n := calls.Add(1)
			if n > 1 {
				<-hang
			}
			return []deadletter.Count{{N: int(n)}}, nil
		}}
		l.get(countEvery)
		for range 3 {
			time.Sleep(countEvery)
			start := time.Now()
			if got, _ := l.get(countEvery); calls.Load() != 2 || len(got) != 1 || got[0].N != 1 || time.Since(start) > countWithin {
				t.Errorf("%d calls, %v after %v", calls.Load(), got, time.Since(start))
			}
		}
		close(hang)
		synctest.Wait()
		if got, _ := l.get(countEvery); calls.Load() != 2 || got[0].N != 2 {
			t.Errorf("when it goes on: %d calls, %v", calls.Load(), got)
		}
	})
}

// The daemon as a whole: one record that fails makes it unready, and who asks
// reads why.
func TestOneRecordMakesTheDaemonUnready(t *testing.T) {
	noAWS(t)
	svc := streamtest.NewService(t)
	table := svc.CreateTable("orders", streamtest.TableOptions{PartitionKey: "id"})
	c := startChild(t, "broken", nil, "--table", "orders", "--start", "TRIM_HORIZON", "--listen", "127.0.0.1:0", "--grace", "1s",
		"--state", filepath.Join(t.TempDir(), "state.db"), "--endpoint-dynamodb", svc.URL())
	table.Put(map[string]any{"id": "a"})
	const want = `fails for 1 record since `
	localtest.Await(t, "/readyz", func() string {
		if code, body := c.ask("GET", "/readyz"); code != 503 || !strings.Contains(body, want) || !strings.Contains(body, "the sink is down") {
			return fmt.Sprint(code, " ", body)
		}
		return ""
	})
	if _, body := c.ask("GET", "/metrics"); !strings.Contains(body, "\nsluice_ready 0\n") {
		t.Error("metrics say that it is ready")
	}
	c.signal(syscall.SIGTERM)
	c.exit()
}
