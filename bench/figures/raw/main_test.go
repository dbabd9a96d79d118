//go:build unix

package main

import "testing"

func TestText(t *testing.T) {
	// What an item holds comes before, and quotes in it are escaped.
	body := []byte(`{"Records":[{"NextShardIterator":{"S":"1"},"text":{"S":"\"NextShardIterator\":\"2\""}}],"NextShardIterator":"arn|3"}`)
	if got, err := text(body, "NextShardIterator"); err != nil || got != "arn|3" {
		t.Errorf("%q, %v; want arn|3", got, err)
	}
	for _, bad := range []string{`{"Records":[]}`, `{"NextShardIterator":"cut`} {
		if got, err := text([]byte(bad), "NextShardIterator"); err == nil {
			t.Errorf("%s: %q, want an error", bad, got)
		}
	}
}
