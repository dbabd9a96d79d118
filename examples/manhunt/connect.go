package manhunt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/examples/internal/kit"
	"github.com/sluicehq/sluice/handlers/escalation/webhook"
	"github.com/sluicehq/sluice/run"
	"github.com/sluicehq/sluice/sinks/dynamodb"
)

// Connect connects what the routes work on. The first of the tables is the one
// that is looked up in, too (default DefaultTable). now is Deps.Now.
func Connect(s run.Setup, now func() time.Time) (d Deps, err error) {
	if name := s.Env("MANHUNT_QUEUE"); name != "" && name == s.Env("MANHUNT_WATCH_QUEUE") {
		return d, errors.New("MANHUNT_QUEUE and MANHUNT_WATCH_QUEUE are the same queue: what happens to one must not happen to both")
	}
	d = Deps{Table: DefaultTable, Now: now, Metrics: s.Metrics, Logger: s.Logger}
	if len(s.Tables) > 0 {
		d.Table = s.Tables[0]
	}
	senders := Senders(s)
	for _, q := range []struct {
		variable, what string
		send           *func(context.Context, sluice.Message) error
	}{
		{"MANHUNT_QUEUE", "that attempts are sent to", &d.Send},
		{"MANHUNT_WATCH_QUEUE", "that the watchdog is sent to", &d.Watch},
		{"REFLEX_QUEUE", "", &d.Notify},
	} {
		if q.what == "" && s.Env(q.variable) == "" {
			continue
		}
		queue, err := kit.StandardQueue(s, q.variable, q.what, senders[q.variable]...)
		if err != nil {
			return d, err
		}
		*q.send = queue.Send
	}
	if d.Store, err = kit.Store(s); err != nil {
		return d, err
	}
	if d.Templates, err = templates(s.Env); err != nil {
		return d, err
	}
	d.Providers, err = providers(s)
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

// Senders returns the routes that send to the queue of each variable, those of Reflex
// included if its table is read.
func Senders(s run.Setup) map[string][]string {
	sending := []string{"first step", "resume", "next step", "attempt", "expire", "watch"}
	telling := []string{"notify"}
	if len(s.Tables) == 2 {
		telling = append(telling, "first stage", "next stage", "mended", "stage limit")
		if s.Env("REFLEX_QUEUE") == "" {
			sending = append(sending, telling...)
		}
	}
	return map[string][]string{
		"MANHUNT_QUEUE":       sending,
		"MANHUNT_WATCH_QUEUE": {"first step", "resume", "watch"},
		"REFLEX_QUEUE":        telling,
	}
}

// templates reads the file that MANHUNT_TEMPLATES names.
func templates(env func(string) string) (Templates, error) {
	name := env("MANHUNT_TEMPLATES")
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

func providers(s run.Setup) (map[string]Provider, error) {
	var o webhook.Options
	switch v := s.Env("MANHUNT_WEBHOOKS"); v {
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
	if name := s.Env("MANHUNT_OUTBOX"); name != "" {
		// It is open as long as the program runs.
		if outbox, err = os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err != nil {
			return nil, fmt.Errorf("MANHUNT_OUTBOX: %w", err)
		}
	}
	pretend := Pretend(s.Logger, outbox)
	return map[string]Provider{"webhook": Webhook(hook), "call": pretend, "text": pretend, "email": pretend}, nil
}
