package router

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/internal/tally"
)

func TestMatchAppends(t *testing.T) {
	r := New(TypeFrom(Table(nil)))
	r.Handle("t#INSERT", nothing)
	dst := []*sluice.Route{{Name: "before"}}
	dst, err := r.Match(dst, &sluice.Record{EventName: sluice.Insert, Table: "t"})
	if err != nil || !slices.Equal(names(dst), []string{"before", "t#INSERT"}) {
		t.Errorf("Match = %q, %v", names(dst), err)
	}
}

func TestMatchErrors(t *testing.T) {
	undecodable := sluice.DecodeRecord([]byte(`{`))
	for name, tt := range map[string]struct {
		rec  *sluice.Record
		want string
	}{
		"undecodable":   {undecodable, undecodable.Err().Error()},
		"unknown event": {&sluice.Record{EventName: "DELETE", Table: "t", ShardID: "s", Sequence: "300000000000000000017"}, `table t, shard s, sequence number 300000000000000000017: unknown event name "DELETE"`},
		"resolver":      {&sluice.Record{EventName: sluice.Insert, Table: "bad"}, "type of the record: no such thing"},
	} {
		t.Run(name, func(t *testing.T) {
			r := New(TypeFrom(Func(func(rec *sluice.Record) (string, error) {
				if rec.Table == "bad" {
					return "", errors.New("no such thing")
				}
				return rec.Table, nil
			})))
			r.Handle("*#*", nothing)
			routes, err := r.Match(nil, tt.rec)
			if len(routes) != 0 || err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Match = %q, %v, want %q", names(routes), err, tt.want)
			}
			if name != "undecodable" && !sluice.IsPermanent(err) {
				t.Error("the error is not permanent")
			}
		})
	}
}

func TestUnroutedTellsWhy(t *testing.T) {
	var got []string
	r := New(TypeFrom(Table(map[string]string{"t": "known", "u": "other"})))
	var nobody int
	r.OnUnrouted(func(*sluice.Record, Reason) { nobody++ })
	r.OnUnrouted(func(rec *sluice.Record, why Reason) { got = append(got, fmt.Sprintf("%s: %v", rec.Table, why)) })
	r.Handle("known#INSERT", nothing, When(func(*sluice.Record) bool { return false }))
	r.Handle("*#REMOVE", nothing)
	for _, table := range []string{"t", "u", "without"} {
		for _, event := range []sluice.EventName{sluice.Insert, sluice.Remove} {
			routes, err := r.Match(nil, &sluice.Record{EventName: event, Table: table})
			if err != nil {
				t.Fatal(err)
			}
			if event == sluice.Remove && len(routes) != 1 {
				t.Errorf("%s: *#REMOVE did not take the record", table)
			}
		}
	}
	if want := []string{"t: filtered", "u: no route", "without: untyped"}; !slices.Equal(got, want) || nobody != 3 {
		t.Errorf("unrouted %q and %d, want %q", got, nobody, want)
	}
}

func TestCount(t *testing.T) {
	var got tally.Tally
	r := New(TypeFrom(Table(map[string]string{"t": "a", "u": "b"})))
	odd := When(func(rec *sluice.Record) bool { return recordtest.Nth(rec.Sequence)%2 == 1 })
	r.Handle("a#*", nothing, Name("odd"), odd)
	r.Handle("a#*", nothing, Name("all"))
	r.Handle("b#*", nothing, Name("odd b"), odd)
	r.Count(&got) // of an application that does what run.Main does, too
	r.Count(&got)
	for i := range 10 {
		for _, table := range []string{"t", "u", "v"} {
			if _, err := r.Match(nil, &sluice.Record{EventName: sluice.Insert, Table: table, Sequence: recordtest.Sequence(i)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if passed := got.By("sluice_filtered_total"); !maps.Equal(passed, map[string]int{"odd": 5, "odd b": 5}) {
		t.Errorf("passed over: %v", passed)
	}
	if none := got.By("sluice_unrouted_total"); !maps.Equal(none, map[string]int{"filtered": 5, "untyped": 10}) {
		t.Errorf("unrouted: %v", none)
	}
}

func TestRedriven(t *testing.T) {
	r := New(TypeFrom(Table(nil)))
	r.Handle("a#* b#*", nothing, Name("fenced"), Redrive())
	r.Handle("b#*", nothing, Name("plain"))
	rec := &sluice.Record{EventName: sluice.Insert, Table: "a", Origin: sluice.Redriven}
	if routes, err := r.Match(nil, rec); err != nil || !slices.Equal(names(routes), []string{"fenced"}) {
		t.Errorf("Match = %q, %v", names(routes), err)
	}
	rec.Table = "b"
	routes, err := r.Match(nil, rec)
	var refused *redriveError
	if !errors.As(err, &refused) || !slices.Equal(refused.Routes, []string{"plain"}) ||
		!sluice.IsPermanent(err) || !strings.Contains(err.Error(), "router.Redrive()") {
		t.Errorf("error %v", err)
	}
	if !slices.Equal(names(routes), []string{"fenced"}) {
		t.Errorf("beside the error: %q", names(routes))
	}
	rec.Origin = sluice.Replayed
	if routes, err := r.Match(nil, rec); err != nil || len(routes) != 2 {
		t.Errorf("replayed: Match = %q, %v", names(routes), err)
	}
}

func TestConcurrentFirstMatch(t *testing.T) {
	r := New(TypeFrom(Table(nil)))
	r.Handle("t#INSERT", nothing)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if routes, err := r.Match(nil, &sluice.Record{EventName: sluice.Insert, Table: "t"}); err != nil || len(routes) != 1 {
				t.Errorf("Match = %q, %v", names(routes), err)
			}
		})
	}
	wg.Wait()
}
