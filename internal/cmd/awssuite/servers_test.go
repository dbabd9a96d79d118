//go:build integration

package main

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sluicehq/sluice/internal/localstack"
	"github.com/sluicehq/sluice/internal/localtest"
)

// Tests use the servers through the gateway, unchanged. The suite removes their
// resources.
func TestGatewayOnServers(t *testing.T) {
	localtest.SQS(t) // fails outside of make test
	getenv := func(name string) string {
		return map[string]string{localstack.EnvDynamoDB: *localtest.DynamoDB(t).BaseEndpoint, localstack.EnvSQS: *localtest.SQS(t).BaseEndpoint}[name]
	}
	a, err := openLocal(getenv)
	if err != nil {
		t.Fatal(err)
	}
	g := newGateway(a, prefix, "run")
	defer g.close()
	t.Setenv(localtest.EnvPrefix, g.prefix)
	t.Setenv(localstack.EnvDynamoDB, g.dynamodbURL)
	t.Setenv(localstack.EnvSQS, g.sqsURL)

	db := dynamodb.NewFromConfig(localtest.DynamoDB(t))
	var table, arn string
	t.Run("a test", func(t *testing.T) { // which deletes its table
		table, arn = localtest.Streamed(t, "gateway")
		if _, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: map[string]ddbtypes.AttributeValue{"id": &ddbtypes.AttributeValueMemberS{Value: "é"}}}); err != nil {
			t.Fatal(err)
		}
		d, err := dynamodbstreams.NewFromConfig(localtest.DynamoDB(t)).DescribeStream(t.Context(), &dynamodbstreams.DescribeStreamInput{StreamArn: &arn})
		if err != nil || len(d.StreamDescription.Shards) != 1 {
			t.Fatalf("%+v, %v", d, err)
		}
	})
	if left := g.created(); len(left) != 0 {
		t.Errorf("%v is left", left)
	}

	name := localtest.Name("left")
	c := client{tables: db, queues: sqs.NewFromConfig(localtest.SQS(t))}
	if err := c.table(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	if err := c.queue(t.Context(), name+".x"); err == nil {
		t.Error("a name that is not valid was taken")
	}
	if err := c.queue(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	url, err := c.queues.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: &name})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.queues.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: url.QueueUrl, MessageBody: aws.String("é")}); err != nil {
		t.Fatal(err)
	}
	if out, err := c.queues.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: url.QueueUrl}); err != nil || len(out.Messages) != 1 || *out.Messages[0].Body != "é" {
		t.Errorf("%+v, %v", out, err)
	}
	all, err := a.named(t.Context(), prefix)
	if err != nil || len(all) != 2 {
		t.Errorf("there are %v, %v", all, err)
	}
	if err := a.remove(t.Context(), g.created(), "run"); err != nil {
		t.Error(err)
	}
	if all, err := a.named(t.Context(), prefix); err != nil || len(all) != 0 {
		t.Errorf("there are %v, %v", all, err)
	}
}
