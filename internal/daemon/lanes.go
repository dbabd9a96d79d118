package daemon

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/sluicehq/sluice/flow"
)

// lane is an item whose changes wait, as /lanes shows it.
type lane struct {
	Source     string  `json:"source"` // stream or backfill
	Table      string  `json:"table"`
	Shard      string  `json:"shard,omitempty"`
	Sequence   string  `json:"sequence,omitempty"` // number of the change that waits; a backfill has none
	Key        string  `json:"key"`                // a hash of the item's keys, the same for all of its changes while the process lives
	Route      string  `json:"route"`
	Attempts   int     `json:"attempts"`
	AgeSeconds float64 `json:"ageSeconds"`
	Bytes      int64   `json:"bytes"` // of the change and those behind it
	Stuck      bool    `json:"stuck"` // its handler does not return
	Error      string  `json:"error,omitempty"`

	age time.Duration
}

func laneOf(source, table, shard string, h flow.Held) lane {
	l := lane{
		Source: source, Table: table, Shard: shard, Sequence: string(h.Sequence), Key: fmt.Sprintf("%016x", h.KeyHash), Route: h.Route, Attempts: h.Attempts,
		AgeSeconds: h.Age.Seconds(), Bytes: h.Bytes, Stuck: h.Stuck, age: h.Age,
	}
	l.Error = plain(h.Err)
	return l
}

// lanes answers with the items that wait, the oldest first.
func lanes(held func() []lane) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		all := held()
		if wantsJSON(r) {
			if all == nil {
				all = []lane{}
			}
			writeJSON(w, map[string]any{"lanes": all})
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		if len(all) == 0 {
			fmt.Fprintln(w, "no item is held")
			return
		}
		t := rows(w)
		fmt.Fprintln(t, "TABLE\tSHARD\tSEQUENCE\tKEY\tROUTE\tATTEMPTS\tAGE\tBYTES\tERROR")
		for _, l := range all {
			why := firstLine(l.Error)
			if l.Stuck {
				why = strings.TrimSpace("its handler does not return " + why)
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%d\t%v\t%d\t%s\n", l.Table, cmp.Or(l.Shard, "-"), cmp.Or(l.Sequence, "-"), l.Key, cmp.Or(l.Route, "-"), l.Attempts, l.age.Round(time.Second), l.Bytes, why)
		}
		_ = t.Flush()
	})
}

// wantsJSON reports whether a client would rather have JSON than text.
func wantsJSON(r *http.Request) bool {
	if f := r.URL.Query().Get("format"); f != "" {
		return f == "json"
	}
	return strings.Contains(r.Header.Get("Accept"), "application/json")
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	_ = e.Encode(v) // the client may have gone
}

func rows(w io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(w, 0, 0, 2, ' ', 0) }

// firstLine keeps a table's row in one line, and short.
func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	s = strings.ReplaceAll(s, "\t", " ")
	if r := []rune(s); len(r) > 200 {
		return string(r[:199]) + "…"
	}
	return s
}
