package item_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"

	"github.com/sluicehq/sluice/internal/benchdata"
	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/item/sdkitem"
)

func nested(open, inner, close string, n int) string {
	return strings.Repeat(open, n) + inner + strings.Repeat(close, n)
}

// valid pairs attribute maps with what they are as plain JSON.
var valid = []struct{ in, plain string }{
	{`{}`, `{}`},
	{" \t\r\n{ } \n", `{}`},
	{`{"a":{"S":"x"}}`, `{"a":"x"}`},
	{`{"a":{"S":""},"":{"S":"empty name"}}`, `{"a":"","":"empty name"}`},
	{`{"a":{"N":"1"},"b":{"N":"-1.5"},"c":{"N":"0"}}`, `{"a":1,"b":-1.5,"c":0}`},
	{`{"n":{"N":"12345678901234567890123456789012345678"}}`, `{"n":12345678901234567890123456789012345678}`},
	{`{"n":{"NS":["123456789012345678901234567890","0.1"]}}`, `{"n":[123456789012345678901234567890,0.1]}`},
	{`{"n":{"N":"9.9999999999999999999999999999999999999E+125"}}`, `{"n":9.9999999999999999999999999999999999999E+125}`},
	{`{"n":{"N":"1E-130"}}`, `{"n":1E-130}`},
	{`{"n":{"N":"1e125"}}`, `{"n":1e125}`},
	{`{"n":{"N":"10000000000000000000000000000000000000000000"}}`, `{"n":10000000000000000000000000000000000000000000}`},
	{`{"n":{"N":"+07"},"m":{"N":".5"},"o":{"N":"-.50"},"p":{"N":"5."},"q":{"N":"00"},"r":{"N":"-5.E1"}}`, `{"n":7,"m":0.5,"o":-0.50,"p":5,"q":0,"r":-5E1}`},
	{`{"n":{"N":"\u0031\u0032"}}`, `{"n":12}`},
	{`{"n":{"N":"0E10000000000000000000"}}`, `{"n":0}`},
	{`{"n":{"N":"0E999999"}}`, `{"n":0}`},
	{`{"t":{"BOOL":true},"f":{"BOOL":false},"z":{"NULL":true},"y":{"NULL":false}}`, `{"t":true,"f":false,"z":null,"y":null}`},
	{`{"b":{"B":"AP9//w=="},"e":{"B":""},"c":{"B":"test"}}`, `{"b":"AP9//w==","e":"","c":"test"}`},
	{`{"b":{"B":"AP9\/\/w=="}}`, `{"b":"AP9\/\/w=="}`},
	{`{"s":{"SS":["b","a","b"]},"b":{"BS":["AAE=","AAE="]},"e":{"SS":[]}}`, `{"s":["b","a","b"],"b":["AAE=","AAE="],"e":[]}`},
	{`{"m":{"M":{}},"l":{"L":[]}}`, `{"m":{},"l":[]}`},
	{`{"m":{"M":{"l":{"L":[{"S":"a"},{"M":{"x":{"N":"1"}}},{"L":[{"NULL":true}]}]}}}}`, `{"m":{"l":["a",{"x":1},[null]]}}`},
	{`{ "m" : { "M" : { "k" : { "SS" : [ "a" , "b" ] } } } , "b":{"BOOL" :true } }`, `{"m":{"k":["a","b"]},"b":true}`},
	{`{"e":{"S":"\"\\\/\b\f\n\r\t\u0000\u00e9\ud83d\ude00"}}`, `{"e":"\"\\\/\b\f\n\r\t\u0000\u00e9\ud83d\ude00"}`},
	{`{"k\u0065y":{"S":"<&>\u2028"},"日本":{"S":"語 😀 é"}}`, `{"k\u0065y":"<&>\u2028","日本":"語 😀 é"}`},
	{`{"a":{"S":"` + strings.Repeat("x", 1000) + `"}}`, `{"a":"` + strings.Repeat("x", 1000) + `"}`},
	{`{"a":` + nested(`{"L":[`, `{"S":"deep"}`, `]}`, 32) + `}`, `{"a":` + nested(`[`, `"deep"`, `]`, 32) + `}`},
	{`{"a":` + nested(`{"M":{"a":`, `{"S":"deep"}`, `}}`, 32) + `}`, `{"a":` + nested(`{"a":`, `"deep"`, `}`, 32) + `}`},
	{`{"S":{"S":"S"},"a.b":{"M":{"c.d":{"N":"1"}}}}`, `{"S":"S","a.b":{"c.d":1}}`},
}

