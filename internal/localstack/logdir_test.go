package localstack

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The data of a run that is still going stay, however many come after it.
func TestLogDirs(t *testing.T) {
	cache := t.TempDir()
	first, unlock, err := newLogDir(cache)
	if err != nil {
		t.Fatal(err)
	}
	others := func(n int) {
		for range n {
			_, done, err := newLogDir(cache)
			if err != nil {
				t.Fatal(err)
			}
			done()
		}
	}
	others(2 * keptLogs)
	if _, err := os.Stat(first); err != nil {
		t.Errorf("the folder of a run that is going: %v", err)
	}
	unlock()
	others(2)
	if _, err := os.Stat(first); !os.IsNotExist(err) {
		t.Errorf("the folder of the oldest run, which is over, is still there: %v", err)
	}
	if runs, err := os.ReadDir(filepath.Join(cache, "logs")); err != nil || len(runs) != keptLogs {
		t.Errorf("%d folders, %v; want %d", len(runs), err, keptLogs)
	}
}

// No cache is needed where all servers run.
func TestCacheDir(t *testing.T) {
	for _, name := range []string{"HOME", "XDG_CACHE_HOME", "LocalAppData", EnvOpenSearch, EnvOpenSearch3} {
		t.Setenv(name, "")
	}
	t.Setenv(EnvDynamoDB, "http://127.0.0.1:1")
	t.Setenv(EnvSQS, "http://127.0.0.1:2")
	if s, err := Start(t.Context(), Options{}); err != nil || s.DynamoDB != "http://127.0.0.1:1" || s.SQS != "http://127.0.0.1:2" {
		t.Errorf("%+v, %v", s, err)
	}
	t.Setenv(EnvSQS, "")
	if _, err := Start(t.Context(), Options{}); err == nil || !strings.Contains(err.Error(), "cache folder") {
		t.Errorf("without a home: %v", err)
	}
}
