//go:build integration

package dynamodb

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/item"
)

func TestLocalCurrent(t *testing.T) {
	cfg := localtest.DynamoDB(t)
	table, arn := localtest.Streamed(t, "current")
	if _, err := dynamodb.NewFromConfig(cfg).PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: map[string]types.AttributeValue{
		"id": &types.AttributeValueMemberS{Value: "a"}, "n": &types.AttributeValueMemberN{Value: "7"},
	}}); err != nil {
		t.Fatal(err)
	}
	s, err := New(cfg, Options{Timeout: localtest.Patience})
	if err != nil {
		t.Fatal(err)
	}
	of := func(id string) *sluice.Record {
		return &sluice.Record{StreamARN: arn, Keys: item.Of(item.String("id", id))}
	}
	if it, err := s.Current(t.Context(), of("a")); err != nil || it.Len() != 2 {
		t.Errorf("%s, %v", it.Raw(), err)
	}
	if it, err := s.Current(t.Context(), of("b")); err != nil || it.Exists() {
		t.Errorf("%s, %v", it.Raw(), err)
	}
	for _, rec := range []*sluice.Record{{Keys: item.Of(item.String("id", "a"))}, {StreamARN: arn}} {
		if _, err := s.Current(t.Context(), rec); err == nil {
			t.Errorf("%+v", rec)
		}
	}
}
