package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/internal/reindex"
	"github.com/sluicehq/sluice/item"
)

func TestLeftOut(t *testing.T) {
	for _, tt := range []struct {
		items, lines int
		last         string
	}{
		{1, 1, `left out: {"id":{"S":"0"}}: no such attribute`},
		{20, 20, `left out: {"id":{"S":"19"}}: no such attribute`},
		{250, 21, "left out: 230 more"},
	} {
		t.Run(fmt.Sprint(tt.items), func(t *testing.T) {
			var out strings.Builder
			l := leftOut{w: &out}
			for i := range tt.items {
				l.add(item.Of(item.String("id", fmt.Sprint(i))), errors.New("no such attribute"))
			}
			l.end()
			lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
			if len(lines) != tt.lines || lines[len(lines)-1] != tt.last {
				t.Errorf("%d lines, the last %q; want %d and %q", len(lines), lines[len(lines)-1], tt.lines, tt.last)
			}
		})
	}
}

// Items that do not get into an index are left out by a flag, which is named.
func TestIncomplete(t *testing.T) {
	err := incomplete(&reindex.IncompleteError{Index: "a-2", Failed: 3})
	if want := "3 items or documents do not get into index a-2: mend them, or the mapping, and start again, or skip them by --skip-failed"; !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	if err := incomplete(io.EOF); err != io.EOF {
		t.Errorf("another error: %v", err)
	}
}

// If parked records make the indices differ, the error says where to look and what to
// do.
func TestDiffering(t *testing.T) {
	err := differing(fmt.Errorf("swapping: %w", &reindex.NotEqualError{Comparison: reindex.Comparison{
		Current: "a-1", Other: "a-2", Differences: []reindex.Difference{{ID: "p-6", Other: 3}},
	}}))
	for _, want := range []string{
		"p-6: not in a-1, version 3 in a-2", "sluice dlq list", "redrive", "changes that are not handled yet", "Indices.Follow", "swap --force, finish",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("it does not say %q: %v", want, err)
		}
	}
	if err := differing(io.EOF); err != io.EOF {
		t.Errorf("another error: %v", err)
	}
	if err := differing(nil); err != nil {
		t.Errorf("none: %v", err)
	}
}

// Programs can read the step of a reindex, also after a step without work.
func TestReindexStatusJSON(t *testing.T) {
	search := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.HasPrefix(r.URL.Path, "/_cat/aliases/idle,"):
			io.WriteString(w, `[{"alias":"idle","index":"idle-1"}]`)
		case strings.HasPrefix(r.URL.Path, "/_cat/aliases/busy,"):
			io.WriteString(w, `[{"alias":"busy","index":"busy-1"},{"alias":"busy.also","index":"busy-2"}]`)
		case strings.HasPrefix(r.URL.Path, "/busy-2/_mapping"):
			io.WriteString(w, `{"busy-2":{"mappings":{"_meta":{"sluice":{"alias":"busy","from":"busy-1","filled":true}}}}}`)
		default:
			w.WriteHeader(http.StatusNotFound)
			io.WriteString(w, "{}")
		}
	}))
	defer search.Close()
	for _, tt := range []struct{ step, index, want string }{
		{"status", "idle", `{"alias":"idle","stage":"idle","current":"idle-1"}`},
		{"finish", "idle", `{"alias":"idle","stage":"idle","current":"idle-1"}`},
		{"abandon", "idle", `{"alias":"idle","stage":"idle","current":"idle-1"}`},
		{"status", "busy", `{"alias":"busy","stage":"filled","current":"busy-1","other":"busy-2"}`},
		{"rollback", "busy", `{"alias":"busy","stage":"filled","current":"busy-1","other":"busy-2"}`},
	} {
		var stdout, stderr bytes.Buffer
		exit := execute(t.Context(), []string{"reindex", tt.step, "--opensearch", search.URL, "--index", tt.index, "--json"}, func(string) string { return "" }, &stdout, &stderr)
		if exit != 0 || compact(t, stdout.Bytes()) != tt.want {
			t.Errorf("%s of %s: exit %d, %s%s", tt.step, tt.index, exit, &stdout, &stderr)
		}
	}
}

// The JSON of a comparison lists the differences.
func TestComparisonJSON(t *testing.T) {
	var stdout bytes.Buffer
	r := reindexing{search: search{route: routeFlag{cli: &cli{stdout: &stdout}}}, asJSON: true}
	for _, tt := range []struct {
		c    reindex.Comparison
		want string
	}{
		{reindex.Comparison{Current: "a-1", Other: "a-2", Counts: [2]int64{7, 7}, CountsEqual: true, Sampled: 5},
			`{"current":"a-1","other":"a-2","equal":true,"currentDocuments":7,"otherDocuments":7,"compared":5,"differences":[]}`},
		{reindex.Comparison{Current: "a-1", Other: "a-2", Counts: [2]int64{7, 8}, Differences: []reindex.Difference{
			{ID: "p<6", Other: 3}, {ID: "p-7", Routing: "x", Current: 2, Other: 2, Bodies: true, Path: "/title"},
		}},
			`{"current":"a-1","other":"a-2","equal":false,"currentDocuments":7,"otherDocuments":8,"compared":0,"differences":[` +
				`{"id":"p<6","currentVersion":0,"otherVersion":3},{"id":"p-7","routing":"x","currentVersion":2,"otherVersion":2,"path":"/title"}]}`},
	} {
		stdout.Reset()
		if err := r.tellComparison(tt.c); err != nil || compact(t, stdout.Bytes()) != tt.want {
			t.Errorf("%v, %s\nwant %s", err, &stdout, tt.want)
		}
	}
}

func compact(t *testing.T, text []byte) string {
	t.Helper()
	var b bytes.Buffer
	if len(text) > 0 {
		if err := json.Compact(&b, text); err != nil {
			t.Error(err)
		}
	}
	return b.String()
}
