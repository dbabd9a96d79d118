//go:build integration

package main

import "testing"

func TestScreenshots(t *testing.T) {
	if err := run(t.Context(), t.TempDir()); err != nil {
		t.Fatal(err)
	}
}