func TestParseValid(t *testing.T) {
	for _, tt := range valid {
		it, err := item.Parse([]byte(tt.in))
		if err != nil {
			t.Errorf("%.200s: %v", tt.in, err)
			continue
		}
		got := string(it.AppendJSON(nil))
		if got != tt.plain {
			t.Errorf("%.200s\nplain JSON is %.300s\nwanted        %.300s", tt.in, got, tt.plain)
		}
		if !json.Valid([]byte(got)) {
			t.Errorf("%.200s: %.300s is not JSON", tt.in, got)
		}
	}
}

var refused = []struct {
	in, path string
	offset   int
	msg      string
}{
	{``, "", 0, "attribute map"},
	{`null`, "", 0, "attribute map"},
	{`[]`, "", 0, "attribute map"},
	{`"x"`, "", 0, "attribute map"},
	{`{`, "", 1, "name expected"},
	{`{"a"`, "a", 4, "unexpected end"},
	{`{"a":`, "a", 5, "typed value"},
	{`{"a":{`, "a", 6, "type tag expected"},
	{`{"a":{"S":"x"}`, "", 14, "unexpected end"},
	{`{"a":{"S":"x"},}`, "", 15, "name expected"},
	{`{,}`, "", 1, "name expected"},
	{`{"a":{"S":"x"}}x`, "", 15, "data after"},
	{`{"a":{"S":"x"}} {}`, "", 16, "data after"},
	{`{"a":{"S":"x"} "b":{"S":"x"}}`, "", 15, "missing comma"},
	{`{"a" {"S":"x"}}`, "a", 5, "missing colon"},
	{`{a:{"S":"x"}}`, "", 1, "name expected"},
	{`{'a':{"S":"x"}}`, "", 1, "name expected"},
	{`{"a":null}`, "a", 5, "typed value"},
	{`{"a":"x"}`, "a", 5, "typed value"},
	{`{"a":{}}`, "a", 6, "no type tag"},
	{`{"a":{"S":"x","N":"1"}}`, "a", 13, "more than one type tag"},
	{`{"a":{"S":"x" , "S":"x"}}`, "a", 14, "more than one type tag"},
	{`{"a":{"N":"1","S":"x"}}`, "a", 13, "more than one type tag"},
	{`{"a":{"M":{},"S":"x"}}`, "a", 12, "more than one type tag"},
	{`{"a":{"BOOL":true,"S":"x"}}`, "a", 17, "more than one type tag"},
	{`{"a":{"S":"x"]}`, "a", 13, "not closed"},
	{`{"a":{"X":"x"}}`, "a", 6, `unknown type tag "X"`},
	{`{"a":{"s":"x"}}`, "a", 6, `unknown type tag "s"`},
	{`{"a":{"":"x"}}`, "a", 6, `unknown type tag ""`},
	{`{"a":{"\u0053":"x"}}`, "a", 6, "unknown type tag"},
	{`{"a":{"` + strings.Repeat("x", 1000) + `":"x"}}`, "a", 6, `unknown type tag "` + strings.Repeat("x", 16) + `"`},
	{`{"a":{"STRING":"x"}}`, "a", 6, `unknown type tag "STRING"`},
	{`{"a":{"S":1}}`, "a", 10, "S must hold a string"},
	{`{"a":{"S":null}}`, "a", 10, "S must hold a string"},
	{`{"a":{"N":1}}`, "a", 10, "N must hold a string"},
	{`{"a":{"BOOL":"true"}}`, "a", 13, "BOOL must be true or false"},
	{`{"a":{"BOOL":1}}`, "a", 13, "BOOL must be true or false"},
	{`{"a":{"NULL":null}}`, "a", 13, "NULL must be true or false"},
	{`{"a":{"BOOL":truE}}`, "a", 13, "BOOL must be true or false"},
	{`{"a":{"BOOL":trueX}}`, "a", 17, "not closed"},
	{`{"a":{"M":[]}}`, "a", 10, "M must hold an attribute map"},
	{`{"a":{"L":{}}}`, "a", 10, "L must hold an array"},
	{`{"a":{"SS":"x"}}`, "a", 11, "SS must hold an array"},
	{`{"a":{"SS":[1]}}`, "a.0", 12, "S must hold a string"},
	{`{"a":{"SS":["x",{"S":"y"}]}}`, "a.1", 16, "S must hold a string"},
	{`{"a":{"NS":["1","x"]}}`, "a.1", 16, "invalid number"},
	{`{"a":{"BS":[1]}}`, "a.0", 12, "B must hold a string"}, // panics the events package
	{`{"a":{"BS":["AA=="," "]}}`, "a.1", 19, "invalid base64"},
	{`{"a":{"SS":["x",]}}`, "a.1", 16, "S must hold a string"},
	{`{"a":{"L":[{"S":"x"} {"S":"x"}]}}`, "a", 21, "missing comma"},
	{`{"a":{"L":[{"S":"x"}`, "a", 20, "unexpected end"},
	{`{"b":{"N:""1"}}`, "b", 6, `unknown type tag "N:"`},
	{`{"a":{"L":["x"]}}`, "a.0", 11, "typed value"},
	{`{"m":{"M":{"l":{"L":[{"N":"1"},{"M":{"k":{"Q":0}}}]}}}}`, "m.l.1.k", 42, "unknown type tag"},
	{`{"a":{"S":"x"},"a":{"S":"x"}}`, "a", 15, "duplicate"},
	{`{"abcdefghijkl":{"S":"x"},"b":{"N":"1"},"abcdefghijkl":{"S":"x"}}`, "abcdefghijkl", 40, "duplicate"},
	{`{"a":{"S":"x"},"\u0061":{"S":"x"}}`, "a", 15, "duplicate"},
	{`{"m":{"M":{"":{"S":"x"},"":{"S":"x"}}}}`, "m.", 24, "duplicate"},
	{`{"a":{"N":""}}`, "a", 10, "invalid number"},
	{`{"a":{"N":" 1"}}`, "a", 10, "invalid number"},
	{`{"a":{"N":"1 "}}`, "a", 10, "invalid number"},
	{`{"a":{"N":"0x10"}}`, "a", 10, "invalid number"},
	{`{"a":{"N":"1_000"}}`, "a", 10, "invalid number"},
	{`{"a":{"N":"NaN"}}`, "a", 10, "invalid number"},
	{`{"a":{"N":"Infinity"}}`, "a", 10, "invalid number"},
	{`{"a":{"N":"."}}`, "a", 10, "invalid number"},
	{`{"a":{"N":"-"}}`, "a", 10, "invalid number"},
	{`{"a":{"N":"1.2.3"}}`, "a", 10, "invalid number"},
	{`{"a":{"N":"1e"}}`, "a", 10, "invalid number"},
	{`{"a":{"N":"1e+"}}`, "a", 10, "invalid number"},
	{`{"a":{"N":"1e5x"}}`, "a", 10, "invalid number"},
	{`{"a":{"N":"١"}}`, "a", 10, "invalid number"},
	{`{"a":{"N":"123456789012345678901234567890123456789"}}`, "a", 10, "38 significant digits"},
	{`{"a":{"N":"1E126"}}`, "a", 10, "larger than"},
	{`{"a":{"N":"10E125"}}`, "a", 10, "larger than"},
	{`{"a":{"N":"1E99999999999999999999"}}`, "a", 10, "larger than"},
	{`{"a":{"N":"9E-131"}}`, "a", 10, "smaller than"},
	{`{"a":{"N":"0.1E-130"}}`, "a", 10, "smaller than"},
	{`{"a":{"B":"A"}}`, "a", 10, "invalid base64"},
	{`{"a":{"B":"AAE"}}`, "a", 10, "invalid base64"},
	{`{"a":{"B":"A==="}}`, "a", 10, "invalid base64"},
	{`{"a":{"B":"AA=A"}}`, "a", 10, "invalid base64"},
	{`{"a":{"B":"AA==AAAA"}}`, "a", 10, "invalid base64"},
	{`{"a":{"B":"AB=="}}`, "a", 10, "invalid base64"},
	{`{"a":{"B":"AAF="}}`, "a", 10, "invalid base64"},
	{`{"a":{"B":"AA-_"}}`, "a", 10, "invalid base64"},
	{`{"a":{"B":"AAAA\n"}}`, "a", 10, "invalid base64"},
	{`{"a":{"B":"é   "}}`, "a", 10, "invalid base64"},
	{"{\"a\":{\"S\":\"x\ny\"}}", "a", 12, "control character"},
	{"{\"a\":{\"S\":\"0123456789\x00\"}}", "a", 21, "control character"},
	{"{\"a\tb\":{\"S\":\"x\"}}", "", 3, "control character"},
	{"{\"a\":{\"S\":\"\xff\"}}", "a", 11, "invalid UTF-8"},
	{"{\"a\":{\"S\":\"01234567\xc3\"}}", "a", 19, "invalid UTF-8"},
	{"{\"a\":{\"S\":\"\xc0\x80\"}}", "a", 11, "invalid UTF-8"},         // overlong
	{"{\"a\":{\"S\":\"\xed\xa0\x80\"}}", "a", 11, "invalid UTF-8"},     // a surrogate
	{"{\"a\":{\"S\":\"\xf4\x90\x80\x80\"}}", "a", 11, "invalid UTF-8"}, // beyond the last
	{"{\"\xff\":{\"S\":\"x\"}}", "", 2, "invalid UTF-8"},
	{`{"a":{"S":"\ud800"}}`, "a", 11, "lone surrogate"},
	{`{"a":{"S":"\udc00\ud800"}}`, "a", 11, "lone surrogate"},
	{`{"a":{"S":"\ud83d\u0041"}}`, "a", 11, "lone surrogate"},
	{`{"a":{"S":"\ud83d"}}`, "a", 11, "lone surrogate"},
	{`{"a":{"S":"\ud83dxxxxxxxxxxx"}}`, "a", 11, "lone surrogate"},
	{`{"a":{"S":"\x41"}}`, "a", 11, "invalid escape"},
	{`{"a":{"S":"\u12g4"}}`, "a", 11, `invalid \u escape`},
	{`{"a":{"S":"\u12"}}`, "a", 11, `invalid \u escape`},
	{`{"a":{"S":"\'"}}`, "a", 11, "invalid escape"},
	{`{"a":{"S":"x`, "a", 12, "string without end"},
	{`{"a":{"S":"x\`, "a", 13, "string without end"},
	{`{"a":{"S":"x\"`, "a", 14, "string without end"},
	{`{"a`, "", 3, "string without end"},
	{`{"a":` + nested(`{"L":[`, `{"S":"deep"}`, `]}`, 33) + `}`, "a" + strings.Repeat(".0", 32), 5 + 32*6 + 5, "nested deeper than 32"},
	{`{"a":` + nested(`{"M":{"a":`, `{"S":"deep"}`, `}}`, 33) + `}`, "a" + strings.Repeat(".a", 32), 5 + 32*10 + 5, "nested deeper than 32"},
	{`{"a": ` + nested(`{"L":[ `, `{"S":"deep"}`, `]}`, 5000) + `}`, "a" + strings.Repeat(".0", 32), 6 + 32*7 + 5, "nested deeper than 32"},
}

func TestParseRefuses(t *testing.T) {
	for _, tt := range refused {
		_, err := item.Parse([]byte(tt.in))
		var e *item.SyntaxError
		if !errors.As(err, &e) {
			t.Errorf("%.200q: error %v", tt.in, err)
			continue
		}
		if e.Path != tt.path || e.Offset != tt.offset || !strings.Contains(e.Msg, tt.msg) {
			t.Errorf("%.200q\nis refused at %q %d: %s\nwanted        %q %d: %s", tt.in, e.Path, e.Offset, e.Msg, tt.path, tt.offset, tt.msg)
		}
	}
}

// What is refused stays refused, with the same message, where the short cuts
// for maps without white space do not apply, and where much follows.
func TestParseRefusesOnEveryPath(t *testing.T) {
	for _, tt := range refused {
		if !strings.HasSuffix(tt.in, "}}") || strings.Contains(tt.msg, "after") {
			continue
		}
		for _, in := range []string{
			tt.in + strings.Repeat(" ", 40),
			`{"before":{"S":"x"},` + tt.in[1:],
			strings.Replace(strings.TrimSuffix(tt.in, "}"), "{", "{ ", 2) + `,"after":{"S":"0123456789"}}`,
		} {
			_, err := item.Parse([]byte(in))
			var e *item.SyntaxError
			if !errors.As(err, &e) || !strings.Contains(e.Msg, tt.msg) {
				t.Errorf("%.200q: error %v, wanted %s", in, err, tt.msg)
			}
		}
	}
}

func TestParseFindsEveryDuplicate(t *testing.T) {
	for _, n := range []int{2, 10, 63, 64, 65, 66, 200, 3000} {
		for _, again := range []int{0, (n - 1) / 2, n - 2} {
			var sb strings.Builder
			sb.WriteByte('{')
			for i := range n - 1 {
				fmt.Fprintf(&sb, `"attribute_number_%d":{"N":"%d"},`, i, i)
			}
			unique := sb.String() + `"last":{"N":"1"}}`
			if it, err := item.Parse([]byte(unique)); err != nil || it.Len() != n {
				t.Fatalf("%d attributes: %v", n, err)
			}
			at := sb.Len()
			fmt.Fprintf(&sb, `"attribute_numb\u0065r_%d":{"N":"1"}}`, again)
			_, err := item.Parse([]byte(sb.String()))
			var e *item.SyntaxError
			if !errors.As(err, &e) || e.Offset != at || e.Path != fmt.Sprint("attribute_number_", again) {
				t.Errorf("%d attributes, the last like that at %d: %v, wanted offset %d", n, again, err, at)
			}
		}
	}
}

func TestParseTruncated(t *testing.T) {
	data := []byte(`{"a":{"S":"x\u00e9é"},"m":{"M":{"l":{"L":[{"N":"1"},{"SS":["a"]},{"BS":["AAE="]}]}}},"b":{"BOOL":false},"n":{"NULL":true}}`)
	if _, err := item.Parse(data); err != nil {
		t.Fatal(err)
	}
	for n := range data {
		short := append(make([]byte, 0, n), data[:n]...)
		if _, err := item.Parse(short[:n:n]); err == nil {
			t.Errorf("%s is accepted", short)
		}
	}
}

// The SDK reads the same out of everything that is valid.
func TestParseAgainstSDK(t *testing.T) {
	check := func(in string) {
		t.Helper()
		it, err := item.Parse([]byte(in))
		if err != nil {
			t.Fatalf("%.300s: %v", in, err)
		}
		want, err := attributevalue.UnmarshalMapJSON([]byte(in))
		if err != nil {
			t.Fatalf("the SDK refuses %.300s: %v", in, err)
		}
		if got := sdkitem.Map(it); !reflect.DeepEqual(got, want) {
			t.Errorf("%.300s\nis       %v\nthe SDK: %v", in, got, want)
		}
	}
	for _, tt := range valid {
		if !strings.Contains(tt.in, `{"NULL":false}`) { // which the SDK makes true
			check(tt.in)
		}
	}
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 1))
		tree := recordtest.Random(rng, 3)
		check(tree.JSON())
		check(tree.Variant(rng))
	}
}

