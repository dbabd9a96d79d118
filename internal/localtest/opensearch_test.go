//go:build integration

package localtest_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/internal/localtest"
)

// call makes one request and returns the decoded answer.
func call(t *testing.T, method, url, body string) (int, map[string]any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, answer
}

func TestOpenSearchVersions(t *testing.T) {
	localtest.OpenSearch(t, func(t *testing.T, url string) {
		_, answer := call(t, "GET", url, "")
		version, _ := answer["version"].(map[string]any)
		got, _ := version["number"].(string)
		want := strings.TrimPrefix(t.Name(), "TestOpenSearchVersions/opensearch") + "."
		if !strings.HasPrefix(got, want) {
			t.Errorf("version %q, want %s", got, want)
		}
	})
}
