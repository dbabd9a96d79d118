// Command sluice-lambda runs a configuration file as a Lambda function, for the
// streams of its tables and for its queues. It links what a function needs and
// no more, so that it starts fast: neither the daemon nor its state.
//
//	GOOS=linux GOARCH=arm64 CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -tags lambda.norpc -o bootstrap ./cmd/sluice-lambda
//	zip function.zip bootstrap sluice.yaml
//
// The function's runtime is provided.al2023. Its event source mapping has to set
// ReportBatchItemFailures, as docs/lambda.md says.
//
//	SLUICE_CONFIG              the file, within the package (default sluice.yaml)
//	SLUICE_ENDPOINT_DYNAMODB   URLs that stand in for the Region's endpoints, and
//	SLUICE_ENDPOINT_SQS        for those of the file
//	SLUICE_LETTER_KEY          what signs dead letters; SLUICE_LETTER_KEY_FILE names its file
//	SLUICE_EMF                 off: no metrics are written to the log; see docs/lambda.md
//
// and what the file itself takes of the environment. Of the file, source says
// what the mappings should read, which a function is not asked for, and daemon
// is not looked at. A record that fails for good goes to deadLetter.queue;
// without one it stops its batch. With one, deadLetter.park must be record: what
// was parked is not known to the next invocation. What is wrong with the file ends the process
// at its start, each mistake with its line in the log.
package main

import (
	"context"
	"os"

	"github.com/sluicehq/sluice/internal/function"
)

func main() { os.Exit(function.Run(context.Background(), os.Stderr)) }
