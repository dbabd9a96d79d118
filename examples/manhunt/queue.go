package manhunt

import (
	"context"

	"github.com/sluicehq/sluice/handlers/escalation"
	"github.com/sluicehq/sluice/sinks/sqs"
)

// SendTo sends to a queue. It must not be a FIFO queue, which cannot delay a
// message.
func SendTo(queue *sqs.Queue) func(context.Context, escalation.Message) error {
	return func(ctx context.Context, m escalation.Message) error {
		return queue.Send(ctx, sqs.Message{
			Body:       string(m.Body),
			Delay:      m.Delay,
			Attributes: sqs.Strings(m.Attributes),
		})
	}
}
