package projection

import (
	"slices"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/item"
)

func TestTemplateForOthers(t *testing.T) {
	image := item.Of(item.String("name", "Ada"), item.Number("n", "1.0"))
	keys := item.Of(item.String("pk", "u-1"), item.String("name", "of the key"))
	for _, tt := range []struct{ text, want, single string }{
		{"{name|lower} is {pk}, {n}", "x: ada is u-1, 1", ""},
		{"{name}", "x: Ada", "name"},
		{"{name|lower}", "x: ada", ""},
		{" {name}", "x:  Ada", ""},
		{"{name} ", "x: Ada ", ""},
		{"plain", "x: plain", ""},
	} {
		p, err := ParseTemplate(tt.text)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := p.Append([]byte("x: "), image, keys); err != nil || string(got) != tt.want {
			t.Errorf("%s: %q, %v", tt.text, got, err)
		}
		if path, ok := p.Single(); path != tt.single && ok || ok != (tt.single != "") {
			t.Errorf("%s: single %q %v", tt.text, path, ok)
		}
	}
	p, _ := ParseTemplate("{name}-{no}")
	if _, err := p.Append(nil, image, sluice.Item{}); err == nil || !strings.Contains(err.Error(), `no attribute "no"`) {
		t.Error(err)
	}
	if got := p.Paths(); !slices.Equal(got, []string{"name", "no"}) {
		t.Error(got)
	}
	if _, err := ParseTemplate("{name"); err == nil {
		t.Error("no error")
	}
}
