package configref

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const renew = "run `go generate ./internal/config`"

func TestSchemaIsUpToDate(t *testing.T) {
	made, err := Schema(filepath.Join("..", "config"))
	if err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(filepath.Join("..", "..", "deploy", "schema", "sluice.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(made, written) {
		t.Errorf("deploy/schema/sluice.schema.json is not what the types say: %s", renew)
	}
}

func TestReferenceIsUpToDate(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "configuration.md"))
	if err != nil {
		t.Fatal(err)
	}
	made, err := Reference(filepath.Join("..", "config"), page)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(made, page) {
		t.Errorf("docs/configuration.md is not what the types say: %s", renew)
	}
	if _, err := Reference(filepath.Join("..", "config"), []byte("no mark")); err == nil || !strings.Contains(err.Error(), "has no line") {
		t.Errorf("%v", err)
	}
}
