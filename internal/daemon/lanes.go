package daemon

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/holders"
)

// lane is an item whose changes wait, as /lanes shows it.
type lane struct {
	holders.Item
	age time.Duration
}

func laneOf(source, table, shard string, h flow.Held) lane {
	return lane{holders.Item{
		Source: source, Table: table, Shard: shard, Sequence: string(h.Sequence), Key: fmt.Sprintf("%016x", h.KeyHash), Route: h.Route, Attempts: h.Attempts,
		AgeSeconds: h.Age.Seconds(), Bytes: h.Bytes, Stuck: h.Stuck, Error: plain(h.Err),
	}, h.Age}
}

// lanes answers with the items that wait, the oldest first, and with what the list lacks.
func lanes(held func() (all []holders.Item, unlisted []string)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		all, unlisted := held()
		if wantsJSON(r) {
			writeJSON(w, map[string]any{"lanes": all, "unlisted": unlisted})
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		head := ""
		if slices.ContainsFunc(all, func(i holders.Item) bool { return i.Worker != "" }) {
			head = "WORKER\t"
		}
		t := rows(w)
		if len(all) == 0 {
			fmt.Fprintln(t, "no item is held")
		} else {
			fmt.Fprintln(t, head+"TABLE\tSHARD\tSEQUENCE\tKEY\tROUTE\tATTEMPTS\tAGE\tBYTES\tERROR")
		}
		for _, l := range all {
			why := firstLine(l.Error)
			if l.Stuck {
				why = strings.TrimSpace("its handler does not return " + why)
			}
			if head != "" {
				fmt.Fprintf(t, "%s\t", cmp.Or(l.Worker, "this one"))
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%d\t%v\t%d\t%s\n", l.Table, cmp.Or(l.Shard, "-"), cmp.Or(l.Sequence, "-"), cmp.Or(l.Key, "-"), cmp.Or(l.Route, "-"), l.Attempts, seconds(l.AgeSeconds), l.Bytes, why)
		}
		_ = t.Flush()
		for _, one := range unlisted {
			fmt.Fprintln(w, one)
		}
	})
}

func items(lanes []lane) []holders.Item {
	all := make([]holders.Item, len(lanes))
	for i, l := range lanes {
		all[i] = l.Item
	}
	return all
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
