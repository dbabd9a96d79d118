package localtest

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Capacity costs, so that a table has it on AWS alone.
func TestOneShard(t *testing.T) {
	for env, want := range map[string]types.BillingMode{"": types.BillingModePayPerRequest, "1": types.BillingModeProvisioned} {
		t.Setenv(EnvAWS, env)
		in := OneShard(&dynamodb.CreateTableInput{BillingMode: types.BillingModePayPerRequest})
		if in.BillingMode != want || (in.ProvisionedThroughput != nil) != (env != "") {
			t.Errorf("with %q: %+v", env, in)
		}
	}
}

// A name is the test's alone, and begins as the run says.
func TestName(t *testing.T) {
	t.Setenv(EnvPrefix, "mine-")
	if a, b := Name("orders"), Name("orders"); a == b || a[:12] != "mine-orders-" {
		t.Error(a, b)
	}
}
