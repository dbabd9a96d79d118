//go:build integration

package localtest_test

import (
	"crypto/rand"
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

// What was acknowledged before a SIGKILL is there after it, at the same address.
func TestOwnOpenSearchSurvivesKill(t *testing.T) {
	own := localtest.OwnOpenSearch(t)
	index := own.URL + "/own-" + strings.ToLower(rand.Text())
	if status, answer := call(t, "PUT", index, `{"settings":{"number_of_replicas":0}}`); status != http.StatusOK {
		t.Fatal(status, answer)
	}
	if status, answer := call(t, "PUT", index+"/_doc/a?version=7&version_type=external", `{"n":1}`); status != http.StatusCreated {
		t.Fatal(status, answer)
	}
	own.Kill()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	if resp, err := client.Get(own.URL); err == nil {
		resp.Body.Close()
		t.Fatal("it answers after Kill")
	}
	own.Start()
	if status, answer := call(t, "GET", index+"/_doc/a", ""); status != http.StatusOK || answer["_version"] != 7.0 {
		t.Errorf("after the kill: %d %v, want version 7", status, answer)
	}
}
