package main

import (
	"slices"
	"testing"

	"github.com/sluicehq/sluice/internal/config"
)

func TestRepairs(t *testing.T) {
	c := &cli{file: "/etc/my sluice.yaml", lookup: func(string) (string, bool) { return "", false }}
	cfg := &config.Config{Routes: []config.Route{
		{Name: "products", Project: &config.Project{}},
		{Name: "it's counted", Count: &config.Count{}},
		{Name: "jobs", Send: &config.Send{}},
		{Name: "points", Cascade: &config.Cascade{}},
	}}
	want := []string{
		"sluice audit --config '/etc/my sluice.yaml' --route products --repair",
		`sluice recount --config '/etc/my sluice.yaml' --route 'it'\''s counted' --repair`,
		"sluice cascade --config '/etc/my sluice.yaml' --route points --key KEY   # of each parent that is gone",
	}
	if got := c.repairs(cfg); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	c.file = ""
	if got := c.repairs(cfg)[0]; got != "sluice audit --route products --repair" {
		t.Errorf("%q", got)
	}
}
