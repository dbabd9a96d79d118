package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/streamtest"
)

// Every mistake is printed and counted, with or without a place.
func TestMistakesAreCounted(t *testing.T) {
	placed := config.Errors{{File: "f", Line: 1, Problem: "a"}, {File: "f", Line: 2, Problem: "b"}}
	one := errors.New("one")
	for _, tt := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{one, 1},
		{errors.Join(one, errors.Join(one, one)), 3},
		{errors.Join(placed, one), 3},
		{placed, 2},
		{fmt.Errorf("within: %w", placed), 2},
		{fmt.Errorf("both: %w, %w", one, one), 1},
	} {
		var v validation
		v.add(tt.err)
		if len(v.Mistakes) != tt.want || v.Valid != (tt.err == nil) {
			t.Errorf("%v: %+v", tt.err, v)
		}
	}
	var v validation
	v.add(errors.Join(one, one))
	var stdout, stderr strings.Builder
	if err := v.print(&stdout, &stderr); err != nil || !strings.HasSuffix(stderr.String(), " has 2 mistakes\n") {
		t.Errorf("%v, %s", err, &stderr)
	}
}

// A missing index is only a warning. The error of a missing table has its place in the
// file.
func TestWhatIsMissing(t *testing.T) {
	svc := streamtest.NewService(t)
	svc.CreateTable("orders", streamtest.TableOptions{PartitionKey: "id"})
	search := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer search.Close()
	for name, value := range map[string]string{"AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"} {
		t.Setenv(name, value)
	}
	for _, tt := range []struct {
		tables     string
		connect    bool
		exit       int
		want, none string
	}{
		{"[orders]", true, 0, "warning: FILE:3:65: routes[0].project.index: there is no index or alias shop: ", "mistake"},
		{"[orders]", false, 0, "", "warning"},
		{"[orders, other]", true, exitFailed, `FILE:1:27: source.tables[1]: table "other": `, "source.tables[0]"},
		{"other", true, exitFailed, `FILE:1:18: source.tables: table "other": `, "source.tables["},
	} {
		file := filepath.Join(t.TempDir(), "sluice.yaml")
		text := fmt.Sprintf("source: {tables: %s}\nsinks: {search: {opensearch: {urls: [%q]}}}\nroutes: [{name: x, on: '*#INSERT', project: {id: '{id}', index: shop, version: 'attribute:rev'}}]\n", tt.tables, search.URL)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		env := func(name string) string {
			return map[string]string{"SLUICE_CONFIG": file, "SLUICE_ENDPOINT_DYNAMODB": svc.URL()}[name]
		}
		args := []string{"validate"}
		if tt.connect {
			args = append(args, "--connect")
		}
		var stderr strings.Builder
		exit := execute(t.Context(), args, env, io.Discard, &stderr)
		if exit != tt.exit || !strings.Contains(stderr.String(), strings.ReplaceAll(tt.want, "FILE", file)) || strings.Contains(stderr.String(), tt.none) {
			t.Errorf("%s: exit %d\n%s", tt.tables, exit, stderr.String())
		}
	}
}
