package router

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/item"
)

func nothing(context.Context, *sluice.Record) error { return nil }

func names(routes []*sluice.Route) []string {
	var ns []string
	for _, rt := range routes {
		ns = append(ns, rt.Name)
	}
	return ns
}

func TestDuplicatePanicNamesBothSites(t *testing.T) {
	r := New()
	r.Handle("search#INSERT", nothing)
	defer func() {
		got := fmt.Sprint(recover())
		sites := regexp.MustCompile(`router_test\.go:(\d+)`).FindAllStringSubmatch(got, -1)
		if len(sites) != 2 || sites[0][1] == sites[1][1] || !strings.Contains(got, `route "search#INSERT" is already registered at`) {
			t.Errorf("panic = %s", got)
		}
	}()
	r.Handle("search#INSERT", nothing)
}

func TestAddErrors(t *testing.T) {
	for _, tt := range []struct {
		name     string
		patterns string
		h        sluice.Handler
		opts     []Option
		want     string
	}{
		{"malformed", "search#NEW", nothing, nil, `app.yaml:7: pattern "search#NEW": at byte 7: unknown event`},
		{"no handler", "search#INSERT", nil, nil, `pattern "search#INSERT": nil handler`},
		{"taken by default", "a#INSERT", nothing, nil, `app.yaml:7: route "a#INSERT" is already registered at app.yaml:3; give one of them another Name`},
		{"taken by name", "b#INSERT", nothing, []Option{Name("a#INSERT")}, "already registered at app.yaml:3"},
		{"empty name", "b#INSERT", nothing, []Option{Name("")}, `Name("")`},
		{"control in name", "b#INSERT", nothing, []Option{Name("a\nb")}, "without control characters"},
		{"attempts", "b#INSERT", nothing, []Option{Attempts(0)}, `route "b#INSERT": Attempts(0): want at least 1`},
		{"poison time", "b#INSERT", nothing, []Option{PoisonAfter(0)}, `route "b#INSERT": PoisonAfter(0s): want more than 0`},
		{"backoff", "b#INSERT", nothing, []Option{Backoff(time.Second, time.Millisecond)}, "Backoff(1s, 1ms)"},
		{"timeout", "b#INSERT", nothing, []Option{Timeout(-1)}, "Timeout(-1ns)"},
		{"concurrency", "b#INSERT", nothing, []Option{Concurrency(-2)}, "Concurrency(-2)"},
		{"rate", "b#INSERT", nothing, []Option{Rate(0, 1)}, "Rate(0, 1)"},
		{"rate not a number", "b#INSERT", nothing, []Option{Rate(math.NaN(), 1)}, "Rate(NaN, 1)"},
		{"burst", "b#INSERT", nothing, []Option{Rate(1, 0)}, "Rate(1, 0)"},
		{"age", "b#INSERT", nothing, []Option{MaxAge(0)}, "MaxAge(0s)"},
		{"when", "b#INSERT", nothing, []Option{When(nil)}, "When(nil)"},
		{"changed nothing", "b#INSERT", nothing, []Option{Changed()}, "Changed([]): want at least one attribute"},
		{"set empty", "b#INSERT", nothing, []Option{Set("")}, `Set([""])`},
		{"ignoring empty", "b#INSERT", nothing, []Option{ChangedIgnoring("")}, `ChangedIgnoring([""])`},
		{"regions", "b#INSERT", nothing, []Option{Regions()}, "Regions([])"},
		{"both TTL", "b#INSERT", nothing, []Option{OnlyTTL(), ExcludeTTL()}, "OnlyTTL and ExcludeTTL: no record passes both"},
		{"nil middleware", "b#INSERT", nothing, []Option{Use(nil)}, `route "b#INSERT": nil middleware`},
		{"middleware that drops the handler", "b#INSERT", nothing, []Option{Use(func(sluice.Handler) sluice.Handler { return nil })},
			`route "b#INSERT": middleware returned a nil handler`},
		{"all faults", "b#INSERT", nothing, []Option{Attempts(0), MaxAge(0)}, "Attempts(0): want at least 1\nMaxAge(0s)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := New()
			if err := r.Add("app.yaml:3", "a#INSERT", nothing); err != nil {
				t.Fatal(err)
			}
			err := r.Add("app.yaml:7", tt.patterns, tt.h, tt.opts...)
			if err == nil || !strings.HasPrefix(err.Error(), "app.yaml:7: ") || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want it to contain %q", err, tt.want)
			}
			if got := names(r.Routes()); !slices.Equal(got, []string{"a#INSERT"}) {
				t.Errorf("routes %q after a faulty Add", got)
			}
		})
	}
}

func TestSamePatternUnderTwoNames(t *testing.T) {
	r := New(TypeFrom(Table(nil)))
	r.Handle("t#MODIFY", nothing)
	r.Handle("t#MODIFY", nothing, Name("second"))
	got, err := r.Match(nil, &sluice.Record{EventName: sluice.Modify, Table: "t"})
	if err != nil || !slices.Equal(names(got), []string{"t#MODIFY", "second"}) {
		t.Errorf("Match = %q, %v", names(got), err)
	}
}

