package streamtest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// tables is a server that does what BatchWriteItem says.
type tables struct {
	done   []string // table and write
	answer string   // of every request; default an empty UnprocessedItems
	status int
	others map[string]json.RawMessage // members of the last request
}

func (s *tables) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var all map[string][]json.RawMessage
	s.others = nil
	if err := json.Unmarshal(body, &s.others); err == nil {
		err = json.Unmarshal(s.others["RequestItems"], &all)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	for table, ws := range all {
		for _, w := range ws {
			s.done = append(s.done, table+string(w))
		}
	}
	if s.status != 0 {
		w.WriteHeader(s.status)
	}
	if s.answer == "" {
		s.answer = `{"UnprocessedItems":{}}`
	}
	io.WriteString(w, s.answer)
}

func TestUnprocessed(t *testing.T) {
	const batch = 25
	draw := func(seed uint64) (rounds []int) {
		s := &tables{}
		o := newOrigin(t, s.ServeHTTP)
		p, c := o.through(t)
		p.Fail(Unprocessed(0.3, seed))
		var want []string
		for n := range 20 {
			request := writes{}
			for i := range batch {
				table, write := fmt.Sprint("t", i%2), fmt.Sprintf(`{"PutRequest":{"Item":{"pk":{"N":"%d"}}}}`, n*batch+i)
				request[table] = append(request[table], json.RawMessage(write))
				want = append(want, table+write)
			}
			for left, round := batch, 1; left > 0; round++ {
				text, _ := json.Marshal(map[string]any{"RequestItems": request, "ReturnConsumedCapacity": "TOTAL"})
				before := len(s.done)
				answer := post(t.Context(), c, p.URL(), "BatchWriteItem", string(text))
				var out struct{ UnprocessedItems writes }
				if err := json.Unmarshal([]byte(answer), &out); err != nil {
					t.Fatalf("%s: %v", answer, err)
				}
				if string(s.others["ReturnConsumedCapacity"]) != `"TOTAL"` {
					t.Errorf("the server saw %v", s.others)
				}
				request, left = out.UnprocessedItems, 0
				for _, ws := range request {
					left += len(ws)
				}
				if done := len(s.done) - before; done == 0 {
					t.Fatal("nothing was done")
				}
				if left == 0 {
					rounds = append(rounds, round)
				}
			}
		}
		slices.Sort(s.done)
		slices.Sort(want)
		if !slices.Equal(s.done, want) {
			t.Errorf("%d writes were done, want each of %d once", len(s.done), len(want))
		}
		return rounds
	}
	first := draw(1)
	total := 0
	for _, n := range first {
		total += n
	}
	if total < 40 || total > 100 { // 25·0.3ⁿ < 1 for n = 3
		t.Errorf("batches took %v rounds", first)
	}
	if !slices.Equal(first, draw(1)) || slices.Equal(first, draw(2)) {
		t.Error("what is held back does not depend on the seed alone")
	}
}

func TestUnprocessedBesides(t *testing.T) {
	const one = `{"RequestItems":{"t":[{"DeleteRequest":{"Key":{"pk":{"N":"1"}}}}]}}`
	const two = `{"RequestItems":{"a":[1],"b":[2]}}`
	for _, tt := range []struct {
		name, op, request string
		server            tables
		want, done        string
	}{
		{"a single write is done", "BatchWriteItem", one, tables{}, `{"UnprocessedItems":{}}`, `t{"DeleteRequest":{"Key":{"pk":{"N":"1"}}}}`},
		{"one of two", "BatchWriteItem", two, tables{}, `{"UnprocessedItems":{"b":[2]}}`, `a1`},
		{"beside what the server did not do", "BatchWriteItem", two, tables{answer: `{"ConsumedCapacity":[],"UnprocessedItems":{"a":[1],"b":[3]}}`},
			`{"ConsumedCapacity":[],"UnprocessedItems":{"a":[1],"b":[3,2]}}`, `a1`},
		{"null", "BatchWriteItem", two, tables{answer: `{"UnprocessedItems":null}`}, `{"UnprocessedItems":{"b":[2]}}`, `a1`},
		{"none at all", "BatchWriteItem", two, tables{answer: `{}`}, `{"UnprocessedItems":{"b":[2]}}`, `a1`},
		{"an error of the server", "BatchWriteItem", two, tables{status: 400, answer: `{"__type":"x"}`}, `400 {"__type":"x"}`, `a1`},
		{"not JSON", "BatchWriteItem", two, tables{answer: `oh`}, `oh`, `a1`},
		{"a request that is none", "BatchWriteItem", `{"RequestItems":1}`, tables{}, "400 json: cannot unmarshal number into Go value of type map[string][]json.RawMessage\n", ``},
		{"another operation", "TransactWriteItems", two, tables{}, `{"UnprocessedItems":{}}`, `a1 b2`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := newOrigin(t, tt.server.ServeHTTP)
			p, c := o.through(t)
			p.Fail(Unprocessed(1, 1))
			wantText(t, "answer", post(t.Context(), c, p.URL(), tt.op, tt.request), tt.want)
			slices.Sort(tt.server.done)
			wantText(t, "done", strings.Join(tt.server.done, " "), tt.done)
		})
	}
}
