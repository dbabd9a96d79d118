// Command configref writes the JSON Schema and the reference of configuration
// files. `go generate ./internal/config` runs it.
package main

import (
	"log"
	"os"
	"path/filepath"

	"github.com/sluicehq/sluice/internal/configref"
)

func main() {
	log.SetFlags(0)
	if err := run(filepath.Join("..", "..")); err != nil { // go generate runs it in internal/config
		log.Fatal(err)
	}
}

func run(root string) error {
	dir := filepath.Join(root, "internal", "config")
	text, err := configref.Schema(dir)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(root, "deploy", "schema", "sluice.schema.json"), text, 0o644); err != nil {
		return err
	}
	page := filepath.Join(root, "docs", "configuration.md")
	before, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	after, err := configref.Reference(dir, before)
	if err != nil {
		return err
	}
	return os.WriteFile(page, after, 0o644)
}
