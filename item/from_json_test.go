package item

import (
	"strings"
	"testing"
)

func TestFromJSON(t *testing.T) {
	it, err := FromJSON([]byte(` {"s":"a\"é<","n":-1.50,"t":true,"f":false,"z":null,"l":[1,[],{"x":"y"}],"m":{},"e":""} `))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"s":{"S":"a\"é\u003c"},"n":{"N":"-1.50"},"t":{"BOOL":true},"f":{"BOOL":false},"z":{"NULL":true},` +
		`"l":{"L":[{"N":"1"},{"L":[]},{"M":{"x":{"S":"y"}}}]},"m":{"M":{}},"e":{"S":""}}`
	if got := string(it.Raw()); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if v, _ := it.Lookup("s"); v.Str() != `a"é<` {
		t.Errorf("s is %q", v.Str())
	}
	for in, want := range map[string]string{
		``: "no JSON object", `null`: "but null", `"x"`: "but a string", `[1]`: "but an array", `1`: "but a number", `true`: "but a boolean", `{"a"}`: "no JSON object", `{"a":1}x`: "data after",
		`{"a":1,"a":1}`: "duplicate", `{"a":[}`: "no JSON object", `{"a":1` + strings.Repeat("0", 200) + `}`: "a",
		`{"a":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`: "deep",
	} {
		if _, err := FromJSON([]byte(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v, want %q", in, err, want)
		}
	}
}

// What FromJSON made goes back to the same JSON.
func FuzzFromJSON(f *testing.F) {
	f.Add([]byte(`{"a":"b","c":[1,true,null,{"d":"\u0000"}]}`))
	f.Add([]byte("{\"\xff\":1}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		it, err := FromJSON(data)
		if err != nil {
			return
		}
		again, err := FromJSON(it.AppendJSON(nil))
		if err != nil || !it.Equal(again) {
			t.Errorf("%s became %s, then %s (%v)", data, it.Raw(), again.Raw(), err)
		}
	})
}

func TestOf(t *testing.T) {
	it := Of(String("PK", `a"b`), Number("n", "17"), Binary("b", []byte{0, 0xff}))
	if got := string(it.Raw()); got != `{"PK":{"S":"a\"b"},"n":{"N":"17"},"b":{"B":"AP8="}}` {
		t.Error(got)
	}
	if got := string(it.Only("n", "none", "PK").Raw()); got != `{"n":{"N":"17"},"PK":{"S":"a\"b"}}` {
		t.Error(got)
	}
	if got := Of(); !got.Exists() || got.Len() != 0 {
		t.Error("an item without attributes is not an absent one")
	}
	defer func() {
		if recover() == nil {
			t.Error("a number that is none was taken")
		}
	}()
	Of(Number("n", "seven"))
}

func TestWith(t *testing.T) {
	it := Of(String("PK", "a"), Map("m", Of(Bool("yes", true))), Bool("no", false), Map("none", Item{}))
	if got := string(it.Raw()); got != `{"PK":{"S":"a"},"m":{"M":{"yes":{"BOOL":true}}},"no":{"BOOL":false},"none":{"M":{}}}` {
		t.Error(got)
	}
	if got := string(it.With(Number("n", "1"), String("no", "x")).Raw()); got != `{"PK":{"S":"a"},"m":{"M":{"yes":{"BOOL":true}}},"none":{"M":{}},"n":{"N":"1"},"no":{"S":"x"}}` {
		t.Error(got)
	}
	if got := string(Item{}.With(String("a", "b")).Raw()); got != `{"a":{"S":"b"}}` {
		t.Error(got)
	}
	if it.Len() != 4 {
		t.Error("the item itself has changed")
	}
}
