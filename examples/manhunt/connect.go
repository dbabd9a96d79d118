package manhunt

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sluicehq/sluice/batch"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/sinks/sqs"
)

// DefaultTable is the table's name where no other is given.
const DefaultTable = "manhunt"

// Connection says where Manhunt's table and queue are.
type Connection struct {
	DynamoDB, SQS aws.Config
	Tables        []string                 // whose streams are read: one, which is also looked up in (default DefaultTable)
	Env           func(name string) string // MANHUNT_QUEUE

	// Check asks for the queue at once. A function does without: it finds out
	// with its first message, and starts faster.
	Check bool

	RouterHooks router.Hooks
	Committed   func(batch.Commit) // of the queue
	Logger      *slog.Logger       // default slog.Default()
}

// Connect returns Manhunt's routes on their table and queue.
func Connect(ctx context.Context, c Connection) (*router.Router, error) {
	name := c.Env("MANHUNT_QUEUE")
	if name == "" {
		return nil, errors.New("MANHUNT_QUEUE is not set; want the URL or the name of the queue that attempts are sent to")
	}
	if strings.HasSuffix(name, ".fifo") {
		return nil, fmt.Errorf("MANHUNT_QUEUE=%s is a FIFO queue, which cannot delay a message: want a standard queue", name)
	}
	table := DefaultTable
	switch len(c.Tables) {
	case 0:
	case 1:
		table = c.Tables[0]
	default:
		return nil, fmt.Errorf("manhunt keeps contacts, searches and attempts in one table; want one in --table (SLUICE_TABLES), not %d: %s", len(c.Tables), strings.Join(c.Tables, ", "))
	}
	queue, err := sqs.New(c.SQS, name, sqs.Options{
		Hooks:  sqs.Hooks{Committed: c.Committed},
		Logger: c.Logger,
	})
	if err != nil {
		return nil, err
	}
	if c.Check {
		if err := queue.Check(ctx); err != nil {
			return nil, err
		}
	}
	return NewRouter(Deps{
		Store: NewTable(c.DynamoDB, table),
		Send:  queue.Send,
	}, router.Observe(c.RouterHooks))
}
