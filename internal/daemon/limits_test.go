package daemon

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/streamtest"
)

// A record that fails is parked before the stream forgets it.
func TestMaxAgeLeavesTimeToPark(t *testing.T) {
	for age, valid := range map[time.Duration]bool{23 * time.Hour: true, 24 * time.Hour: false} {
		o := testOptions("state.db")
		o.Tables, o.Limits = []string{"t"}, flow.Options{MaxAge: age}
		if err := o.validate(); (err == nil) != valid || err != nil && !strings.Contains(err.Error(), "want 23h0m0s at most") {
			t.Errorf("%v: %v", age, err)
		}
	}
}

// Limits reach the flows: in the order of the shard a record that is tried again
// holds up all that follow it, whose item it is not.
func TestLimitsReachTheFlows(t *testing.T) {
	noAWS(t)
	svc := streamtest.NewService(t)
	table := svc.CreateTable("orders", streamtest.TableOptions{PartitionKey: "id"})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var mu sync.Mutex
	var handled []string
	app := App{Name: "ordered", Routes: func(context.Context, Setup) (sluice.Matcher, error) {
		r := router.New()
		r.Handle("*#*", func(_ context.Context, rec *sluice.Record) error {
			mu.Lock()
			defer mu.Unlock()
			id, _ := rec.Keys.Lookup("id")
			handled = append(handled, id.Str())
			if id.Str() == "first" && len(handled) < 4 {
				return sluice.RetryAfter(20*time.Millisecond, errors.New("not yet"))
			}
			if id.Str() == "last" {
				stop()
			}
			return nil
		})
		return r, nil
	}}
	for _, id := range []string{"first", "second", "last"} {
		table.Put(map[string]any{"id": id})
	}
	o := testOptions(filepath.Join(t.TempDir(), "state.db"))
	o.Tables, o.Start, o.Endpoint, o.Limits = []string{"orders"}, "TRIM_HORIZON", svc.URL(), flow.Options{Order: flow.ByShard}
	o.startTimeout = 10 * time.Second
	if err := Run(ctx, app, o, environment(nil), io.Discard); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(handled, " "); got != "first first first first second last" {
		t.Errorf("handled %s", got)
	}
}
