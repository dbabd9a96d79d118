package item_test

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/sluicehq/sluice/item"
)

// Equal numbers have equal texts, unequal ones have not, and the text is the
// number.
func TestAppendTextOfNumbers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 4))
	random := func() string {
		s := []string{"", "-", "+"}[r.IntN(3)] + strings.Repeat("0", r.IntN(3)) + strconv.Itoa(r.IntN(200))
		if r.IntN(2) == 0 {
			s += "." + strconv.Itoa(r.IntN(200)) + strings.Repeat("0", r.IntN(3))
		}
		if r.IntN(2) == 0 {
			s += []string{"e", "E+", "e-"}[r.IntN(3)] + strconv.Itoa(r.IntN(60))
		}
		return s
	}
	value := func(s string) item.Value {
		v, _ := item.Of(item.Number("n", s)).Lookup("n")
		return v
	}
	for range 20000 {
		a, b := random(), random()
		if r.IntN(2) == 0 {
			b = a + "0"
			if strings.ContainsAny(a, "eE") || !strings.Contains(a, ".") {
				b = strings.TrimPrefix(a, "+")
			}
		}
		s, ok := value(a).AppendText([]byte("x"))
		u, _ := value(b).AppendText([]byte("x"))
		if !ok || strings.ContainsAny(string(s), "eE+") || !value(string(s[1:])).Equal(value(a)) {
			t.Fatalf("%s: %s", a, s)
		}
		if same := value(a).Equal(value(b)); same != (string(s) == string(u)) {
			t.Fatalf("%s is %s, %s is %s", a, s, b, u)
		}
	}
}

func TestAppendText(t *testing.T) {
	it, err := item.Parse([]byte(`{"s":{"S":"a\n\u00e9"},"b":{"B":"\/\/8="},"t":{"BOOL":true},"l":{"L":[]},"ss":{"SS":["a"]},"z":{"NULL":true},"m":{"M":{}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"s": "a\né", "b": "//8="} {
		v, _ := it.Lookup(name)
		if got, ok := v.AppendText(nil); string(got) != want || !ok {
			t.Errorf("%s: %q, %v", name, got, ok)
		}
	}
	for _, name := range []string{"t", "l", "ss", "z", "m", "none"} {
		v, _ := it.Lookup(name)
		if got, ok := v.AppendText([]byte("x")); string(got) != "x" || ok {
			t.Errorf("%s: %q, %v", name, got, ok)
		}
	}
}

func FuzzAppendString(f *testing.F) {
	for _, s := range []string{"", "a", "\"\\\n\r\t\x00\x1f\x7f</é\u2028😀", "\xff", "a\xe2\x82b", "\xed\xa0\x80", "�"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := item.AppendString([]byte("x"), s)
		if again := item.AppendString([]byte("x"), []byte(s)); string(again) != string(got) {
			t.Fatalf("%q as bytes, %q as a string", again, got)
		}
		var back string
		if err := json.Unmarshal(got[1:], &back); err != nil || !utf8.Valid(got) {
			t.Fatalf("%q: %q: %v", s, got, err)
		}
		if want := strings.ToValidUTF8(s, "�"); utf8.ValidString(s) && back != s || len(back) < len(want) {
			t.Fatalf("%q: %q", s, back)
		}
		// As encoding/json has it, which writes one U+FFFD for each byte.
		quoted, _ := json.Marshal(s)
		var want string
		json.Unmarshal(quoted, &want)
		if back != want {
			t.Fatalf("%q: %q, want %q", s, back, want)
		}
	})
}

// Sets come out in one order, however they are stored.
func TestSortedSets(t *testing.T) {
	for _, tt := range []struct{ set, want string }{
		{`{"SS":[ "b" , "a","é","B","\u0061a"]}`, `["B","a","\u0061a","b","é"]`},
		{`{"NS":["10","9","-1","-1.5","0","0.05","0.5","1E2","-1E2","99.9","-0.001"]}`, `[-1E2,-1.5,-1,-0.001,0,0.05,0.5,9,10,99.9,1E2]`},
		{`{"BS":["Ag==","AQ=="]}`, `["AQ==","Ag=="]`},
		{`{"L":[{"SS":["b","a"]},{"M":{"z":{"NS":["2","1"]},"a":{"S":"x"}}}]}`, `[["a","b"],{"z":[1,2],"a":"x"}]`},
		{`{"SS":["a"]}`, `["a"]`},
	} {
		it, err := item.Parse([]byte(`{"v":` + tt.set + `}`))
		if err != nil {
			t.Fatal(err)
		}
		v, _ := it.Lookup("v")
		if got := string(v.AppendJSON(nil, item.JSON{SortedSets: true})); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.set, got, tt.want)
		}
	}
	for _, n := range []int{2, 15, 16, 17, 100} {
		var members []string
		for i := range n {
			members = append(members, strconv.Quote(strconv.Itoa(i*7919-300000)))
		}
		rand.New(rand.NewPCG(1, 5)).Shuffle(n, func(i, j int) { members[i], members[j] = members[j], members[i] })
		it, err := item.Parse([]byte(`{"v":{"NS":[` + strings.Join(members, ",") + `]}}`))
		if err != nil {
			t.Fatal(err)
		}
		var got struct{ V []int }
		if err := json.Unmarshal(it.AppendJSON(nil, item.JSON{SortedSets: true}), &got); err != nil || !slices.IsSorted(got.V) || len(got.V) != n {
			t.Errorf("%d: %v %v", n, got, err)
		}
	}
}

func TestWithout(t *testing.T) {
	it := item.Of(item.String("a", "1"), item.String("b", "2"), item.String("c", "3"))
	for _, tt := range []struct {
		names []string
		want  string
	}{
		{nil, `{"a":"1","b":"2","c":"3"}`},
		{[]string{"b", "none"}, `{"a":"1","c":"3"}`},
		{[]string{"a", "b", "c"}, `{}`},
	} {
		if got := string(it.Without(tt.names...).AppendJSON(nil)); got != tt.want {
			t.Errorf("%q: %s, want %s", tt.names, got, tt.want)
		}
	}
}
