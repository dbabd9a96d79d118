package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/internal/config"
)

// file has an index in FILE, and a variable that is set in the function alone.
const file = `
source: {tables: [orders]}
sinks:
  search:
    opensearch:
      urls: ["${SEARCH}"]
      indices: [{alias: products, file: "FILE"}]
routes:
  - {name: products, on: 'product#*', project: {to: search, index: products, id: "{pk}", version: sequence}}
`

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func unset(string) (string, bool) { return "", false }

// The package loads in an empty folder.
func TestPack(t *testing.T) {
	for _, name := range []string{"products.json", "search/products.json", "./products.json", "${NONE:-products}.json"} {
		dir, folder := t.TempDir(), filepath.Join(t.TempDir(), "build")
		write(t, filepath.Join(dir, "shop.yaml"), strings.Replace(file, "FILE", name, 1))
		write(t, filepath.Join(dir, strings.Replace(name, "${NONE:-products}", "products", 1)), `{"settings":{},"mappings":{}}`)
		write(t, filepath.Join(folder, "old.json"), "{}")
		if err := pack(filepath.Join(dir, "shop.yaml"), folder, unset); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if _, err := config.Load(filepath.Join(folder, "sluice.yaml"), func(name string) (string, bool) {
			if name == "SEARCH" {
				return "http://search:9200", true
			}
			return "", false
		}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if info, err := os.Stat(filepath.Join(folder, "sluice.yaml")); err != nil || info.Mode().Perm() != 0o644 {
			t.Errorf("%s: %v, %v; want a file that everybody may read", name, info, err)
		}
		if _, err := os.Stat(filepath.Join(folder, "old.json")); err == nil {
			t.Errorf("%s: a file of another configuration is packed", name)
		}
	}
}

func TestPackRefuses(t *testing.T) {
	for name, want := range map[string]string{
		"../products.json":   "and a function has only what is in its package",
		"/etc/products.json": "and a function has only what is in its package",
		"none.json":          "sluice.yaml:7:41: sinks.search.opensearch.indices[0].file: \"none.json\": there is no such file",
		"${NONE}.json":       "the variable NONE is not set",
		"bootstrap":          "a name that is taken",
	} {
		dir, folder := t.TempDir(), filepath.Join(t.TempDir(), "build")
		at := filepath.Join(dir, "shop", "sluice.yaml")
		write(t, at, strings.Replace(file, "FILE", name, 1))
		write(t, filepath.Join(dir, "products.json"), "{}")
		write(t, filepath.Join(dir, "shop", "bootstrap"), "{}")
		if err := pack(at, folder, unset); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %s", name, err, want)
		}
		if _, err := os.Stat(folder); err == nil {
			t.Errorf("%s: something is packed", name)
		}
	}
}
