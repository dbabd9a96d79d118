package checks

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/goccy/go-yaml"
)

const (
	root   = "../.." // of the repository
	deploy = ".."
)

func read(t *testing.T, path ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// doc is a parsed file.
type doc struct {
	t    *testing.T
	name string
	v    any
}

// yamlFile reads a file of one document. CloudFormation's tags are passed over:
// !Ref X is "X".
func yamlFile(t *testing.T, path ...string) doc {
	t.Helper()
	d := doc{t: t, name: filepath.Join(path...)}
	if err := yaml.Unmarshal([]byte(read(t, path...)), &d.v); err != nil {
		t.Fatalf("%s: %v", d.name, err)
	}
	return d
}

func jsonFile(t *testing.T, path ...string) doc {
	t.Helper()
	d := doc{t: t, name: filepath.Join(path...)}
	if err := json.Unmarshal([]byte(read(t, path...)), &d.v); err != nil {
		t.Fatalf("%s: %v", d.name, err)
	}
	return d
}

// at returns the value at a path of keys (string) and indices (int). The value must
// exist.
func (d doc) at(path ...any) doc {
	d.t.Helper()
	for _, p := range path {
		name := fmt.Sprintf("%s.%v", d.name, p)
		var v any
		ok := false
		switch p := p.(type) {
		case string:
			m, isMap := d.v.(map[string]any)
			v, ok = m[p], isMap
			if _, has := m[p]; !has {
				ok = false
			}
		case int:
			l, isList := d.v.([]any)
			if ok = isList && p < len(l); ok {
				v = l[p]
			}
		}
		if !ok {
			d.t.Fatalf("%s is not there", name)
		}
		d = doc{t: d.t, name: name, v: v}
	}
	return d
}

// has reports whether a key is there.
func (d doc) has(key string) bool {
	m, _ := d.v.(map[string]any)
	_, ok := m[key]
	return ok
}

func (d doc) is(want any) {
	d.t.Helper()
	got := d.v
	if n, ok := number(got); ok {
		got = n
	}
	if n, ok := number(want); ok {
		want = n
	}
	if !reflect.DeepEqual(got, want) {
		d.t.Errorf("%s is %#v, want %#v", d.name, got, want)
	}
}

func (d doc) list() (all []doc) {
	d.t.Helper()
	l, ok := d.v.([]any)
	if !ok {
		d.t.Fatalf("%s is no list but %T", d.name, d.v)
	}
	for i := range l {
		all = append(all, d.at(i))
	}
	return all
}

func (d doc) text() string {
	d.t.Helper()
	s, ok := d.v.(string)
	if !ok {
		d.t.Fatalf("%s is no string but %#v", d.name, d.v)
	}
	return s
}

func (d doc) num() float64 {
	d.t.Helper()
	n, ok := number(d.v)
	if !ok {
		d.t.Fatalf("%s is no number but %#v", d.name, d.v)
	}
	return n
}

func number(v any) (float64, bool) {
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Int, reflect.Int64:
		return float64(r.Int()), true
	case reflect.Uint64:
		return float64(r.Uint()), true
	case reflect.Float64:
		return r.Float(), true
	default:
		return 0, false
	}
}

// values are all that d holds under a key, at any depth.
func (d doc) values(key string) (all []doc) {
	switch v := d.v.(type) {
	case map[string]any:
		for k := range v {
			at := d.at(k)
			if k == key {
				all = append(all, at)
			}
			all = append(all, at.values(key)...)
		}
	case []any:
		for i := range v {
			all = append(all, d.at(i).values(key)...)
		}
	}
	return all
}
