package page

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
)

const pageSize = 100 // rows

// part is a part of a long list.
type part struct {
	From, To, Total int // rows
	Before, After   string
}

// paged returns the part of a list of n rows that a request asks for by its parameter
// from.
func paged(r *http.Request, n int) part {
	from, _ := strconv.Atoi(r.URL.Query().Get("from"))
	from = max(0, min(from, n-1)) / pageSize * pageSize
	p := part{From: from, To: min(n, from+pageSize), Total: n}
	at := func(from int) string {
		q := r.URL.Query()
		q.Set("from", strconv.Itoa(from))
		return r.URL.Path + "?" + q.Encode()
	}
	if from > 0 {
		p.Before = at(from - pageSize)
	}
	if p.To < n {
		p.After = at(p.To)
	}
	return p
}

// shown is a shard in its place of the lineage.
type shown struct {
	Shard
	Depth int // below the first known ancestor
}

// descent orders shards so that each child comes after its parent, and the lines of
// descent stay together.
func descent(all []Shard) []shown {
	type key struct{ table, id string }
	known := make(map[key]bool, len(all))
	for _, s := range all {
		known[key{s.Table, s.ID}] = true
	}
	children := make(map[key][]Shard)
	var stack []shown
	sorted := slices.Clone(all)
	slices.SortFunc(sorted, func(a, b Shard) int { return cmp.Or(cmp.Compare(b.Table, a.Table), cmp.Compare(b.ID, a.ID)) })
	for _, s := range sorted {
		if parent := (key{s.Table, s.Parent}); s.Parent != "" && s.Parent != s.ID && known[parent] {
			children[parent] = append(children[parent], s)
		} else {
			stack = append(stack, shown{Shard: s})
		}
	}
	var ordered []shown
	for len(stack) > 0 {
		s := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		ordered = append(ordered, s)
		of := key{s.Table, s.ID}
		for _, child := range children[of] {
			stack = append(stack, shown{child, s.Depth + 1})
		}
		delete(children, of)
	}
	return ordered
}

// unsettled leaves out the shards that are settled to their end.
func unsettled(all []Shard) []Shard {
	return slices.DeleteFunc(slices.Clone(all), func(s Shard) bool { return s.State == Settled })
}

// worstShards are the n that lag most; those with an error, or at a gap, come first.
func worstShards(all []Shard, n int) []Shard {
	all = slices.Clone(all)
	rank := func(s Shard) int {
		switch {
		case s.State == Halted:
			return 2
		case s.Error != "":
			return 1
		}
		return 0
	}
	slices.SortStableFunc(all, func(a, b Shard) int {
		return cmp.Or(cmp.Compare(rank(b), rank(a)), cmp.Compare(b.LagSeconds, a.LagSeconds), cmp.Compare(a.Table, b.Table), cmp.Compare(a.ID, b.ID))
	})
	return all[:min(len(all), n)]
}

// shards shows the shards of all tables, or of one.
func (s *server) shards(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	table, order, settled := q.Get("table"), cmp.Or(q.Get("order"), "lineage"), q.Get("settled") == "1"
	var all []Shard
	hidden, tables := 0, []string{}
	for _, t := range s.Tables() {
		tables = append(tables, t.Table)
		if table != "" && t.Table != table {
			continue
		}
		shards := t.Shards
		if !settled {
			shards = unsettled(shards)
		}
		hidden += len(t.Shards) - len(shards)
		all = append(all, shards...)
	}
	var rows []shown
	if order == "lag" {
		for _, one := range worstShards(all, len(all)) {
			rows = append(rows, shown{Shard: one})
		}
	} else {
		rows = descent(all)
	}
	p := paged(r, len(rows))
	with := func(name, value string) string {
		q := url.Values{}
		for k, v := range map[string]string{"table": table, "order": q.Get("order"), "settled": q.Get("settled"), name: value} {
			if v != "" {
				q.Set(k, v)
			}
		}
		return "/page/shards?" + q.Encode()
	}
	return s.live(w, "shards", "Shards", struct {
		Table, Order, Other string
		Tables              []string
		Rows                []shown
		Hidden              int
		All                 string
		part
	}{table, order, with("order", map[string]string{"lag": "lineage"}[order]), tables, rows[p.From:p.To], hidden, with("settled", "1"), p})
}
