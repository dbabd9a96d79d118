package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/internal/localstack"
)

// tried runs the program in an empty folder with no programs but those of bin.
func tried(t *testing.T, bin string) (out string, err error) {
	t.Helper()
	cache := t.TempDir()
	t.Chdir(t.TempDir())
	t.Setenv("XDG_CACHE_HOME", cache)
	t.Setenv("HOME", cache)
	t.Setenv("PATH", bin)
	t.Setenv("JAVA_HOME", "")
	t.Setenv(localstack.EnvDynamoDB, "")
	t.Setenv(localstack.EnvSQS, "")
	var text strings.Builder
	cmd := command(&text, &text)
	cmd.SetArgs(nil)
	err = cmd.ExecuteContext(t.Context())
	if files, _ := filepath.Glob(filepath.Join(cache, "*")); len(files) > 0 {
		t.Errorf("it left %q in the cache", files)
	}
	return text.String(), err
}

func TestWithoutSluice(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(filepath.Dir(self), "sluice") // as cmd/ of the repository has
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(folder)
	if _, err := tried(t, t.TempDir()); err == nil || !strings.Contains(err.Error(), "not on PATH") {
		t.Errorf("it says %v", err)
	}
}

// Without Java it downloads nothing, and names Docker as the other way.
func TestWithoutJava(t *testing.T) {
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "sluice"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := tried(t, bin)
	if err == nil || !strings.Contains(err.Error(), "Java 17") || !strings.Contains(err.Error(), "docker compose") {
		t.Errorf("it says %v", err)
	}
}

func TestQuoted(t *testing.T) {
	if got := quoted("/a b/it's"); got != `'/a b/it'\''s'` {
		t.Errorf("got %s", got)
	}
}

// Only a table that exists is named as left.
func TestRemoveFails(t *testing.T) {
	svc := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "{}", http.StatusBadRequest) }))
	defer svc.Close()
	for _, created := range []bool{false, true} {
		var log strings.Builder
		s := &session{log: &log, stack: &localstack.Stack{DynamoDB: svc.URL, SQS: svc.URL}}
		s.connect()
		s.created = created
		if s.remove(); strings.Contains(log.String(), "delete table "+s.table) != created {
			t.Errorf("created %v: %q", created, log.String())
		}
	}
}
