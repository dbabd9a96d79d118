package config

import (
	"reflect"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

func TestOrdered(t *testing.T) {
	var p Project
	text := "rename: {z: a, a: b, m.n: c}\nfields: {type: product, price: '{price}', live: true, n: 3, none: null}\n"
	if err := yaml.Unmarshal([]byte(text), &p); err != nil {
		t.Fatal(err)
	}
	if want := (Texts{{"z", "a"}, {"a", "b"}, {"m.n", "c"}}); !reflect.DeepEqual(p.Rename, want) {
		t.Errorf("%v", p.Rename)
	}
	if want := (Fields{{"type", "product"}, {"price", "{price}"}, {"live", true}, {"n", uint64(3)}, {"none", nil}}); !reflect.DeepEqual(p.Fields, want) {
		t.Errorf("%#v", p.Fields)
	}
	for text, want := range map[string]string{
		"rename: {a: 3}":      "a is 3, want a text",
		"rename: {3: a}":      "the name 3 is not a text",
		"fields: {a: [1, 2]}": "a is a list or a mapping",
	} {
		if err := yaml.Unmarshal([]byte(text), new(Project)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
