package projection

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/item"
)

func TestTemplates(t *testing.T) {
	it := source{image: item.Of(
		item.String("pk", "TYPE#Ed-Fi#3.3.1-b"), item.String("é", "ÄÖ#"), item.Number("n", "1.50"), item.Binary("b", []byte{0, 255}),
		item.Map("m", item.Of(item.String("a", "x"))), item.String("e", ""), item.String("odd|name", "y")),
		keys: item.Of(item.String("k", "key"), item.String("pk", "not this one"))}
	for _, tt := range []struct{ source, want string }{
		{"", ""},
		{"plain", "plain"},
		{"{pk}", "TYPE#Ed-Fi#3.3.1-b"},
		{"{pk|lower|replace:#:$|replace:.:-}", "type$ed-fi$3-3-1-b"},
		{"{pk|trim:TYPE#}", "Ed-Fi#3.3.1-b"},
		{"{pk|trim:ID#}", "TYPE#Ed-Fi#3.3.1-b"},
		{"{pk|replace:#:}", "TYPEEd-Fi3.3.1-b"},
		{"{pk|replace:#:\\:\\|\\}}", "TYPE:|}Ed-Fi:|}3.3.1-b"},
		{"{é|lower}", "äö#"},
		{"<{n}|{b}>", "<1.5|AP8=>"},
		{"{m.a}{e}{k}", "xkey"},
		{`\{{odd\|name}\}\\`, `{y}\`},
	} {
		p, err := ParseTemplate(tt.source)
		if err != nil {
			t.Errorf("%s: %v", tt.source, err)
			continue
		}
		got, f := p.append([]byte("before "), it)
		if string(got) != "before "+tt.want || f.path != "" {
			t.Errorf("%s: %q, want %q", tt.source, got, tt.want)
		}
	}
}

func TestTemplatesThatAreRefused(t *testing.T) {
	for _, tt := range []struct {
		parse        func(string) (Template, error)
		source, want string
	}{
		{ParseTemplate, "a}b", `template "a}b", byte 1: '}' without '{'`},
		{ParseTemplate, "a{b", `template "a{b", byte 1: '{' without '}'`},
		{ParseTemplate, "a{b{c}", `byte 3: '{' within an attribute`},
		{ParseTemplate, "é{}", `byte 2: no attribute is named`},
		{ParseTemplate, "{|lower}", `byte 0: no attribute is named`},
		{ParseTemplate, "{a|upper}", `byte 3: there is no function "upper"`},
		{ParseTemplate, "{a|}", `byte 3: there is no function ""`},
		{ParseTemplate, "{a|lower:x}", `byte 3: lower has 1 arguments, want 0`},
		{ParseTemplate, "{a|lower|replace:x}", `byte 9: replace has 1 arguments, want 2`},
		{ParseTemplate, "{a|replace::x}", `byte 3: the first argument of replace is empty`},
		{ParseTemplate, "{a|trim:x", `byte 0: '{' without '}'`},
		{ParseTemplate, `ab\`, `byte 2: nothing follows the backslash`},
		{parseID, "", `has no attribute`},
		{parseID, "one", `has no attribute`},
		{parseID, "{a}{b}", `has "" between {a} and {b}`},
		{parseID, "{a}%{b}", `has "%" between`},
		{parseID, "{a}|{b}Bc{c}", `has "Bc" between {b} and {c}`},
		{parseID, "{a}é{b}", `has "é" between`},
	} {
		_, err := tt.parse(tt.source)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", tt.source, err, tt.want)
		}
	}
}

// Two keys never make the same id. The text between attributes separates them, and is
// escaped within attributes.
func TestIDsDoNotCollide(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	for _, tt := range []struct{ template, a, b, want string }{
		{"{a}|{b}", "111122223333", "tgw-0a1", "111122223333|tgw-0a1"},
		{"{a}#{b}", "A#", "B", "A%23#B"},
		{"{a}#{b}", "A", "#B", "A##B"},
		{"{a}#{b}", "A%23", "B", "A%2523#B"},
		{"x{a}::{b}y", "A:", ":B", "xA%3A:::By"},
		{"{a}#{b}", "", "", "#"},
	} {
		p, err := parseID(tt.template)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := p.append(nil, source{image: item.Of(item.String("a", tt.a), item.String("b", tt.b))}); string(got) != tt.want {
			t.Errorf("%s of %q and %q: %q, want %q", tt.template, tt.a, tt.b, got, tt.want)
		}
	}
	alphabet := []string{"a", "#", "%", "|", "%23", "##", "2", "3", ":", "é", "\x00"}
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 2))
		between := []string{"#", "|", "##", "#a", ":#", "\x00", " "}
		template := "{a}" + between[r.IntN(7)] + "{b}" + between[r.IntN(7)] + "{c}" + []string{"", "#", "%"}[r.IntN(3)]
		p, err := parseID(template)
		if err != nil {
			t.Fatal(err)
		}
		ids := map[string]string{}
		for range 500 {
			var texts [3]string
			for i := range texts {
				for range r.IntN(4) {
					texts[i] += alphabet[r.IntN(len(alphabet))]
				}
			}
			key := fmt.Sprintf("%q", texts)
			got, _ := p.append(nil, source{image: item.Of(item.String("a", texts[0]), item.String("b", texts[1]), item.String("c", texts[2]))})
			if other := ids[string(got)]; other != "" && other != key {
				t.Fatalf("%s: %s and %s are both %q", template, key, other, got)
			}
			ids[string(got)] = key
		}
	}
}

// A number has one id however it is written, and two numbers never share one;
// bytes likewise.
func TestIDsOfNumbersAndBytes(t *testing.T) {
	p, _ := parseID("{a}")
	id := func(a item.Attribute) string {
		got, _ := p.append(nil, source{image: item.Of(a)})
		return string(got)
	}
	for want, texts := range map[string][]string{
		"1":                                      {"1", "1.0", "1E0", "+1", "01", "10E-1", "0.1e1"},
		"0":                                      {"0", "-0", "0.0", "0E5"},
		"-0.05":                                  {"-0.05", "-.05", "-5E-2", "-0.050"},
		"1200":                                   {"1200", "12E2", "1.2E+3", "1200.0"},
		"12.34":                                  {"12.34", "1234E-2", "012.340"},
		"12345678901234567890123456789012345678": {"12345678901234567890123456789012345678"},
		"1" + strings.Repeat("0", 125):           {"1E125"},
		"0." + strings.Repeat("0", 129) + "1":    {"1E-130"},
	} {
		for _, text := range texts {
			if got := id(item.Number("a", text)); got != want {
				t.Errorf("%s: %q, want %q", text, got, want)
			}
		}
	}
	seen := map[string]bool{}
	for a := range 256 {
		for _, b := range [][]byte{{byte(a)}, {byte(a), 0}, {0, byte(a)}} {
			key := base64.StdEncoding.EncodeToString(b)
			if got := id(item.Binary("a", b)); got != key {
				t.Fatalf("%v: %q", b, got)
			}
			seen[key] = true
		}
	}
	if len(seen) != 256*3-1 { // {0, 0} is in twice
		t.Errorf("%d ids", len(seen))
	}
}

// A long id is hashed where that is asked for, and none passes for the hash of
// another.
func TestLongIDs(t *testing.T) {
	o := Options{Index: "i", ID: "{pk}", Version: Unversioned(), HashLongIDs: true}
	p := must(t, nil, o)
	id := func(pk string) string {
		ops, err := p.Project(&sluice.Record{EventName: sluice.Insert, New: item.Of(item.String("pk", pk))})
		if err != nil {
			t.Fatal(err)
		}
		return ops[0].ID
	}
	long := strings.Repeat("x", 513)
	hash := id(long)
	if hash != "sha256:35ade0090e64e74d6ad04204009c23a4e34b82bdf0f4f317fbcc5f26f9b10241" {
		t.Errorf("%q", hash)
	}
	if got := id(long[:512]); got != long[:512] {
		t.Errorf("512 bytes: %q", got)
	}
	if got := id(hash); got == hash || len(got) != len(hash) {
		t.Errorf("what looks like a hash: %q", got)
	}
	if id(long+"y") == hash {
		t.Error("two ids have one hash")
	}
}

func TestIndexNames(t *testing.T) {
	for name, want := range map[string]string{
		"type$ed-fi$3-3-1-b$school": "", "a": "", "ä.b_c-d+e": "", strings.Repeat("a", 255): "", ".hidden": "",
		"": "is empty", strings.Repeat("a", 256): "256 bytes", ".": "no name", "..": "no name",
		"_a": "begins with", "-a": "begins with", "+a": "begins with", "aB": "lower case", "Ä": "lower case",
		`a\b`: "has", "a/b": "has", "a*b": "has", "a?b": "has", `a"b`: "has", "a<b": "has", "a>b": "has", "a|b": "has", "a b": "has", "a,b": "has", "a#b": "has", "a:b": "has",
	} {
		if got := indexFault(name); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

// A parsed template is well formed: writing it again gives an equal template.
func FuzzTemplate(f *testing.F) {
	for _, s := range []string{"{a}|{b}", `\{{odd\|name}\}\\`, "{pk|lower|replace:#:$|trim:x}", "{a|replace:\\::\\}}", "{", "}", "{}", "\\"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, source string) {
		p, err := ParseTemplate(source)
		if err != nil {
			return
		}
		quote := strings.NewReplacer(`\`, `\\`, `{`, `\{`, `}`, `\}`, `|`, `\|`, `:`, `\:`).Replace
		var b strings.Builder
		for _, part := range p.parts {
			b.WriteString(quote(part.text) + "{" + quote(part.path))
			for _, c := range part.change {
				b.WriteString("|" + c.name)
				if n := *arguments[c.name]; n > 0 {
					b.WriteString(":" + quote(c.old))
					if n > 1 {
						b.WriteString(":" + quote(c.new))
					}
				}
			}
			b.WriteString("}")
		}
		b.WriteString(quote(p.tail))
		again, err := ParseTemplate(b.String())
		if err != nil {
			t.Fatalf("%q, which is %q: %v", b.String(), source, err)
		}
		again.source = p.source
		if fmt.Sprint(again) != fmt.Sprint(p) {
			t.Fatalf("%+v, want %+v", again, p)
		}
	})
}
