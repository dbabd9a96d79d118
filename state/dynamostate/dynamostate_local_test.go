//go:build integration

package dynamostate_test

import (
	"context"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/state"
	"github.com/sluicehq/sluice/state/dynamostate"
	"github.com/sluicehq/sluice/state/statetest"
)

// created returns the configuration for a new state table and its name.
func created(t *testing.T, o dynamostate.CreateOptions) (aws.Config, string) {
	t.Helper()
	cfg := localtest.DynamoDB(t)
	table := localtest.Name("state")
	t.Cleanup(func() {
		if _, err := dynamodb.NewFromConfig(cfg).DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &table}); err != nil {
			t.Error(err)
		}
	})
	if err := dynamostate.Create(t.Context(), cfg, table, o); err != nil {
		t.Fatal(err)
	}
	return cfg, table
}

// The suite in one table, each test under application names of its own would hide
// names that run into each other: so each test has a table.
func TestLocalConformance(t *testing.T) {
	statetest.RunDurable(t, func(t *testing.T) func() state.Store {
		cfg, table := created(t, dynamostate.CreateOptions{})
		return func() state.Store {
			s, err := dynamostate.New(cfg, table)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
	})
}

func TestLocalCreate(t *testing.T) {
	cfg, table := created(t, dynamostate.CreateOptions{Tags: map[string]string{"team": "orders"}})
	if err := dynamostate.Create(t.Context(), cfg, table, dynamostate.CreateOptions{}); err != nil {
		t.Errorf("Create of a table that exists: %v", err)
	}
	db := dynamodb.NewFromConfig(cfg)
	ttl, err := db.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: &table})
	if err != nil || aws.ToString(ttl.TimeToLiveDescription.AttributeName) != "expires" {
		t.Errorf("time to live: %+v, %v; want it by expires", ttl.TimeToLiveDescription, err)
	}
	streamed, _ := localtest.Streamed(t, "orders")
	if err := dynamostate.Create(t.Context(), cfg, streamed, dynamostate.CreateOptions{}); err == nil || !strings.Contains(err.Error(), "a state table has") {
		t.Errorf("Create of a table of others = %v", err)
	}
}
