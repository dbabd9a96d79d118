//go:build integration

package demo

import (
	"strings"
	"testing"

	"github.com/sluicehq/sluice/internal/localtest"
)

func TestDemo(t *testing.T) {
	localtest.DynamoDB(t) // each fails without its server
	localtest.SQS(t)
	localtest.OpenSearchURL(t)
	t.Chdir("../..") // it builds the example from the module's root
	var out strings.Builder
	if err := Run(t.Context(), &out, t.Output()); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, want := range []string{"7 written, 3 routed, 4 settled without a route", "2 by the daemon, the same bytes by Lambda", "call a271244#1   the contact was called", "the search is successful", "600 on the map, 600 on the user", "all points, and every count is 0 again",
		`"brass" finds version 1`, `"copper" finds version 2`, `"brass" finds nothing any more`, `"copper" finds nothing, `,
		"has its share after", "all handled by worker B, the last", "4 of 4 are worker B's"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("output lacks %q:\n%s", want, out.String())
		}
	}
}
