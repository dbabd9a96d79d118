// Command handwritten is a function as people write it without a framework:
// the event type of aws-lambda-go, a loop, a switch, and one SendMessage for
// each record.
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

type message struct {
	PK, SK string
	Event  string
}

type function struct {
	queue    *sqs.Client
	queueURL string
}

func main() {
	cfg, err := config.LoadDefaultConfig(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	f := function{queue: sqs.NewFromConfig(cfg), queueURL: os.Getenv("QUEUE_URL")}
	lambda.Start(f.handle)
}

func (f function) handle(ctx context.Context, e events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
	var answer events.DynamoDBEventResponse
	for _, rec := range e.Records {
		if err := f.record(ctx, rec); err != nil {
			log.Print(err)
			answer.BatchItemFailures = append(answer.BatchItemFailures, events.DynamoDBBatchItemFailure{ItemIdentifier: rec.Change.SequenceNumber})
			break
		}
	}
	return answer, nil
}

func (f function) record(ctx context.Context, rec events.DynamoDBEventRecord) error {
	switch rec.Change.NewImage["entityType"].String() + "#" + rec.EventName {
	case "search#MODIFY", "searchAttempt#MODIFY", "contact#MODIFY", "contactMethod#MODIFY", "incident#MODIFY":
		body, err := json.Marshal(message{
			PK:    rec.Change.Keys["PK"].String(),
			SK:    rec.Change.Keys["SK"].String(),
			Event: rec.EventName,
		})
		if err != nil {
			return err
		}
		_, err = f.queue.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &f.queueURL, MessageBody: aws.String(string(body))})
		return err
	}
	return nil
}
