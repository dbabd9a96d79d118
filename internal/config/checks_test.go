package config

import (
	"errors"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// Each sink has one check for all its routes, including the routes of cascades' queues
// and watchdogs. Every name in a check is a route's.
func TestChecks(t *testing.T) {
	for name, tt := range map[string]struct {
		file *Config
		want []string
	}{
		"cascades": {mapsFile(), []string{
			"cascades: cascade.delete, delete points",
			"table maps: cascade.delete, count points, delete maps, delete points",
			"table markers: count points",
			"table points: cascade.delete, delete points",
			"table users: count points, delete maps",
		}},
		"escalations": {calls(), []string{
			"tries: call.watch, next, start", "watches: call.watch, next, start", "table calls: call.watch, next, start",
		}},
		"escalations with contact": {contacted("https://example.com"), []string{
			"tries: call.watch, contact, next, start", "watches: call.watch, contact, next, start", "table calls: call.watch, contact, next, start",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			app, err := build(t, tt.file, newWorld().setup())
			if err != nil {
				t.Fatal(err)
			}
			var routes, got []string
			for _, r := range app.Router.Routes() {
				routes = append(routes, r.Name)
			}
			for _, c := range app.Checks {
				got = append(got, c.Sink+": "+strings.Join(c.Routes, ", "))
				for _, r := range c.Routes {
					if !slices.Contains(routes, r) {
						t.Errorf("sink %s: there is no route %q among %q", c.Sink, r, routes)
					}
				}
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("checks %q, want %q", got, tt.want)
			}
		})
	}
}

// The error of a check has the sink's place in the file.
func TestChecksSayWhere(t *testing.T) {
	c := mapsFile()
	app, err := build(t, c, Setup{AWS: func(string) aws.Config {
		return aws.Config{Region: "us-east-1", BaseEndpoint: new("http://127.0.0.1:1"), RetryMaxAttempts: 1}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := app.Checks[0].Check(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "f:1:") || !strings.Contains(err.Error(), ": sinks.cascades: ") || !errors.As(err, new(*net.OpError)) {
		t.Error(err)
	}
}
