//go:build integration

package streamtest

import (
	"context"
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/item/sdkitem"
)

// With make aws it is the service that the suite is about, in which nothing may
// differ.
func TestConformanceOfDynamoDBLocal(t *testing.T) {
	localtest.OwnDynamoDB(t)
	conform(t, os.Getenv(localtest.EnvAWS) == "", func(t testing.TB) driver {
		cfg := localtest.DynamoDB(t)
		l := &local{t: t, cfg: cfg, db: dynamodb.NewFromConfig(cfg), live: make(map[string]bool)}
		t.Cleanup(func() {
			for name := range l.live {
				l.drop(name)
			}
		})
		return l
	})
}

type local struct {
	t    testing.TB
	cfg  aws.Config
	db   *dynamodb.Client
	live map[string]bool // tables
}

// The end of a test needs a context too.
func (l *local) ctx() context.Context { return context.WithoutCancel(l.t.Context()) }

func (l *local) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *local) config() aws.Config { return l.cfg }

func (l *local) create(name, sortKey, view string) {
	in := &dynamodb.CreateTableInput{TableName: &name, BillingMode: types.BillingModePayPerRequest, StreamSpecification: spec(view)}
	add := func(key string, kind types.KeyType) {
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: &key, AttributeType: types.ScalarAttributeTypeS})
		in.KeySchema = append(in.KeySchema, types.KeySchemaElement{AttributeName: &key, KeyType: kind})
	}
	add("pk", types.KeyTypeHash)
	if sortKey != "" {
		add(sortKey, types.KeyTypeRange)
	}
	_, err := l.db.CreateTable(l.ctx(), localtest.OneShard(in))
	l.must(err)
	l.live[name] = true
}

func spec(view string) *types.StreamSpecification {
	if view == "" {
		return &types.StreamSpecification{StreamEnabled: aws.Bool(false)}
	}
	return &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewType(view)}
}

func (l *local) drop(name string) {
	delete(l.live, name)
	_, err := l.db.DeleteTable(l.ctx(), &dynamodb.DeleteTableInput{TableName: &name})
	l.must(err)
}

func (l *local) stream(table, view string) {
	_, err := l.db.UpdateTable(l.ctx(), &dynamodb.UpdateTableInput{TableName: &table, StreamSpecification: spec(view)})
	l.must(err)
}

func (l *local) put(table, text string) {
	_, err := l.db.PutItem(l.ctx(), &dynamodb.PutItemInput{TableName: &table, Item: l.parse(text)})
	l.must(err)
}

func (l *local) remove(table, key string) {
	_, err := l.db.DeleteItem(l.ctx(), &dynamodb.DeleteItemInput{TableName: &table, Key: l.parse(key)})
	l.must(err)
}

func (l *local) parse(text string) map[string]types.AttributeValue {
	it, err := item.Parse([]byte(text))
	l.must(err)
	return sdkitem.Map(it)
}
