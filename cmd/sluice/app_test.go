package main

import (
	"strings"
	"testing"

	"github.com/sluicehq/sluice/handlers/cascade"
	"github.com/sluicehq/sluice/internal/config"
)

// A route is found by its name, or as the only one of its kind. Otherwise the error
// helps to name it.
func TestRoute(t *testing.T) {
	app := &config.App{Routes: []config.BuiltRoute{
		{Name: "orders"}, {Name: "delete maps", Cascade: new(cascade.Cascade)}, {Name: "delete users", Cascade: new(cascade.Cascade)},
	}}
	isCascade := func(r config.BuiltRoute) bool { return r.Cascade != nil }
	for _, tt := range []struct {
		routes     int // of app
		name, want string
		err        string
	}{
		{3, "delete users", "delete users", ""},
		{2, "", "delete maps", ""},
		{3, "", "", "there are several cascade routes: say which by --route: delete maps, delete users"},
		{1, "", "", "the file has no cascade route"},
		{3, "orders", "", `"orders" is no cascade route`},
		{3, "delete user", "", `there is no route "delete user": did you mean "delete users"?`},
		{3, "x", "", `there is no route "x"; there are orders, delete maps, delete users`},
	} {
		r, err := route(&config.App{Routes: app.Routes[:tt.routes]}, tt.name, "cascade", isCascade)
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%d routes, %q: error %v, want %q", tt.routes, tt.name, err, tt.err)
			}
		} else if err != nil || r.Name != tt.want {
			t.Errorf("%d routes, %q: %q, %v; want %q", tt.routes, tt.name, r.Name, err, tt.want)
		}
	}
}

// The endpoint is named as it was set; the variable goes before the file.
func TestEndpointName(t *testing.T) {
	file := &config.Config{AWS: config.AWS{Endpoints: map[string]string{"dynamodb": "http://127.0.0.1:8000"}}}
	for _, tt := range []struct {
		variable string
		cfg      *config.Config
		want     string
	}{
		{"http://127.0.0.1:1", file, "SLUICE_ENDPOINT_DYNAMODB"},
		{"", file, "aws.endpoints.dynamodb of the configuration"},
		{"", &config.Config{}, ""},
		{"", nil, ""},
	} {
		c := &cli{lookup: func(name string) (string, bool) {
			return tt.variable, name == "SLUICE_ENDPOINT_DYNAMODB" && tt.variable != ""
		}}
		if got := c.endpointName("dynamodb", tt.cfg); got != tt.want {
			t.Errorf("%q, %+v: %q, want %q", tt.variable, tt.cfg, got, tt.want)
		}
	}
}

// Names of tables and indices may be long.
func TestNearestOfLongNames(t *testing.T) {
	long := strings.Repeat("x", 100)
	for name, want := range map[string]string{long + "ordres": long + "orders", strings.Repeat("y", 100): ""} {
		if got := nearest(name, []string{"orders", long + "orders"}); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
