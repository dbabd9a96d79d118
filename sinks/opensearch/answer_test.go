package opensearch

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehq/sluice/effect/document"
)

func opsOf(ops []document.Op) asked { return func(i int) *document.Op { return &ops[i] } }

func TestParseAnswer(t *testing.T) {
	ops := []document.Op{put("i", "a", ""), del("i", `"<&>\`+"\x00é"), put("alias", "c", "")}
	results := make([]result, 3)
	// An answer without filter_path, with members that a cluster may add.
	err := parseAnswer([]byte(` {"took":30, "ingest_took":1,"errors":true,"x":{"y":[1,"]}",{"z":null}]},"items":[
		{"index":{"_index":"i","_id":"a","_version":1,"result":"created","_shards":{"total":2,"successful":1,"failed":0},"_seq_no":0,"_primary_term":1,"status":201}},
		{"delete":{"status":404,"_id":"\"<&>\\\u0000\u00e9","_index":"i"}},
		{"index":{"_index":"real-1","_id":"c","status":400,"error":{"type":"mapper_parsing_exception","reason":"failed: \"x\"\n","caused_by":{"type":"t","reason":"r"}}}}
	] } `), opsOf(ops), results)
	if err != nil {
		t.Fatal(err)
	}
	want := []result{{said: said{status: 201}, revision: document.Revision{SeqNo: 0, PrimaryTerm: 1}}, {said: said{status: 404}}, {said: said{400, "mapper_parsing_exception", "failed: \"x\"\n"}, index: "real-1"}}
	if diff := cmp.Diff(want, results, cmp.AllowUnexported(result{}, said{})); diff != "" {
		t.Error(diff)
	}
	// An error as a text, an error that is null, an item without a status.
	err = parseAnswer([]byte(`{"items":[{"index":{"_id":"a","error":"boom","status":500}},{"delete":{"_id":"\"<&>\\\u0000é","error":null}},{"index":{"_id":"c","status":200}}]}`), opsOf(ops), results)
	if err != nil {
		t.Fatal(err)
	}
	want = []result{{said: said{500, "", "boom"}}, {}, {said: said{status: 200}}}
	if diff := cmp.Diff(want, results, cmp.AllowUnexported(result{}, said{})); diff != "" {
		t.Error(diff)
	}
}

func TestParseAnswerRefuses(t *testing.T) {
	ops := []document.Op{put("i", "a", "")}
	const item = `{"index":{"_index":"i","_id":"a","status":201}}`
	for _, tt := range []struct {
		answer string
		want   error
	}{
		{"", errAnswer},
		{"null", errAnswer},
		{"[]", errAnswer},
		{"{}", errAnswer},
		{`{"errors":false}`, errAnswer},
		{`{"items":[` + item + `]`, errAnswer},
		{`{"items":[` + item + `]}}`, errAnswer},
		{`{"items":[` + item + `,]}`, errAnswer},
		{`{"items":[` + item + `} `, errAnswer},
		{`{"items":{}}`, errAnswer},
		{`{"items":[[]]}`, errAnswer},
		{`{"items":[{"index":[]}]}`, errAnswer},
		{`{"items":[{"index":{"_id":"a","status":"201"}}]}`, errAnswer},
		{`{"items":[{"index":{"_id":"a","status":-1}}]}`, errAnswer},
		{`{"items":[{"index":{"_id":"a","status":}}]}`, errAnswer},
		{`{"items":[{"index":{"_id":"a","x":}}]}`, errAnswer},
		{`{"items":[{"index":{"_id":"a","_index":7}}]}`, errAnswer},
		{`{"items":[{"index":{"_id":"a","x":"\`, errAnswer},
		{`{"items":[` + item + `],"x":NaN}`, errAnswer},
		{`{"items":[` + item + `],"x":01}`, errAnswer},
		{`{"items":[` + item + `],"x":[1 2]}`, errAnswer},
		{`{"items":[` + item + `],"x":[1,]}`, errAnswer},
		{`{"items":[` + item + `],"x":{"y":1,}}`, errAnswer},
		{`{"items":[` + item + `],"x":{"y"}}`, errAnswer},
		{`{"items":[` + item + `],"x":[}]}`, errAnswer},
		{`{"items":[` + item + `],"x":tru}`, errAnswer},
		{`{"items":[` + item + `],"x":"\x"}`, errAnswer},
		{`{"items":[` + item + `],"x":"\u12g4"}`, errAnswer},
		{`{"items":[` + item + `],"x":"` + "\x01" + `"}`, errAnswer},
		{`{"items":[` + item + `],"` + "\n" + `":1}`, errAnswer},
		{`{"items":[` + item + `],"x":` + strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001) + `}`, errAnswer},
		{`{"items":[` + item + `]}` + "\x00", errAnswer},
		{`{"items":[{"index":{"_id":"a","status":0201}}]}`, errAnswer},
		{`{"items":[{"index":{"_id":"a","status":201,"_shards":{"total":+1}}}]}`, errAnswer},
		{`{"items":[{"index":{"_id":"a","status":201,"error":nul}}]}`, errAnswer},
		{`{"items":[]}`, errOrder},
		{`{"items":[{}]}`, errOrder},
		{`{"items":[{"index":{}}]}`, errOrder},
		{`{"items":[{"index":{"_id":7}}]}`, errOrder},
		{`{"items":[{"index":{"_id":"A"}}]}`, errOrder},
		{`{"items":[{"index":{"_id":"a\u0000"}}]}`, errOrder},
		{`{"items":[{"delete":{"_id":"a"}}]}`, errOrder},
		{`{"items":[` + item + "," + item + `]}`, errOrder},
	} {
		if err := parseAnswer([]byte(tt.answer), opsOf(ops), make([]result, 1)); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.answer, err, tt.want)
		}
	}
}

// An ID that is sent as an escape is not answered as it is.
func TestParseAnswerRefusesUnescapedIDs(t *testing.T) {
	for _, id := range []string{"a\x01", `a"b`} {
		ops := []document.Op{put("i", id, "")}
		answer := `{"items":[{"index":{"_id":"` + id + `","status":201}}]}`
		if parseAnswer([]byte(answer), opsOf(ops), make([]result, 1)) == nil {
			t.Errorf("%s is taken", answer)
		}
	}
}

func BenchmarkParseAnswer(b *testing.B) {
	for _, bm := range []struct{ name, member string }{
		{"filtered", ""},
		{"whole", `,"_version":1,"result":"created","_shards":{"total":2,"successful":1,"failed":0},"_seq_no":0,"_primary_term":1`},
	} {
		b.Run(bm.name, func(b *testing.B) {
			ops := make([]document.Op, 1000)
			var answer strings.Builder
			answer.WriteString(`{"took":1,"errors":false,"items":[`)
			for i := range ops {
				ops[i] = put("alias", fmt.Sprintf("search|%08d", i), "")
				if i > 0 {
					answer.WriteString(",")
				}
				fmt.Fprintf(&answer, `{"index":{"_index":"real","_id":"search|%08d"%s,"status":201}}`, i, bm.member)
			}
			answer.WriteString("]}")
			text, op, results := []byte(answer.String()), opsOf(ops), make([]result, len(ops))
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if err := parseAnswer(text, op, results); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestParseAnswerDoesNotAllocate(t *testing.T) {
	ops := make([]document.Op, 100)
	answer := `{"took":1,"errors":false,"items":[`
	for i := range ops {
		ops[i] = put("alias", fmt.Sprintf("id|%d", i), "")
		if i > 0 {
			answer += ","
		}
		answer += fmt.Sprintf(`{"index":{"_index":"real","_id":"id|%d","status":201}}`, i)
	}
	answer += "]}"
	b, op, results := []byte(answer), opsOf(ops), make([]result, len(ops))
	n := testing.AllocsPerRun(100, func() {
		if err := parseAnswer(b, op, results); err != nil {
			t.Fatal(err)
		}
	})
	if n > 12 {
		t.Errorf("%v allocations for 100 items", n)
	}
}

// If encoding/json refuses an answer, the parser must not report success. If both parse
// it, the results are equal.
func FuzzParseAnswer(f *testing.F) {
	f.Add([]byte(`{"took":1,"errors":false,"items":[{"index":{"_index":"i","_id":"a","status":201}},{"delete":{"_index":"j","_id":"\u0062","status":404,"error":{"type":"t","reason":"r"}}}]}`))
	f.Add([]byte(`{"items":[{"index":{"_id":"a"}},{"delete":{"_id":"b","error":"x","y":{"z":[1]}}}]}`))
	f.Add([]byte(`{"items":[{"index":{"_id":"b"}},{"delete":{"_id":"a"}}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		ops := []document.Op{put("i", "a", ""), del("i", "b")}
		results := make([]result, 2)
		if parseAnswer(b, opsOf(ops), results) != nil {
			return
		}
		if !json.Valid(b) {
			t.Fatalf("taken, but no JSON: %q", b)
		}
		var want struct {
			Items []map[string]struct {
				ID     string          `json:"_id"`
				Status json.RawMessage `json:"status"`
			} `json:"items"`
		}
		if json.Unmarshal(b, &want) != nil {
			return // such as a member of another kind, which is skipped here
		}
		if len(want.Items) != 2 {
			return // "items" twice
		}
		for i, op := range ops {
			it, ok := want.Items[i][op.Action.String()]
			if ok && it.ID == op.ID && len(it.Status) > 0 && string(it.Status) != fmt.Sprint(results[i].status) && results[i].status != 0 {
				var n int
				if json.Unmarshal(it.Status, &n) == nil && n != results[i].status {
					t.Errorf("status %d of %d, want %s", results[i].status, i, it.Status)
				}
			}
		}
	})
}
