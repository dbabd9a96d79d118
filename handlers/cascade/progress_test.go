package cascade

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/internal/tally"
)

func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := points(1000)
		w.took = time.Second
		c := w.config()
		w.inFlight, c.PageSize = 1, 500
		var mu sync.Mutex
		var told []Progress
		var at []time.Duration
		begun := time.Now()
		c.Progress = func(p Progress) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, p)
			at = append(at, time.Since(begun))
		}
		var counts tally.Tally
		c.Metrics = &counts
		var log bytes.Buffer
		c.Logger = slog.New(slog.NewTextHandler(&log, nil))
		x := must(t, c)
		if err := x.Remove(t.Context(), mapRemoved()); err != nil {
			t.Fatal(err)
		}
		if _, err := w.deliver(t.Context(), x.Work); err != nil {
			t.Fatal(err)
		}
		rows, sent := counts.Sum("sluice_cascade_deleted_rows_total"), counts.By("sluice_cascade_messages_total")
		if len(told) < 8 || rows != 1000 || fmt.Sprint(sent) != "map[points,hand-over:1 points,sweep:1]" {
			t.Errorf("told %d times, %d rows, sent %v", len(told), rows, sent)
		}
		for i, p := range told {
			if i > 0 && i < len(told)-1 && at[i]-at[i-1] < 5*time.Second {
				t.Errorf("told at %v and %v", at[i-1], at[i])
			}
			if p.Table != "points" || p.Parent != "maps/u-1/m-1" || p.Done != (i == len(told)-1) {
				t.Errorf("%+v", p)
			}
			if want := float64(p.Deleted) / p.Took.Seconds(); p.Rate != want {
				t.Errorf("rate %v, want %v", p.Rate, want)
			}
		}
		if last := told[len(told)-1]; last.Deleted != 1000 {
			t.Errorf("%+v", last)
		}
		if n := strings.Count(log.String(), "\n"); n != len(told) || !strings.Contains(log.String(), `level=INFO msg="cascade continues" table=points parent="(key hash `) || strings.Contains(log.String(), "m-1") {
			t.Errorf("%d lines:\n%s", n, log.String())
		}
	})
}

// The many small ones are not in the log.
func TestSmallCascadesAreQuiet(t *testing.T) {
	w := points(3)
	c := w.config()
	c.Threshold = DefaultThreshold
	var log bytes.Buffer
	c.Logger = slog.New(slog.NewTextHandler(&log, nil))
	x := must(t, c)
	if err := x.Remove(t.Context(), mapRemoved()); err != nil || log.Len() > 0 {
		t.Error(err, log.String())
	}
	if err := x.Work(t.Context(), record(sluice.Message{Body: body})); err != nil || strings.Count(log.String(), "\n") != 1 {
		t.Error(err, log.String())
	}
}

// The last line says how a cascade ended, and has a rate that people can read.
func TestLogSaysHowItEnded(t *testing.T) {
	for want, edit := range map[string]func(*world, *Config){
		`ended="no children left"`: func(*world, *Config) {},
		`ended="parent exists again"`: func(w *world, _ *Config) {
			w.onQuery = func(dynamo.Query) {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.tables["maps"].put(mapKey)
			}
		},
		`ended="more to do"`: func(_ *world, c *Config) { c.Budget, c.PageSize = time.Second, 10 },
		`ended=failed`: func(_ *world, c *Config) {
			c.Query = func(context.Context, dynamo.Query) (dynamo.Page, error) { return dynamo.Page{}, errDead }
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := points(100)
			w.took = 300 * time.Millisecond
			c := w.config()
			var log bytes.Buffer
			c.Logger = slog.New(slog.NewTextHandler(&log, nil))
			edit(w, &c)
			err := must(t, c).Work(t.Context(), record(sluice.Message{Body: body}))
			if !strings.HasSuffix(log.String(), want+"\n") {
				t.Errorf("%s: %v, %s", want, err, log.String())
			}
			if _, rate, _ := strings.Cut(log.String(), "rate="); len(strings.Fields(rate)[0]) > 5 {
				t.Errorf("rate %s", rate)
			}
		})
	}
}