func TestParserSharesMemory(t *testing.T) {
	var p item.Parser
	var items []item.Item
	doc := []byte(`[{"a":{"S":"1"}},{"b":{"S":"2"},"c":{"Q":"3"}},{},{"d":{"M":{"x":{"N":"1"}}},"e":{"S":"3"}}]`)
	for _, off := range []int{1, 17, 47, 50} {
		it, end, err := p.Parse(doc, off)
		if (err != nil) != (off == 17) {
			t.Fatalf("at %d: %v", off, err)
		}
		if err == nil {
			if string(it.Raw()) != string(doc[off:end]) {
				t.Errorf("at %d: %s, end %d", off, it.Raw(), end)
			}
			items = append(items, it)
		}
	}
	for i, name := range []string{"a", "", "e"} {
		v, ok := items[i].Lookup(name)
		if ok != (name != "") || ok && v.Kind() != item.S {
			t.Errorf("item %d: Lookup(%q) = %v %v", i, name, v, ok)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, tt := range valid {
		f.Add([]byte(tt.in))
	}
	for _, tt := range refused {
		if len(tt.in) < 10000 {
			f.Add([]byte(tt.in))
		}
	}
	f.Add(benchdata.Modify(1))
	f.Fuzz(func(t *testing.T, data []byte) {
		it, err := item.Parse(data)
		if want := wellFormed(data); (err == nil) != (want == nil) {
			t.Fatalf("%q: error %v, the oracle's %v", data, err, want)
		}
		if err != nil {
			if e := new(item.SyntaxError); !errors.As(err, &e) || e.Offset < 0 || e.Offset > len(data) {
				t.Fatalf("%q: error %#v", data, err)
			}
			return
		}
		again, err := sdkitem.FromMap(sdkitem.Map(it))
		if err != nil || !again.Equal(it) || again.Hash() != it.Hash() {
			t.Fatalf("%q: by way of the SDK %s (%v)", data, again.Raw(), err)
		}
	})
}
