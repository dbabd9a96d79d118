package opensearch

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/sluicehq/sluice/effect/document"
)

func TestEncode(t *testing.T) {
	for _, tt := range []struct {
		op   document.Op
		want string
	}{
		{put("i", "a", `{"n":1}`), `{"index":{"_index":"i","_id":"a"}}` + "\n" + `{"n":1}` + "\n"},
		{putAt("i", "a", 9007199254740993, "{}"), `{"index":{"_index":"i","_id":"a","version":9007199254740993,"version_type":"external"}}` + "\n{}\n"},
		{document.Op{Action: document.Delete, Index: "i", ID: "a", Routing: "r", Fence: document.NewerOrEqual}, `{"delete":{"_index":"i","_id":"a","routing":"r","version":0,"version_type":"external_gte"}}` + "\n"},
		// Characters that JSON need not escape are sent unchanged.
		{del(`i<&>`, `<a href="x">&\é☃😀`+"\u2028"), `{"delete":{"_index":"i<&>","_id":"<a href=\"x\">&\\é☃😀` + "\u2028" + `"}}` + "\n"},
		{del("i", "a\x00\x1f\n\r\tb\x7f"), `{"delete":{"_index":"i","_id":"a\u0000\u001f\n\r\tb` + "\x7f" + `"}}` + "\n"},
		// A body of several lines becomes one line. Its strings stay unchanged.
		{put("i", "a", " {\n  \"a\" : \"x\\n\\u0000\\\" <&>\",\r\n\t\"b\":[1.50, 1e400]\n} \n"), `{"index":{"_index":"i","_id":"a"}}` + "\n" + `{"a":"x\n\u0000\" <&>","b":[1.50,1e400]}` + "\n"},
		{put("i", "a", `{"a":"\u2028 <&> `+"\u2028"+`"}`), `{"index":{"_index":"i","_id":"a"}}` + "\n" + `{"a":"\u2028 <&> ` + "\u2028" + `"}` + "\n"},
	} {
		if err := check(&tt.op); err != nil {
			t.Error(err)
		}
		var e encoder
		if err := e.add(&tt.op); err != nil || string(e.b) != tt.want {
			t.Errorf("%v\n%s, want\n%s", err, e.b, tt.want)
		}
	}
}

// An operation that encode refuses leaves no bytes in the request.
func TestEncodeLeavesOutWhatItRefuses(t *testing.T) {
	var e encoder
	for _, op := range []document.Op{put("i", "a", "{\n}"), put("i", "bad", "{\n\"a\n}"), put("j", "bad", "[]"), put("j", "b", "{}")} {
		if err := e.add(&op); (err != nil) != (op.ID == "bad") {
			t.Errorf("%s: %v", op.ID, err)
		}
	}
	if want := `{"index":{"_index":"i","_id":"a"}}` + "\n{}\n" + `{"index":{"_index":"j","_id":"b"}}` + "\n{}\n"; string(e.b) != want {
		t.Errorf("%s, want\n%s", e.b, want)
	}
}

func TestEncodeDoesNotAllocate(t *testing.T) {
	e := encoder{b: make([]byte, 0, 1<<20)}
	op := putAt("i", "a", 1<<60, `{"n":1}`)
	if n := testing.AllocsPerRun(100, func() { e.b = e.b[:0]; _ = e.add(&op) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// encoding/json reads every encoded operation back unchanged, on the expected number of
// lines.
func FuzzEncode(f *testing.F) {
	f.Add("i", "a", "", "{}", int64(0), byte(0))
	f.Add("i<&>", "a\"\\\x00\n", "r\u2028", "{\"a\":\n1}", int64(1)<<62, byte(1))
	f.Add("é", "\xff", "", "{\n\"a\":\"\n\"}", int64(-1), byte(2))
	f.Add("i", "a", "", " {\"a\":{\n}}\n{\"index\":{}} ", int64(3), byte(5))
	f.Fuzz(func(t *testing.T, index, id, routing, body string, version int64, kind byte) {
		op := document.Op{Action: document.Action(1 + kind&1), Index: index, ID: id, Routing: routing, Fence: document.Fence(kind >> 1 % 3), Body: []byte(body)}
		if op.Fence != document.NoFence {
			op.Version = version
		}
		neighbour := put("n", "n", "{}")
		var e encoder
		err := check(&op)
		if err == nil {
			err = e.add(&op)
		}
		if err != nil {
			if valid := json.Valid([]byte(body)) || op.Action == document.Delete; valid && strings.HasPrefix(strings.TrimSpace(body), "{") &&
				utf8.ValidString(index) && utf8.ValidString(id) && utf8.ValidString(routing) && index != "" && id != "" && len(id) <= maxID && op.Version >= 0 {
				t.Fatalf("refused: %v", err)
			}
			if len(e.b) != 0 {
				t.Fatalf("%q was left of what was refused", e.b)
			}
		}
		refused := err != nil
		if err := e.add(&neighbour); err != nil {
			t.Fatal(err)
		}
		lines := bytes.Split(e.b, []byte("\n"))
		want := 3 // of the neighbour, and the end
		if !refused {
			want++
			if op.Action == document.Put {
				want++
			}
		}
		if len(lines) != want {
			t.Fatalf("%d lines, want %d: %q", len(lines), want, e.b)
		}
		if refused {
			return
		}
		var got map[string]action
		if err := json.Unmarshal(lines[0], &got); err != nil {
			t.Fatal(err)
		}
		a, ok := got[op.Action.String()]
		if !ok || a.Index != index || a.ID != id || a.Routing != routing || (a.Version != nil) != (op.Fence != document.NoFence) || a.Version != nil && (*a.Version != op.Version || a.VersionType != op.Fence.String()) {
			t.Fatalf("%s is not %+v", lines[0], op)
		}
		if op.Action != document.Put || !json.Valid([]byte(body)) {
			return
		}
		var was, is bytes.Buffer
		if json.Compact(&was, []byte(body)) != nil || json.Compact(&is, lines[1]) != nil || was.String() != is.String() {
			t.Fatalf("%q became %q", body, lines[1])
		}
	})
}
