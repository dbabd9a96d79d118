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

func TestLimits(t *testing.T) {
	for _, tt := range []struct {
		l    Limits
		want string // "": valid
	}{
		{Limits{}, ""},
		{Limits{Concurrency: 1, Window: 2, WindowBytes: 3, HeldBytes: 5, MaxAhead: 4, Order: "item", StuckAfter: time.Second, MaxAge: 23 * time.Hour}, ""},
		{Limits{Order: "shard"}, ""},
		{Limits{Concurrency: -1}, "limits: concurrency is -1"},
		{Limits{Window: -2}, "limits: window is -2"},
		{Limits{WindowBytes: -3}, "limits: windowBytes is -3"},
		{Limits{HeldBytes: -3}, "limits: heldBytes is -3"},
		{Limits{MaxAhead: -4}, "limits: maxAhead is -4"},
		{Limits{StuckAfter: -time.Second}, "limits: stuckAfter is -1s"},
		{Limits{StuckAfter: time.Microsecond}, "limits: stuckAfter is 1µs: want 1ms at least"},
		{Limits{MaxAge: -time.Second}, "limits: maxAge is -1s"},
		{Limits{MaxAge: 24 * time.Hour}, "want 23h0m0s at most"},
		{Limits{Order: "key"}, `limits: order is "key": want item or shard`},
	} {
		err := tt.l.validate()
		if tt.want == "" {
			if err == nil {
				err = tt.l.flow().Validate()
			}
			if err != nil {
				t.Errorf("%+v: %v", tt.l, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %q", tt.l, err, tt.want)
		}
		o := testOptions("state.db")
		o.Tables, o.Limits = []string{"t"}, tt.l
		if err := o.validate(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("options with %+v: %v, want %q", tt.l, err, tt.want)
		}
	}
	got := Limits{Concurrency: 1, Window: 2, WindowBytes: 3, HeldBytes: 5, MaxAhead: 4, Order: "shard", StuckAfter: time.Second, MaxAge: time.Hour}.flow()
	if got.Concurrency != 1 || got.Window != 2 || got.WindowBytes != 3 || got.HeldBytes != 5 || got.MaxAhead != 4 || got.Order != flow.ByShard || got.StuckAfter != time.Second || got.MaxAge != time.Hour {
		t.Errorf("flow options %+v", got)
	}
	if (Limits{}).flow().Order != flow.ByItem || (Limits{Order: "item"}).flow().Order != flow.ByItem {
		t.Error("the default order is not that of items")
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
	o.Tables, o.Start, o.Endpoint, o.Limits = []string{"orders"}, "TRIM_HORIZON", svc.URL(), Limits{Order: "shard"}
	o.startTimeout = 10 * time.Second
	if err := Run(ctx, app, o, environment(nil), io.Discard); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(handled, " "); got != "first first first first second last" {
		t.Errorf("handled %s", got)
	}
}
