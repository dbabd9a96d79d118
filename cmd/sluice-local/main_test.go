package main

import (
	"errors"
	"io"
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
	_, err := tried(t, scripts(t, map[string]string{"sluice": ""}))
	if err == nil || !strings.Contains(err.Error(), "Java 17") || !strings.Contains(err.Error(), "docker compose") {
		t.Errorf("it says %v", err)
	}
}

// scripts are programs by their name, in a folder.
func scripts(t *testing.T, of map[string]string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	for name, script := range of {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

const java17 = `echo 'openjdk version "17.0.1"' >&2`

// Without Maven it makes no folder for what it cannot fetch.
func TestWithoutMaven(t *testing.T) {
	out, err := tried(t, scripts(t, map[string]string{"sluice": "", "java": java17}))
	if err == nil || !strings.Contains(err.Error(), "Maven is needed") || out != "" {
		t.Errorf("it says %v, and prints %q", err, out)
	}
}

// Programs in a folder that somebody put above the working directory do not run.
func TestFetchesForTheUserAlone(t *testing.T) {
	planted := t.TempDir()
	pom := filepath.Join(planted, "deploy/local/elasticmq/pom.xml")
	if err := os.MkdirAll(filepath.Dir(pom), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(pom, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{localstack.EnvDynamoDB, localstack.EnvSQS, "JAVA_HOME"} {
		t.Setenv(name, "")
	}
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CACHE_HOME", filepath.Join(home, "cache"))
	t.Setenv("PATH", scripts(t, map[string]string{"sluice": "", "java": java17, "mvn": "exit 1"}))
	t.Chdir(planted)
	var out strings.Builder
	cmd := command(&out, &out)
	cmd.SetArgs(nil)
	if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(out.String(), "into "+home) {
		t.Errorf("%v: %s", err, out.String())
	}
}

func TestWrongUsage(t *testing.T) {
	for _, args := range [][]string{{"--stya"}, {"more"}} {
		cmd := command(io.Discard, io.Discard)
		cmd.SetArgs(args)
		err := cmd.ExecuteContext(t.Context())
		if _, wrong := errors.AsType[*usageError](err); !wrong || !strings.Contains(err.Error(), "--help") {
			t.Errorf("%v: %v", args, err)
		}
	}
}

func TestVersion(t *testing.T) {
	var out strings.Builder
	cmd := command(&out, &out)
	cmd.SetArgs([]string{"--version"})
	if err := cmd.ExecuteContext(t.Context()); err != nil || !strings.HasPrefix(out.String(), "sluice-local version ") {
		t.Errorf("%v: %s", err, out.String())
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
