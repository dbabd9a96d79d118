// Command sluice-lambda runs a configuration file as a Lambda function, for the
// streams of its tables and for its queues. For a fast start it links only what a
// function needs, and not the daemon or its state.
//
//	GOOS=linux GOARCH=arm64 CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -tags lambda.norpc -o bootstrap ./cmd/sluice-lambda
//	zip function.zip bootstrap sluice.yaml
//
// The function's runtime is provided.al2023. Its event source mapping must set
// ReportBatchItemFailures; see docs/lambda.md.
//
//	SLUICE_CONFIG              the file, within the package (default sluice.yaml)
//	SLUICE_ENDPOINT_DYNAMODB   URLs that stand in for the Region's endpoints, and
//	SLUICE_ENDPOINT_SQS        for those of the file; likewise SLUICE_ENDPOINT_STS
//	SLUICE_LETTER_KEY          what signs dead letters; SLUICE_LETTER_KEY_FILE names its file
//	SLUICE_EMF                 off: no metrics are written to the log; see docs/lambda.md
//
// and the variables that the file itself uses. Built with the tag tracing as well, the
// function makes traces as the variables OTEL_… say: see package tracing.
//
// In the file, source says what the mappings should read; the function uses only its
// tables and aws, for what handlers ask of those tables. It ignores daemon, and
// refuses a profile in aws. A permanent failure goes to deadLetter.queue; without one
// it stops its batch. With one, deadLetter.park must be record, because the next
// invocation does not know the parked records. Mistakes in the file end the process at
// its start, each with its line in the log.
package main

import (
	"context"
	"os"

	"github.com/sluicehq/sluice/internal/function"
)

func main() { os.Exit(function.Run(context.Background(), os.Stderr, traces)) }
