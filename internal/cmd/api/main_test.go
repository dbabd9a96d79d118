package main

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// A change of the public surface changes surface.txt: reviews see it.
func TestSurface(t *testing.T) {
	file, err := os.ReadFile("surface.txt")
	if err != nil {
		t.Fatal(err)
	}
	text, err := surface("../../..")
	if err != nil {
		t.Fatal(err)
	}
	got, want := strings.Split(text, "\n"), strings.Split(string(file), "\n")
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("- %s", line)
		}
	}
	for _, line := range got {
		if !slices.Contains(want, line) {
			t.Errorf("+ %s", line)
		}
	}
	if t.Failed() {
		t.Error("the public surface has changed. If you mean it: make --silent api > internal/cmd/api/surface.txt")
	}
}