func TestHandleAfterUse(t *testing.T) {
	for name, use := range map[string]func(*Router){
		"Match":    func(r *Router) { r.Match(nil, &sluice.Record{EventName: sluice.Insert}) },
		"Routes":   func(r *Router) { r.Routes() },
		"Dispatch": func(r *Router) { r.Dispatch(context.Background(), &sluice.Record{EventName: sluice.Insert}) },
	} {
		r := New()
		use(r)
		if err := r.Add("x:1", "a#INSERT", nothing); err == nil || !strings.Contains(err.Error(), "after the router has been used") {
			t.Errorf("Add after %s: %v", name, err)
		}
	}
}

func TestRouteOptions(t *testing.T) {
	r := New(TypeFrom(Table(nil)))
	r.Handle("a#INSERT", nothing)
	r.Handle("a#INSERT b#*", nothing, Name("full"), Attempts(3), PoisonAfter(time.Hour), Backoff(time.Second, time.Minute), Timeout(2*time.Second),
		Concurrency(4), Rate(5, 6), MaxAge(time.Hour), Redrive(), NeedsOld())
	r.Handle("c#MODIFY  d#MODIFY", nothing, Changed("x"))
	got := r.Routes()
	full := *got[1]
	full.Handler = nil
	want := sluice.Route{Name: "full", Index: 1, Attempts: 3, PoisonAfter: time.Hour, Backoff: time.Second, MaxBackoff: time.Minute, Timeout: 2 * time.Second,
		Concurrency: 4, Rate: 5, Burst: 6, MaxAge: time.Hour, Redrive: true, Needs: item.OldImage}
	if fmt.Sprint(full) != fmt.Sprint(want) {
		t.Errorf("route %+v\nwant  %+v", full, want)
	}
	if got[0].Needs != item.KeysOnly || got[2].Needs != item.BothImages {
		t.Errorf("needs: %v, %v", got[0].Needs, got[2].Needs)
	}
	if got[2].Name != "c#MODIFY,d#MODIFY" || got[2].Index != 2 {
		t.Errorf("default name %q at %d", got[2].Name, got[2].Index)
	}
}

func TestMiddlewareOrder(t *testing.T) {
	var calls []string
	mw := func(name string) sluice.Middleware {
		return func(next sluice.Handler) sluice.Handler {
			return func(ctx context.Context, rec *sluice.Record) error {
				calls = append(calls, name)
				return next(ctx, rec)
			}
		}
	}
	r := New(TypeFrom(Table(nil)), Use(mw("1"), mw("2")))
	r.Handle("t#INSERT", nothing, Use(mw("3")), Use(mw("4")))
	if err := r.Dispatch(context.Background(), &sluice.Record{EventName: sluice.Insert, Table: "t"}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(calls, ""); got != "1234" {
		t.Errorf("called in order %s", got)
	}
}

func TestOptionsOfNew(t *testing.T) {
	r := New(TypeFrom(Table(nil)), Attempts(3), Timeout(time.Second), When(func(rec *sluice.Record) bool { return rec.Region == "here" }))
	r.Handle("t#INSERT", nothing, Name("like all"))
	r.Handle("t#INSERT", nothing, Name("other"), Attempts(5), When(func(rec *sluice.Record) bool { return rec.ShardID == "s" }))
	all := r.Routes()
	if all[0].Attempts != 3 || all[1].Attempts != 5 || all[0].Timeout != time.Second || all[1].Timeout != time.Second {
		t.Errorf("%+v and %+v", *all[0], *all[1])
	}
	for _, tt := range []struct {
		region, shard string
		want          []string
	}{
		{"here", "s", []string{"like all", "other"}},
		{"here", "other", []string{"like all"}},
		{"there", "s", nil},
	} {
		got, err := r.Match(nil, &sluice.Record{EventName: sluice.Insert, Table: "t", Region: tt.region, ShardID: tt.shard})
		if err != nil || !slices.Equal(names(got), tt.want) {
			t.Errorf("%s, shard %s: %q, %v", tt.region, tt.shard, names(got), err)
		}
	}
}

func TestOptionsInTheWrongPlace(t *testing.T) {
	if err := New().Add("app.yaml:3", "a#INSERT", nothing, TypeFrom(Table(nil))); err == nil || !strings.Contains(err.Error(), "give it to New") {
		t.Errorf("TypeFrom of a route: %v", err)
	}
	for want, o := range map[string]Option{`Name("a")`: Name("a"), "Attempts(0)": Attempts(0)} {
		func() {
			defer func() {
				if v := recover(); !strings.HasPrefix(fmt.Sprint(v), "router: New: "+want) {
					t.Errorf("panic = %v", v)
				}
			}()
			New(o)
		}()
	}
	defer func() {
		if v := recover(); !strings.Contains(fmt.Sprint(v), "ExcludeTTL and OnlyTTL") {
			t.Errorf("panic = %v", v)
		}
	}()
	New(ExcludeTTL()).Handle("a#REMOVE", nothing, OnlyTTL())
}

func TestNewRefusesZeroResolver(t *testing.T) {
	for name, f := range map[string]func(){
		"New":     func() { New(TypeFrom(Resolver{})) },
		"Chain":   func() { Chain(Table(nil), Resolver{}) },
		"ByTable": func() { ByTable(map[string]Resolver{"t": {}}) },
		"Func":    func() { Func(nil) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if v := recover(); !strings.Contains(fmt.Sprint(v), name) {
					t.Errorf("panic = %v", v)
				}
			}()
			f()
		})
	}
}
