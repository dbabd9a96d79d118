// Command sluice is the hand-written function's work with this module: a
// router, a handler and the SQS sink, which shares requests between records.
package main

import (
	"context"
	"log"
	"os"

	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/sinks/sqs"
	"github.com/sluicehq/sluice/sources/lambda"
)

func main() {
	cfg, err := config.LoadDefaultConfig(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	queue, err := sqs.New(cfg, os.Getenv("QUEUE_URL"), sqs.Options{})
	if err != nil {
		log.Fatal(err)
	}
	r := router.New()
	r.Handle("search#MODIFY searchAttempt#MODIFY contact#MODIFY contactMethod#MODIFY incident#MODIFY",
		func(ctx context.Context, rec *sluice.Record) error {
			return queue.Send(ctx, sluice.Message{Body: string(body(rec))})
		})
	lambda.Start(r, lambda.Options{})
}

// body is what json.Marshal makes of the hand-written function's message.
func body(rec *sluice.Record) []byte {
	pk, _ := rec.Keys.Lookup("PK")
	sk, _ := rec.Keys.Lookup("SK")
	b := pk.AppendJSON([]byte(`{"PK":`))
	b = sk.AppendJSON(append(b, `,"SK":`...))
	return append(append(append(b, `,"Event":"`...), rec.EventName...), `"}`...)
}
