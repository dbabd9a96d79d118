package router

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
)

// TestTableAgainstOracle compares the table with a loop over all patterns of
// all routes, on random route tables.
func TestTableAgainstOracle(t *testing.T) {
	types := []string{"a", "b", "a#b", "#", "c", "unknown", ""}
	eventWords := []string{"INSERT", "MODIFY", "REMOVE", "SNAPSHOT", "*"}
	origins := []sluice.Origin{sluice.Live, sluice.Replayed, sluice.Backfilled}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		r := New(TypeFrom(Table(nil)))
		var written [][]string // patterns of each route
		for i := range rng.IntN(8) {
			var ps []string
			for range 1 + rng.IntN(3) {
				typ := slices.Concat(types[:5], []string{"*"})[rng.IntN(6)]
				p := typ + "#" + eventWords[rng.IntN(len(eventWords))]
				if !slices.Contains(ps, p) {
					ps = append(ps, p)
				}
			}
			written = append(written, ps)
			r.Handle(strings.Join(ps, " "), nothing, Name(fmt.Sprint(i)))
		}
		for _, typ := range types {
			for _, event := range eventNames[:message] { // messages: see message_test.go
				for _, origin := range origins {
					got, err := r.Match(nil, &sluice.Record{EventName: event, Table: typ, Origin: origin})
					if err != nil {
						t.Fatal(err)
					}
					if want := oracle(written, typ, event, origin); !slices.Equal(names(got), want) {
						t.Fatalf("routes %q: %s#%s (%v) takes %q, want %q", written, typ, event, origin, names(got), want)
					}
				}
			}
		}
	}
}

func oracle(routes [][]string, typ string, event sluice.EventName, origin sluice.Origin) (matching []string) {
	if origin == sluice.Backfilled {
		event = sluice.Snapshot
	}
	for i, ps := range routes {
		for _, p := range ps {
			sep := strings.LastIndex(p, "#")
			if (p[:sep] == "*" || p[:sep] == typ) &&
				(p[sep+1:] == string(event) || p[sep+1:] == "*" && event != sluice.Snapshot) {
				matching = append(matching, fmt.Sprint(i))
				break
			}
		}
	}
	return matching
}

func TestUnknownTypesDoNotGrowTheTable(t *testing.T) {
	r := New(TypeFrom(Table(nil)))
	r.Handle("a#INSERT *#REMOVE", nothing)
	for i := range 1000 {
		if _, err := r.Match(nil, &sluice.Record{EventName: sluice.Remove, Table: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(r.fixed().exact); n != 1 {
		t.Errorf("the table holds %d types, want 1", n)
	}
}
