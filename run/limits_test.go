package run

import (
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/flow"
)

func TestLimits(t *testing.T) {
	for _, tt := range []struct {
		l    Limits
		want string // "": valid
	}{
		{Limits{}, ""},
		{Limits{Concurrency: 1, Window: 2, WindowBytes: 3, MaxAhead: 4, Order: "item", StuckAfter: time.Second, MaxAge: 23 * time.Hour}, ""},
		{Limits{Order: "shard"}, ""},
		{Limits{Concurrency: -1}, "limits: concurrency is -1"},
		{Limits{Window: -2}, "limits: window is -2"},
		{Limits{WindowBytes: -3}, "limits: windowBytes is -3"},
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
	got := Limits{Concurrency: 1, Window: 2, WindowBytes: 3, MaxAhead: 4, Order: "shard", StuckAfter: time.Second, MaxAge: time.Hour}.flow()
	if got.Concurrency != 1 || got.Window != 2 || got.WindowBytes != 3 || got.MaxAhead != 4 || got.Order != flow.ByShard || got.StuckAfter != time.Second || got.MaxAge != time.Hour {
		t.Errorf("flow options %+v", got)
	}
	if (Limits{}).flow().Order != flow.ByItem || (Limits{Order: "item"}).flow().Order != flow.ByItem {
		t.Error("the default order is not that of items")
	}
}
