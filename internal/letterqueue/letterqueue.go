// Package letterqueue keeps the dead letters of a Lambda function in a queue.
package letterqueue

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/access"
	"github.com/sluicehq/sluice/internal/letterkeys"
	"github.com/sluicehq/sluice/metrics"
	"github.com/sluicehq/sluice/sinks/sqs"
)

// mostLetter is the largest message of every queue, even of one made when 256 KiB
// was the limit. Attributes would count, but there are none.
const mostLetter = 256 << 10

// Open returns dead letters in the queue of that name or URL, signed with keys. It
// makes no call. Without a key it logs a warning. A FIFO queue is an error: letters
// have no order, and no group.
func Open(cfg aws.Config, queue string, keys letterkeys.Keys, m metrics.Meter, logger *slog.Logger) (flow.DeadLetter, error) {
	if strings.HasSuffix(queue, ".fifo") {
		return nil, fmt.Errorf("the queue of dead letters %q is a FIFO queue, which takes no letters: name a standard queue", queue)
	}
	q, err := sqs.New(cfg, queue, sqs.Options{Metrics: m, Sink: "deadLetter", Logger: logger})
	if err != nil {
		return nil, fmt.Errorf("the queue of dead letters: %w", err)
	}
	if keys.IsZero() {
		logger.Warn("dead letters are not signed: sluice dlq redrive runs them only by --unsigned, one by one; give the function and the command a key", "variable", access.LetterKeyEnv)
	}
	return deadletter.Sender(func(ctx context.Context, _ deadletter.Entry, letter []byte) error {
		return q.Send(ctx, sluice.Message{Body: string(keys.Sign(letter))})
	}).AtMost(mostLetter - letterkeys.SignatureBytes), nil
}
