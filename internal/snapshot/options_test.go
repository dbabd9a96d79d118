package snapshot

import (
	"math"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/state"
)

func TestOptions(t *testing.T) {
	for want, change := range map[string]func(*Options){
		"Options.Store is nil":                        func(o *Options) { o.Store = nil },
		`table "ab" has 2 characters`:                 func(o *Options) { o.Table = "ab" },
		`table "arn:aws:x/y": want a table's name`:    func(o *Options) { o.Table = "arn:aws:x/y" },
		"ScanOptions.Segments is 257: want 1 to 256":  func(o *Options) { o.Scan.Segments = 257 },
		"ScanOptions.Segments is -1":                  func(o *Options) { o.Scan.Segments = -1 },
		"ScanOptions.ReadUnits is NaN":                func(o *Options) { o.Scan.ReadUnits = math.NaN() },
		"ScanOptions.ReadUnits is -1":                 func(o *Options) { o.Scan.ReadUnits = -1 },
		"ScanOptions.Share is 1.5":                    func(o *Options) { o.Scan.Share = 1.5 },
		"ScanOptions.PageItems is -1":                 func(o *Options) { o.Scan.PageItems = -1 },
		"ScanOptions.Filter.Expression is empty":      func(o *Options) { o.Scan.Filter = &Filter{} },
		"ScanOptions.CallTimeout is -1ns":             func(o *Options) { o.Scan.CallTimeout = -1 },
		`Options.Name is "a/b"`:                       func(o *Options) { o.Name = "a/b" },
		"Options.Flow.Policy is Stop":                 func(o *Options) { o.Flow.Policy = flow.Stop },
		"Options.Window is -1":                        func(o *Options) { o.Flow.Window = -1 },
		"Options.GiveUpAfter is -1":                   func(o *Options) { o.GiveUpAfter = -1 },
		"Options.Grace is -1ns: want more than 0":     func(o *Options) { o.Grace = -1 },
		"Options.SaveEvery is -1ns: want more than 0": func(o *Options) { o.SaveEvery = -1 },
	} {
		o := testOptions(state.NewMemory())
		change(&o)
		if _, err := New(newStub(0).config(), routed(into(&seen{})), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := New(newStub(0).config(), nil, testOptions(state.NewMemory())); err == nil {
		t.Error("no matcher is needed")
	}
	for _, err := range Scan(t.Context(), newStub(0).config(), "?", ScanOptions{}) {
		if err == nil || !strings.Contains(err.Error(), `table "?"`) {
			t.Errorf("%v", err)
		}
	}
}
