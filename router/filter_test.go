package router

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/recordtest"
)

// passes reports whether a route with one option takes rec.
func passes(t *testing.T, o Option, rec sluice.Record) bool {
	t.Helper()
	r := New(TypeFrom(Table(nil)))
	r.Handle("*#* *#SNAPSHOT", nothing, o)
	routes, err := r.Match(nil, &rec)
	if err != nil {
		t.Fatal(err)
	}
	return len(routes) == 1
}

func TestChangedAndSet(t *testing.T) {
	const (
		bare   = `{"pk":{"S":"a"}}`
		active = `{"pk":{"S":"a"},"status":{"S":"active"}}`
		failed = `{"pk":{"S":"a"},"status":{"S":"failed"}}`
		number = `{"pk":{"S":"a"},"status":{"N":"1"}}`
		same   = `{"pk":{"S":"a"},"status":{"N":"1.0"}}`
		deep   = `{"pk":{"S":"a"},"m":{"M":{"l":{"L":[{"S":"x"},{"S":"y"}]}}}}`
		other  = `{"pk":{"S":"a"},"m":{"M":{"l":{"L":[{"S":"x"},{"S":"z"}]}}}}`
	)
	for _, tt := range []struct {
		name         string
		spec         recordtest.Spec
		path         string
		changed, set bool
	}{
		{"set", recordtest.Spec{Old: bare, New: active}, "status", true, true},
		{"removed", recordtest.Spec{Old: active, New: bare}, "status", true, false},
		{"another value", recordtest.Spec{Old: active, New: failed}, "status", true, false},
		{"another type", recordtest.Spec{Old: active, New: number}, "status", true, false},
		{"same value", recordtest.Spec{Old: active, New: active}, "status", false, false},
		{"same number", recordtest.Spec{Old: number, New: same}, "status", false, false},
		{"absent in both", recordtest.Spec{Old: bare, New: deep}, "status", false, false},
		{"in a list", recordtest.Spec{Old: deep, New: other}, "m.l.1", true, false},
		{"beside it in the list", recordtest.Spec{Old: deep, New: other}, "m.l.0", false, false},
		{"the map around it", recordtest.Spec{Old: deep, New: other}, "m", true, false},
		{"the whole path is new", recordtest.Spec{Old: bare, New: deep}, "m.l.1", true, true},
		{"INSERT with it", recordtest.Spec{New: active}, "status", true, true},
		{"INSERT without it", recordtest.Spec{New: bare}, "status", false, false},
		{"SNAPSHOT with it", recordtest.Spec{Event: sluice.Snapshot, New: active}, "status", true, true},
		{"REMOVE", recordtest.Spec{Old: active}, "status", false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			event := tt.spec.Event
			if event == sluice.Snapshot { // a stream has no such record
				tt.spec.Event = sluice.Insert
			}
			rec := recordtest.New(tt.spec)
			if event == sluice.Snapshot {
				rec.EventName, rec.Origin = event, sluice.Backfilled
			}
			if got := passes(t, Changed(tt.path), rec); got != tt.changed {
				t.Errorf("Changed: %v", got)
			}
			if got := passes(t, Changed("nowhere", tt.path), rec); got != tt.changed {
				t.Errorf("Changed of two: %v", got)
			}
			if got := passes(t, Set(tt.path), rec); got != tt.set {
				t.Errorf("Set: %v", got)
			}
		})
	}
}

