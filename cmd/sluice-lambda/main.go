// Command sluice-lambda is the manhunt example's routes as a Lambda function
// that starts fast: it links what a function needs and no more.
//
//	GOOS=linux GOARCH=arm64 CGO_ENABLED=0 go build -tags lambda.norpc -o bootstrap ./cmd/sluice-lambda
//
// MANHUNT_QUEUE names the queue, by URL or name, and SLUICE_TABLES the table
// (default manhunt). SLUICE_ENDPOINT_DYNAMODB and SLUICE_ENDPOINT_SQS stand in
// for the Region's endpoints.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/sluicehq/sluice/examples/manhunt"
	"github.com/sluicehq/sluice/sources/lambda"
)

func main() {
	logger := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	m, err := manhunt.Connect(context.Background(), manhunt.Connection{
		DynamoDB: config("DYNAMODB"),
		SQS:      config("SQS"),
		Tables:   strings.FieldsFunc(os.Getenv("SLUICE_TABLES"), func(r rune) bool { return r == ',' || r == ' ' }),
		Env:      os.Getenv,
		Logger:   logger,
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "sluice-lambda:", err)
		os.Exit(1)
	}
	lambda.Start(m, lambda.Options{Logger: logger})
}

// config takes Region and credentials from where Lambda puts them. Looking in
// all the places that the SDK knows would cost every cold start.
func config(service string) aws.Config {
	cfg := aws.Config{
		Region: os.Getenv("AWS_REGION"),
		Credentials: credentials.NewStaticCredentialsProvider(
			os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY"), os.Getenv("AWS_SESSION_TOKEN")),
	}
	if url := os.Getenv("SLUICE_ENDPOINT_" + service); url != "" {
		cfg.BaseEndpoint = &url
	}
	return cfg
}
