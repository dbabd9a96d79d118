package manhunt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sluicehq/sluice/handlers/escalation/webhook"
	"github.com/sluicehq/sluice/metrics"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/sinks/dynamodb"
	"github.com/sluicehq/sluice/sinks/sqs"
)

// Connection says where Manhunt's table and queues are.
type Connection struct {
	DynamoDB, SQS aws.Config
	Tables        []string                 // whose streams are read; the first is looked up in, too (default DefaultTable)
	Env           func(name string) string // the variables of the README

	// Check is given the checks of the queues, as run.Setup.Check is; nil: they are not
	// made.
	Check func(sink string, check func(context.Context) error, routes ...string)

	Metrics metrics.Meter    // nil: none
	Logger  *slog.Logger     // default slog.Default()
	Now     func() time.Time // default time.Now
}

// Connect returns Manhunt's routes on their table and queues.
func Connect(c Connection) (*router.Router, error) {
	if len(c.Tables) > 1 {
		return nil, fmt.Errorf("manhunt keeps contacts, searches and attempts in one table; want one in --table (SLUICE_TABLES), not %d: %s", len(c.Tables), strings.Join(c.Tables, ", "))
	}
	d, err := c.Deps()
	if err != nil {
		return nil, err
	}
	return NewRouter(d)
}

// Deps connects what the routes work on.
func (c Connection) Deps() (d Deps, err error) {
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Check == nil {
		c.Check = func(string, func(context.Context) error, ...string) {}
	}
	sending := []string{"first step", "resume", "next step", "attempt", "expire", "watch"} // routes
	telling := []string{"notify"}
	if len(c.Tables) == 2 {
		telling = append(telling, reflexSends...)
		if c.Env("REFLEX_QUEUE") == "" {
			sending = append(sending, telling...)
		}
	}
	for _, q := range []struct{ variable, of string }{{"MANHUNT_QUEUE", "attempts are"}, {"MANHUNT_WATCH_QUEUE", "the watchdog is"}} {
		if c.Env(q.variable) == "" {
			return d, fmt.Errorf("%s is not set; want the URL or the name of the queue that %s sent to", q.variable, q.of)
		}
	}
	if c.Env("MANHUNT_QUEUE") == c.Env("MANHUNT_WATCH_QUEUE") {
		return d, errors.New("MANHUNT_QUEUE and MANHUNT_WATCH_QUEUE are the same queue: what happens to one must not happen to both")
	}
	queue, err := c.queue("MANHUNT_QUEUE", sending...)
	if err != nil {
		return d, err
	}
	watch, err := c.queue("MANHUNT_WATCH_QUEUE", "first step", "resume", "watch")
	if err != nil {
		return d, err
	}
	d = Deps{Table: DefaultTable, Send: queue.Send, Watch: watch.Send, Now: c.Now, Metrics: c.Metrics, Logger: c.Logger}
	if len(c.Tables) > 0 {
		d.Table = c.Tables[0]
	}
	if c.Env("REFLEX_QUEUE") != "" {
		told, err := c.queue("REFLEX_QUEUE", telling...)
		if err != nil {
			return d, err
		}
		d.Notify = told.Send
	}
	if d.Store, err = dynamodb.New(c.DynamoDB, dynamodb.Options{Metrics: c.Metrics}); err != nil {
		return d, err
	}
	if d.Templates, err = c.templates(); err != nil {
		return d, err
	}
	d.Providers, err = c.providers()
	return d, err
}

// Open returns the table of that name, for programs beside the routes: a program
// that opens and cancels searches, or one that records answers.
func Open(cfg aws.Config, table string) (*Table, error) {
	store, err := dynamodb.New(cfg, dynamodb.Options{})
	if err != nil {
		return nil, err
	}
	return NewTable(store, table), nil
}

// reflexSends are the routes of Reflex that send.
var reflexSends = []string{"first stage", "next stage", "mended", "stage limit"}

// queue connects the queue that a variable names, for these routes.
func (c Connection) queue(variable string, routes ...string) (*sqs.Queue, error) {
	name := c.Env(variable)
	if strings.HasSuffix(name, ".fifo") {
		return nil, fmt.Errorf("%s=%s is a FIFO queue, which cannot delay a message: want a standard queue", variable, name)
	}
	q, err := sqs.New(c.SQS, name, sqs.Options{Metrics: c.Metrics, Logger: c.Logger})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", variable, err)
	}
	c.Check(variable, q.Check, routes...)
	return q, nil
}

// templates reads the file that MANHUNT_TEMPLATES names.
func (c Connection) templates() (Templates, error) {
	name := c.Env("MANHUNT_TEMPLATES")
	if name == "" {
		return ParseTemplates(nil)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("MANHUNT_TEMPLATES: %w", err)
	}
	t, err := ParseTemplates(data)
	if err != nil {
		return nil, fmt.Errorf("MANHUNT_TEMPLATES=%s: %w", name, err)
	}
	return t, nil
}

func (c Connection) providers() (map[string]Provider, error) {
	var o webhook.Options
	switch v := c.Env("MANHUNT_WEBHOOKS"); v {
	case "", "public":
	case "any":
		o.AllowHTTP, o.AllowPrivate = true, true
	default:
		return nil, fmt.Errorf("MANHUNT_WEBHOOKS is %q; want public (https to public addresses) or any", v)
	}
	hook, err := webhook.New(o)
	if err != nil {
		return nil, err
	}
	outbox := io.Discard
	if name := c.Env("MANHUNT_OUTBOX"); name != "" {
		// It is open as long as the program runs.
		if outbox, err = os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err != nil {
			return nil, fmt.Errorf("MANHUNT_OUTBOX: %w", err)
		}
	}
	pretend := Pretend(c.Logger, outbox)
	return map[string]Provider{"webhook": Webhook(hook), "call": pretend, "text": pretend, "email": pretend}, nil
}