func TestChangedIgnoring(t *testing.T) {
	for _, tt := range []struct {
		name     string
		old, new string
		want     bool
	}{
		{"only a stamp", `{"pk":{"S":"a"},"at":{"N":"1"}}`, `{"pk":{"S":"a"},"at":{"N":"2"}}`, false},
		{"a stamp comes", `{"pk":{"S":"a"}}`, `{"pk":{"S":"a"},"at":{"N":"2"}}`, false},
		{"a stamp goes", `{"pk":{"S":"a"},"at":{"N":"2"}}`, `{"pk":{"S":"a"}}`, false},
		{"only replication", `{"pk":{"S":"a"}}`, `{"pk":{"S":"a"},"aws:rep:deleting":{"BOOL":false},"aws:rep:updatetime":{"N":"1.5"},"aws:rep:updateregion":{"S":"eu-west-1"}}`, false},
		{"stamp and value", `{"pk":{"S":"a"},"at":{"N":"1"},"v":{"S":"x"}}`, `{"pk":{"S":"a"},"at":{"N":"2"},"v":{"S":"y"}}`, true},
		{"another attribute comes", `{"pk":{"S":"a"}}`, `{"pk":{"S":"a"},"v":{"S":"y"}}`, true},
		{"another attribute goes", `{"pk":{"S":"a"},"v":{"S":"y"}}`, `{"pk":{"S":"a"}}`, true},
		{"one for another", `{"pk":{"S":"a"},"v":{"S":"y"}}`, `{"pk":{"S":"a"},"w":{"S":"y"}}`, true},
		{"a stamp of that name deeper", `{"pk":{"S":"a"},"m":{"M":{"at":{"N":"1"}}}}`, `{"pk":{"S":"a"},"m":{"M":{"at":{"N":"2"}}}}`, true},
		{"order alone", `{"pk":{"S":"a"},"v":{"SS":["a","b"]}}`, `{"v":{"SS":["b","a"]},"pk":{"S":"a"}}`, false},
		{"a dotted name for the path", `{"a":{"M":{"b":{"S":"x"}}},"c":{"S":"x"}}`, `{"a":{"M":{"b":{"S":"x"}}},"a.b":{"S":"x"}}`, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := passes(t, ChangedIgnoring("at"), recordtest.New(recordtest.Spec{Old: tt.old, New: tt.new})); got != tt.want {
				t.Errorf("passes: %v", got)
			}
		})
	}
	if !passes(t, ChangedIgnoring("pk"), recordtest.New(recordtest.Spec{New: `{"pk":{"S":"a"}}`})) {
		t.Error("an INSERT is dropped")
	}
	if !passes(t, ChangedIgnoring("pk"), recordtest.New(recordtest.Spec{Old: `{"pk":{"S":"a"}}`})) {
		t.Error("a REMOVE is dropped")
	}
	if passes(t, ChangedIgnoring(), recordtest.New(recordtest.Spec{Old: `{}`, New: `{"aws:rep:updatetime":{"N":"1"}}`})) {
		t.Error("replication passes where nothing else is ignored")
	}
}

func TestTTL(t *testing.T) {
	const image = `{"pk":{"S":"a"}}`
	inserted := recordtest.New(recordtest.Spec{New: image, TTL: true})
	for _, tt := range []struct {
		name string
		rec  sluice.Record
		ttl  bool
	}{
		{"expired", recordtest.New(recordtest.Spec{Old: image, TTL: true}), true},
		{"deleted by a user, or expired in another Region", recordtest.New(recordtest.Spec{Old: image}), false},
		{"INSERT with the identity", inserted, false},
	} {
		if got := passes(t, OnlyTTL(), tt.rec); got != tt.ttl {
			t.Errorf("%s: OnlyTTL passes: %v", tt.name, got)
		}
		if got := passes(t, ExcludeTTL(), tt.rec); got == tt.ttl {
			t.Errorf("%s: ExcludeTTL passes: %v", tt.name, got)
		}
	}
}

func TestRegions(t *testing.T) {
	const from = `{"pk":{"S":"a"},"aws:rep:updateregion":{"S":"eu-west-1"}}`
	for _, tt := range []struct {
		name string
		spec recordtest.Spec
		want string
	}{
		{"replicated", recordtest.Spec{New: from}, "eu-west-1"},
		{"replicated deletion", recordtest.Spec{Old: from}, "eu-west-1"},
		{"of this Region", recordtest.Spec{New: `{"pk":{"S":"a"}}`}, "us-east-1"},
	} {
		rec := recordtest.New(tt.spec)
		rec.Region = "us-east-1"
		for _, region := range []string{"us-east-1", "eu-west-1"} {
			if got := passes(t, Regions("ap-south-1", region), rec); got != (region == tt.want) {
				t.Errorf("%s: Regions(%s) passes: %v", tt.name, region, got)
			}
		}
	}
}

