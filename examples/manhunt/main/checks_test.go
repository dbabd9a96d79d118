package main

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sluicehq/sluice/examples/manhunt"
	"github.com/sluicehq/sluice/examples/manhunt/reflex"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/run"
)

// While a queue is down, the daemon holds the routes that a check names: each name is
// that of a route, and the routes of Reflex that send belong to one of the checks.
func TestChecksNameRoutes(t *testing.T) {
	for name, c := range map[string]struct {
		tables []string
		told   string // REFLEX_QUEUE
	}{
		"manhunt":                           {[]string{"m"}, ""},
		"manhunt and its notices":           {[]string{"m"}, "told"},
		"reflex on one queue":               {[]string{"m", "r"}, ""},
		"reflex with a queue for what ends": {[]string{"m", "r"}, "told"},
	} {
		t.Run(name, func(t *testing.T) {
			env := map[string]string{"MANHUNT_QUEUE": "attempts", "MANHUNT_WATCH_QUEUE": "watches", "REFLEX_QUEUE": c.told}
			setup := run.Setup{
				Tables: c.tables, Env: func(name string) string { return env[name] }, Logger: slog.Default(),
				AWS: func(string) aws.Config { return aws.Config{Region: "us-east-1"} },
			}
			held := map[string]bool{}
			for variable, routes := range manhunt.Senders(setup) {
				for _, r := range routes {
					held[r] = held[r] || env[variable] != ""
				}
			}
			d, err := manhunt.Connect(setup, nil)
			if err != nil {
				t.Fatal(err)
			}
			r := router.New()
			if len(c.tables) == 2 {
				if d.Notify == nil {
					d.Notify = d.Send
				}
				if err := reflex.Register(r, reflex.Deps{Store: d.Store, Table: "r", Manhunt: "m", Send: d.Notify, Now: time.Now}); err != nil {
					t.Fatal(err)
				}
			}
			if err := manhunt.Register(r, d); err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, one := range r.Routes() {
				names = append(names, one.Name)
			}
			for route, named := range held {
				if named && !slices.Contains(names, route) {
					t.Errorf("there is no route %q among %q", route, names)
				}
			}
			for _, route := range []string{"first step", "resume", "next step", "attempt", "expire", "watch", "notify", "first stage", "next stage", "mended", "stage limit"} {
				if slices.Contains(names, route) && !held[route] {
					t.Errorf("route %q sends, and no check names it", route)
				}
			}
			if held["resolve"] || held["drop contact"] {
				t.Error("routes that send nothing are held while a queue is down")
			}
		})
	}
}

func TestRoutesWantTwoTablesAtMost(t *testing.T) {
	_, err := routes(run.Setup{Tables: []string{"manhunt", "reflex", "more"}}, time.Now)
	if err == nil || !strings.Contains(err.Error(), "--table") || !strings.Contains(err.Error(), "not 3: manhunt, reflex, more") {
		t.Error(err)
	}
}
