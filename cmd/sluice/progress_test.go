package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/snapshot"
)

// Lines show the progress and the remaining time. The pace counts this process's work
// only, not work before a restart.
func TestShow(t *testing.T) {
	at := time.Unix(1e9, 0)
	var out, errs bytes.Buffer
	s := newShow(false, &out, &errs)
	s.now = func() time.Time { return at }
	p := snapshot.Progress{Table: "orders", Items: 500, Settled: 500, TableItems: 1000, Segments: 4, Done: 1, Units: 12.6}
	s.progress(p)
	at = at.Add(time.Second)
	s.progress(p) // too early for another line
	at = at.Add(9 * time.Second)
	p.Settled, p.Items = 600, 650
	s.progress(p)
	at = at.Add(time.Second)
	p.Settled, p.Items, p.Done, p.Finished = 1100, 1100, 4, true
	s.progress(p)
	s.end(nil)
	want := `orders: 500 of about 1000 items, 1 of 4 segments, 13 read units
orders: 600 of about 1000 items, 1 of 4 segments, 13 read units, about 40s to go
orders: 1100 of about 1100 items, 4 of 4 segments, 13 read units, finished
`
	if errs.String() != want || out.Len() > 0 {
		t.Errorf("%s%s\nwant\n%s", errs.String(), out.String(), want)
	}

	errs.Reset()
	s = newShow(true, &out, &errs)
	p.Finished = false
	s.progress(p)
	out.Reset()
	p.Finished = true
	s.progress(p)
	s.end(nil)
	if got := out.String(); got != `{"table":"orders","items":1100,"settled":1100,"expectedItems":1000,"bytes":0,"readUnits":12.6,"segments":4,"segmentsDone":4,"finished":true}`+"\n" || errs.Len() > 0 {
		t.Errorf("%s%s", got, errs.String())
	}

	for asJSON, lines := range map[bool]int{false: 0, true: 1} {
		errs.Reset()
		out.Reset()
		s = newShow(asJSON, &out, &errs)
		s.progress(p)
		s.end(nil)
		if !strings.HasPrefix(errs.String(), "the backfill was finished before") || strings.Count(out.String(), `"finished":true`) != lines {
			t.Errorf("json %t: %q, %q", asJSON, out.String(), errs.String())
		}
	}
}