func TestAllFiltersMustPass(t *testing.T) {
	for a := range 2 {
		for b := range 2 {
			both := func(c *config) {
				When(func(*sluice.Record) bool { return a == 1 })(c)
				When(func(*sluice.Record) bool { return b == 1 })(c)
			}
			if got := passes(t, both, recordtest.New(recordtest.Spec{})); got != (a+b == 2) {
				t.Errorf("filters %d and %d: passes: %v", a, b, got)
			}
		}
	}
}

func TestMissingImages(t *testing.T) {
	const image = `{"pk":{"S":"a"}}`
	insert := recordtest.Spec{Event: sluice.Insert}
	modify := recordtest.Spec{Event: sluice.Modify}
	remove := recordtest.Spec{Event: sluice.Remove}
	with := func(s recordtest.Spec, old, new string, view string) recordtest.Spec {
		s.Old, s.New, s.ViewType = old, new, view
		return s
	}
	for _, tt := range []struct {
		name   string
		option Option
		spec   recordtest.Spec
		want   string // missing; "" is none
	}{
		{"INSERT has no old image", NeedsBoth(), with(insert, "", image, "NEW_AND_OLD_IMAGES"), ""},
		{"REMOVE has no new image", NeedsBoth(), with(remove, image, "", "NEW_AND_OLD_IMAGES"), ""},
		{"MODIFY has both", NeedsBoth(), with(modify, image, image, "NEW_AND_OLD_IMAGES"), ""},
		{"MODIFY without the old image", Changed("x"), with(modify, "", image, "NEW_IMAGE"), "the old image"},
		{"MODIFY without the new image", NeedsBoth(), with(modify, image, "", "OLD_IMAGE"), "the new image"},
		{"MODIFY without images", ChangedIgnoring(), with(modify, "", "", "KEYS_ONLY"), "both images"},
		{"INSERT without images", NeedsNew(), with(insert, "", "", "KEYS_ONLY"), "the new image"},
		{"REMOVE without images", NeedsOld(), with(remove, "", "", "NEW_IMAGE"), "the old image"},
		{"the new one is enough", NeedsNew(), with(modify, "", image, "NEW_IMAGE"), ""},
		{"the old one is enough", NeedsOld(), with(modify, image, "", "OLD_IMAGE"), ""},
		{"the view type says less than there is", NeedsBoth(), with(modify, image, image, "NEW_IMAGE"), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := New()
			r.Handle("*#*", nothing, Name("before"))
			r.Handle("*#*", nothing, tt.option)
			rec := recordtest.New(tt.spec)
			routes, err := r.Match(nil, &rec)
			if len(routes) > 0 && err != nil {
				t.Errorf("%q beside the error", names(routes))
			}
			if tt.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			needs := "set the table's StreamViewType to " + r.Routes()[1].Needs.String()
			if !sluice.IsPermanent(err) || !strings.Contains(fmt.Sprint(err), "needs "+tt.want) ||
				!strings.Contains(fmt.Sprint(err), needs) || !strings.Contains(fmt.Sprint(err), "filter_test.go:") {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestChangedIgnoringDoesNotAllocate(t *testing.T) {
	r := New()
	r.Handle("search#MODIFY", nothing, ChangedIgnoring("at"))
	for _, more := range []string{`,"at":{"N":"1"}`, `,"aws:rep:updateregion":{"S":"x"}`, `,"other":{"S":"x"}`} {
		rec := benchRecord(more)
		dst := make([]*sluice.Route, 0, 1)
		if n := testing.AllocsPerRun(100, func() {
			if _, err := r.Match(dst, rec); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations a record", more, n)
		}
	}
}
