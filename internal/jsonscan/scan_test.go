package jsonscan

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// JSON texts in the manner of the well-known test suites: y is valid, n is
// not, u is what encoding/json lets pass and this package refuses.
var suite = []struct {
	verdict byte
	in      string
}{
	// Structure.
	{'y', `[]`}, {'y', `{}`}, {'y', `[[]   ]`}, {'y', `[""]`}, {'y', `[null,1,"1",{}]`}, {'y', "[1\n]"}, {'y', ` [1]`}, {'y', `[1] `},
	{'y', `{"":0}`}, {'y', `{"a":"b","c":"d"}`}, {'y', `{"a":"b","a":"b"}`}, {'y', `{"foo\u0000bar": 42}`}, {'y', "{\n\"a\": \"b\"\n}"},
	{'y', `null`}, {'y', `true`}, {'y', `false`}, {'y', `"asd"`}, {'y', `42`}, {'y', `-0.1`}, {'y', `""`},
	{'n', `[1 true]`}, {'n', `["": 1]`}, {'n', `[""],`}, {'n', `[,1]`}, {'n', `[1,,2]`}, {'n', `["x"]]`}, {'n', `["",]`}, {'n', `["x"`},
	{'n', `[x`}, {'n', `[3[4]]`}, {'n', `[1:2]`}, {'n', `[,]`}, {'n', `[-]`}, {'n', `[   , ""]`}, {'n', "[\"a\",\n4\n,1,"}, {'n', `[1,]`},
	{'n', `[*]`}, {'n', `[""`}, {'n', `[1,`}, {'n', `[{}`}, {'n', `[fals]`}, {'n', `[nul]`}, {'n', `[tru]`}, {'n', `[True]`}, {'n', `[nan]`},
	{'n', `{[: "x"}`}, {'n', `{"x", null}`}, {'n', `{"x"::"b"}`}, {'n', `{"a":"a" 123}`}, {'n', `{key: 'value'}`}, {'n', `{"a" b}`}, {'n', `{:"b"}`},
	{'n', `{"a":`}, {'n', `{"a"`}, {'n', `{1:1}`}, {'n', `{9999E9999:1}`}, {'n', `{null:null,null:null}`}, {'n', `{"id":0,,,,,}`}, {'n', `{'a':0}`},
	{'n', `{"id":0,}`}, {'n', `{"a":"b"}/**/`}, {'n', `{"a":"b"}#`}, {'n', `{"a":"b",,"c":"d"}`}, {'n', `{a: "b"}`}, {'n', `{"a":"a`}, {'n', `{"a":"b"}#{}`},
	{'n', `{`}, {'n', `[`}, {'n', `]`}, {'n', `}`}, {'n', `[}`}, {'n', `{]`}, {'n', ``}, {'n', ` `}, {'n', `<null>`}, {'n', `[a` + "\x00" + `]`}, {'n', "\ufeff[]"}, {'n', "[\f]"}, {'n', "[\u00a0]"},
	{'n', `1 2`}, {'n', `""x`}, {'n', `truefalse`}, {'n', `[true]x`}, {'n', "\x00"}, {'n', "[1]\x00"},
	{'y', strings.Repeat("[", 10000) + strings.Repeat("]", 10000)},
	{'n', strings.Repeat("[", 10001) + strings.Repeat("]", 10001)},
	{'n', strings.Repeat(`{"a":`, 100000)},
	{'n', strings.Repeat("[", 100000)},

	// Numbers.
	{'y', `[123e65]`}, {'y', `[0e+1]`}, {'y', `[0e1]`}, {'y', `[ 4]`}, {'y', `[-0]`}, {'y', `[-123]`}, {'y', `[-1]`}, {'y', `[1E22]`}, {'y', `[1E-2]`},
	{'y', `[1E+2]`}, {'y', `[123e-10000000]`}, {'y', `[1.5e+9999]`}, {'y', `[123.456789]`}, {'y', `[100000000000000000000000000000000000000000000]`},
	{'y', `[0.4e00669999999999999999999999999999999999999999999999999999999999969999999006]`}, {'y', `[-0.000000000000000000000000000000000000000000000000001]`},
	{'n', `[++1234]`}, {'n', `[+1]`}, {'n', `[+Inf]`}, {'n', `[-01]`}, {'n', `[-1.0.]`}, {'n', `[-2.]`}, {'n', `[-NaN]`}, {'n', `[.-1]`}, {'n', `[.2e-3]`},
	{'n', `[0.1.2]`}, {'n', `[0.3e+]`}, {'n', `[0.3e]`}, {'n', `[0.e1]`}, {'n', `[0E+]`}, {'n', `[0E]`}, {'n', `[0e+]`}, {'n', `[1.0e+]`}, {'n', `[1.0e-]`},
	{'n', `[1 000.0]`}, {'n', `[1eE2]`}, {'n', `[2.e+3]`}, {'n', `[2.e-3]`}, {'n', `[9.e+]`}, {'n', `[Inf]`}, {'n', `[NaN]`}, {'n', `[0x1]`}, {'n', `[0x42]`},
	{'n', `[1+2]`}, {'n', `[- 1]`}, {'n', `[-012]`}, {'n', `[-.123]`}, {'n', `[1ea]`}, {'n', `[1.]`}, {'n', `[.123]`}, {'n', `[1.2a-3]`}, {'n', `[012]`}, {'n', `[１]`},

	// Strings.
	{'y', `["\u0060\u012a\u12AB"]`}, {'y', `["\uD801\udc37"]`}, {'y', `["\ud83d\ude39\ud83d\udc8d"]`}, {'y', `["\"\\\/\b\f\n\r\t"]`}, {'y', `["\\u0000"]`},
	{'y', `["\""]`}, {'y', `["a/*b*/c/*d//e"]`}, {'y', `["\\a"]`}, {'y', `["\\n"]`}, {'y', `["\u0012"]`}, {'y', `["\uFFFF"]`}, {'y', "[\"\uffff\"]"},
	{'y', `["asd "]`}, {'y', `["\uDBFF\uDFFF"]`}, {'y', `["new\u00A0line"]`}, {'y', "[\"\U0010ffff\"]"}, {'y', "[\"\u2028\u2029\"]"}, {'y', `["\u0000"]`},
	{'y', `["\u002c"]`}, {'y', "[\"π\"]"}, {'y', "[\"\U0001bfff\"]"}, {'y', `["\u200B"]`}, {'y', "[\"€𝄞\"]"}, {'y', "[\"a\x7fa\"]"}, {'y', `["⍂㈴⍂"]`},
	{'n', `["\uD800\"]`}, {'n', `["\uD800\u"]`}, {'n', `["\uD800\u1"]`}, {'n', `["\uD800\u1x"]`}, {'n', `[é]`}, {'n', `["\x00"]`}, {'n', `["\\\"]`}, {'n', "[\"\\\t\"]"},
	{'n', `["\🌀"]`}, {'n', `["\"]`}, {'n', `["\u00A"]`}, {'n', `["\uD834\uDd"]`}, {'n', `["\a"]`}, {'n', `["\uqqqq"]`}, {'n', `[\u0020"asd"]`}, {'n', `[\n]`},
	{'n', `"`}, {'n', `['single quote']`}, {'n', `abc`}, {'n', `["\`}, {'n', "[\"a\x00a\"]"}, {'n', "[\"new\nline\"]"}, {'n', "[\"\t\"]"}, {'n', `"\UA66D"`},
	{'n', `["\u00ñ1"]`}, {'n', `["`}, {'n', `["a`}, {'n', "[\"01234567\x1f\"]"}, {'n', `["01234567\`},

	// Data that would change silently.
	{'u', "[\"\xff\"]"}, {'u', "[\"\x80\"]"}, {'u', "[\"\xe6\x97\xa5\xd1\x88\xfa\"]"}, {'u', "[\"\xc0\xaf\"]"}, {'u', "[\"\xed\xa0\x80\"]"}, {'u', "[\"\xf8\x88\x80\x80\x80\"]"},
	{'u', "[\"\xfc\x80\x80\x80\x80\x80\"]"}, {'u', "[\"\xf4\xbf\xbf\xbf\"]"}, {'u', "[\"\xc3\"]"}, {'u', "[\"\xe2\x82\"]"}, {'u', "[\"0123456789\xe9\"]"}, {'u', "{\"\xb9\":\"0\"}"},
	{'u', `["\uDADA"]`}, {'u', `["\uD888\u1234"]`}, {'u', `["\uD800\n"]`}, {'u', `["\uDd1ea"]`}, {'u', `["\uD800\uD800\n"]`}, {'u', `["\ud800"]`}, {'u', `["\ud800abc"]`},
	{'u', `["\uDd1e\uD834"]`}, {'u', `["\uDFAA"]`}, {'u', `{"\uDFAA":0}`},
}

// check is Value over a whole document.
func check(in []byte) string {
	i := Space(in, 0)
	end, msg := Value(in, i)
	if msg == "" && Space(in, end) != len(in) {
		msg = "more data"
	}
	return msg
}

func TestValue(t *testing.T) {
	for _, tt := range suite {
		for _, in := range []string{tt.in, strings.Repeat(" ", 3) + tt.in, tt.in + strings.Repeat("\n", 9)} {
			if got := check([]byte(in)); (got == "") != (tt.verdict == 'y') {
				t.Errorf("%.80q: %q, wanted %c", in, got, tt.verdict)
			}
			if valid := json.Valid([]byte(in)); valid != (tt.verdict != 'n') {
				t.Errorf("%.80q: encoding/json says %v, the table %c", in, valid, tt.verdict)
			}
		}
	}
}

// Each kind of byte at each offset of the eight that are looked at together.
func TestStringAtEveryOffset(t *testing.T) {
	specials := []string{`"`, `\"`, `\\`, `\u00e9`, `\ud83d\ude00`, `\ud800`, `\x`, "\n", "\x1f", "\x00", " ", "!", "#", "[", "]", "\x7f", "é", "日", "😀", "\x80", "\xff", "\xc3"}
	for before := range 18 {
		for after := range 10 {
			for _, special := range specials {
				for _, second := range specials {
					body := strings.Repeat("x", before) + special + second + strings.Repeat("y", after)
					in := []byte(`"` + body + `"` + strings.Repeat(" ", after))
					checkString(t, in)
				}
			}
		}
	}
}

func checkString(t *testing.T, in []byte) {
	t.Helper()
	end, escaped, msg := String(in, 0)
	wantEnd := closingQuote(in)
	ok := wantEnd > 0 && json.Valid(in[:wantEnd]) && utf8.Valid(in[:wantEnd])
	var want string
	if ok {
		if err := json.Unmarshal(in[:wantEnd], &want); err != nil {
			t.Fatal(err)
		}
		// encoding/json makes lone surrogates U+FFFD, which no input here holds.
		ok = !strings.ContainsRune(want, utf8.RuneError) || strings.Contains(string(in), "\ufffd")
	}
	switch {
	case (msg == "") != ok:
		t.Fatalf("%q: %q, wanted valid %v", in, msg, ok)
	case !ok:
	case end != wantEnd || StringEnd(in, 0) != wantEnd:
		t.Fatalf("%q ends at %d and %d, wanted %d", in, end, StringEnd(in, 0), wantEnd)
	case escaped != strings.Contains(string(in[:end]), `\`):
		t.Fatalf("%q: escaped %v", in, escaped)
	default:
		if got := string(AppendUnquoted([]byte("+"), in[:end])); got != "+"+want {
			t.Fatalf("%q is %q, wanted %q", in, got, "+"+want)
		}
	}
}

func closingQuote(in []byte) int {
	for i := 1; i < len(in); i++ {
		switch in[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return -1
}

func TestLoose(t *testing.T) {
	for _, tt := range []struct {
		in  string
		end int
	}{
		{`{}`, 2}, {`{},`, 2}, {`[[],{"a":"]"}]x`, 14}, {`"a\"]" `, 6}, {`5,`, 1}, {`5 ,`, 1}, {`tru]`, 3}, {`null}`, 4}, {`bad{`, -1},
		{`{"a":bad bad,,}]`, 15}, {`{"a":"` + "\x01\xff" + `\q"}`, 12},
		{`{`, -1}, {`{"a`, -1}, {`{"a\`, -1}, {`{]`, -1}, {`[}`, -1}, {`{"a":[}`, -1}, {`{{}`, -1},
	} {
		if got := Loose([]byte(tt.in), 0); got != tt.end {
			t.Errorf("%q ends at %d, wanted %d", tt.in, got, tt.end)
		}
	}
	for _, tt := range suite {
		if tt.verdict != 'n' && !strings.HasPrefix(tt.in, " ") {
			if got := Loose([]byte(tt.in+","), 0); got != len(strings.TrimRight(tt.in, " ")) {
				t.Errorf("%.80q ends at %d, wanted %d", tt.in, got, len(tt.in))
			}
		}
	}
}

func TestWords(t *testing.T) {
	for b := range 256 {
		for at := range 8 {
			in := []byte("aaaaaaaa")
			in[at] = byte(b)
			w := Load(in, 0)
			special := b == '"' || b == '\\' || b < 0x20 || b >= 0x80
			if m := Special(w); (m != 0) != special || special && First(m) != at {
				t.Errorf("Special of %q is %#x", in, m)
			}
			in = []byte("00990099")
			in[at] = byte(b)
			digit := b >= '0' && b <= '9'
			if m := NonDigit(Load(in, 0)); (m == 0) != digit || !digit && First(m) != at {
				t.Errorf("NonDigit of %q is %#x", in, m)
			}
		}
	}
}

func FuzzValue(f *testing.F) {
	for _, tt := range suite {
		if len(tt.in) < 1000 {
			f.Add([]byte(tt.in))
		}
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		msg := check(in)
		if valid := json.Valid(in) && utf8.Valid(in); msg == "" && !valid {
			t.Fatalf("%q is accepted", in)
		} else if msg != "" && valid && !strings.Contains(msg, "surrogate") {
			t.Fatalf("%q is refused: %s", in, msg)
		}
		if msg == "" {
			i := Space(in, 0)
			end, _ := Value(in, i)
			if loose := Loose(in, i); loose != end {
				t.Fatalf("%q ends at %d, loosely at %d", in, end, loose)
			}
		}
		if len(in) > 0 && in[0] == '"' {
			checkString(t, in)
		}
	})
}

func ExampleValue() {
	doc := []byte(`{"a":[1,2,]}`)
	at, msg := Value(doc, 0)
	fmt.Println(at, msg)
	// Output: 10 invalid number
}
