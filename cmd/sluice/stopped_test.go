package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestStopped(t *testing.T) {
	ended, stop := context.WithCancel(t.Context())
	stop()
	canceled := fmt.Errorf("operation Scan: %w", context.Canceled)
	refused := errors.New("refused")
	for _, tt := range []struct {
		name string
		ctx  context.Context
		err  error
		want string
	}{
		{"by Ctrl-C", ended, canceled, "stopped before all was read"},
		{"by something else meanwhile", ended, refused, "refused"},
		{"by a context of its own", t.Context(), canceled, "operation Scan: context canceled"},
		{"not at all", ended, nil, "<nil>"},
	} {
		if got := fmt.Sprint(stopped(tt.ctx, tt.err, "all was read")); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// Every command exits with 1 at Ctrl-C, without the error "context canceled".
func TestCommandsThatAreStopped(t *testing.T) {
	for name, value := range map[string]string{
		"AWS_EC2_METADATA_DISABLED": "true", "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
	} {
		t.Setenv(name, value)
	}
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "indices"), 0o700); err != nil {
		t.Fatal(err)
	}
	file, records := filepath.Join(folder, "sluice.yaml"), filepath.Join(folder, "records.ndjson")
	for path, text := range map[string]string{
		records: "{}\n", filepath.Join(folder, "indices", "orders.json"): "{}",
		file: `
source: {tables: [orders]}
aws: {endpoints: {dynamodb: "http://127.0.0.1:9"}}
sinks: {search: {opensearch: {urls: ["http://127.0.0.1:9"]}}}
routes:
  - name: found
    on: order#*
    project: {index: orders, id: "{id}", version: attribute:rev}
  - name: counted
    on: order#*
    count: {id: orders, markers: markers, numbers: [{table: customers, attribute: orders, key: {id: customer}, index: byCustomer, partition: customer}]}
  - name: deleted
    on: order#REMOVE
    cascade: {key: id, children: [{name: lines, table: lines, key: [order, line], partition: {name: order, from: id}}]}
`,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	for _, args := range [][]string{
		{"recount"}, {"recount", "--key", `{"id":"1"}`},
		{"audit"},
		{"reindex", "start", "--indices", folder}, {"reindex", "swap"}, {"reindex", "rollback"}, {"reindex", "finish"}, {"reindex", "abandon"}, {"reindex", "status"},
		{"cascade", "--key", `{"id":"1"}`}, {"cascade", "--key", `{"id":"1"}`, "--dry-run"},
		{"backfill", "--state", filepath.Join(folder, "state.db")},
		{"replay", records, "--failed", filepath.Join(folder, "failed.ndjson")},
		{"validate", "--connect"},
	} {
		var stdout, stderr bytes.Buffer
		code := execute(ctx, append(args, "--config", file), func(string) string { return "" }, &stdout, &stderr)
		if text := stdout.String() + stderr.String(); code != 1 || !strings.Contains(text, "stopped before ") || strings.Contains(text, "canceled") {
			t.Errorf("%v: exit code %d: %s", args, code, text)
		}
	}
}
