package main

import (
	"context"
	"testing"

	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/holders"
	"github.com/sluicehq/sluice/internal/statestore"
)

// fleetOf is a state table with these workers.
type fleetOf struct {
	statestore.Store
	workers []holders.Worker
}

func (f fleetOf) Publish(string) {}

func (f fleetOf) Workers(context.Context, string) ([]holders.Worker, error) { return f.workers, nil }

// A table without a living worker pauses nothing. A worker that reads only queues is in
// no table.
func TestIdleRoutes(t *testing.T) {
	dead := []holders.Worker{{State: holders.Silent}, {State: holders.Fenced}}
	for name, c := range map[string]struct {
		store  statestore.Store
		tables []string
		want   bool
	}{
		"a file":      {nil, []string{"orders"}, true},
		"no worker":   {fleetOf{}, []string{"orders"}, true},
		"dead ones":   {fleetOf{workers: dead}, []string{"orders"}, true},
		"a living":    {fleetOf{workers: append(dead, holders.Worker{State: holders.Living})}, []string{"orders"}, false},
		"only queues": {fleetOf{}, nil, false},
	} {
		cfg := new(config.Config)
		cfg.Source.Tables = c.tables
		if got, err := (storedRoutes{c.store, "app", cfg}).idle(t.Context()); got != c.want || err != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}
