package sqs_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/sinks/sqs"
)

// A handler that sends one delayed message for each record.
func Example() {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		fmt.Fprint(w, `{"Successful":[{"Id":"0","MessageId":"1"}]}`)
	}))
	defer service.Close()
	cfg := aws.Config{Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""), HTTPClient: service.Client()}

	queue, err := sqs.New(cfg, service.URL+"/123456789012/escalations", sqs.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	handler := func(ctx context.Context, rec *sluice.Record) error {
		return queue.Send(ctx, sluice.Message{
			Body:       `{"kind":"escalate"}`,
			Delay:      5 * time.Minute,
			Attributes: map[string]sluice.MessageAttribute{"event": {Value: string(rec.EventName)}},
		})
	}

	fmt.Println(handler(context.Background(), &sluice.Record{EventName: sluice.Insert}))
	fmt.Println(queue.Send(context.Background(), sluice.Message{}))
	// Output:
	// <nil>
	// sqs: queue "escalations": the body is empty; SQS wants at least one character
}
