package demo

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sluicehq/sluice/examples/manhunt"
	"github.com/sluicehq/sluice/item"
	sluicerun "github.com/sluicehq/sluice/run"
	"github.com/sluicehq/sluice/sources/poller"
	"github.com/sluicehq/sluice/sources/queue"
	"github.com/sluicehq/sluice/state"
)

// wantNotice is the exact notice that the sister service must get in the end.
const wantNotice = `{"kind":"manhunt.resolved","searchId":"a271244","from":"active","to":"successful","dedupeKey":"a271244#successful"}`

// post is a call that the searched contact got.
type post struct {
	key, body string
	at        time.Time
}

// bySearch runs a search to its end: the contact has two webhooks, the second
// due 20 minutes after the first was called, and answers the second. Stream and
// queue are consumed in this process, whose clock is moved over the wait.
func (d *demo) bySearch(ctx context.Context) error {
	d.title("4. Manhunt: from a search to an answered call")
	ctx, cancel := context.WithTimeoutCause(ctx, 4*patience, fmt.Errorf("the search did not come to its end within %v", 4*patience))
	defer cancel()
	posts := make(chan post, 16)
	hooks, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{ReadHeaderTimeout: patience, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // missing text fails the check below
		posts <- post{r.Header.Get("Idempotency-Key"), string(body), time.Now()}
	})}
	var running sync.WaitGroup
	running.Go(func() { _ = server.Serve(hooks) }) // it ends with Close
	defer running.Wait()
	defer server.Close()

	table := d.table + "-search"
	if err := manhunt.Create(ctx, d.world.cfg, table); err != nil {
		return err
	}
	attempts, err := d.world.createQueue(ctx, table)
	if err != nil {
		return err
	}
	watch, err := d.world.createQueue(ctx, table+"-watch")
	if err != nil {
		return err
	}
	notices, err := d.world.createQueue(ctx, table+"-notices")
	if err != nil {
		return err
	}
	var moved atomic.Int64
	ctx, end, err := d.consume(ctx, table, attempts, watch, notices, func() time.Time { return time.Now().Add(time.Duration(moved.Load())) })
	if err != nil {
		return err
	}
	defer end()

	people, err := manhunt.Open(d.world.cfg, table)
	if err != nil {
		return err
	}
	fx := manhunt.Fixtures()
	url := "http://" + hooks.Addr().String()
	began := time.Now()
	for _, it := range append(fx[:1:1],
		fx[1].With(item.String("type", "webhook"), item.String("destination", url+"/first")),
		fx[2].With(item.String("type", "webhook"), item.String("destination", url+"/second")),
		fx[3]) {
		if err := people.Put(ctx, it); err != nil {
			return err
		}
	}
	d.row("search", "%s, for a contact with two webhooks, the second after 20 minutes", attribute(fx[3], "PK"))
	if err := d.called(ctx, posts, "a271244#0", began); err != nil {
		return err
	}
	// The wait counts from the time of the attempt, which is written after the call.
	for made := false; !made; {
		_, all, _, err := people.SearchWithAttempts(ctx, "a271244")
		if err != nil {
			return err
		}
		made = len(all) == 1 && all[0].Attempted != ""
	}
	moved.Store(int64(20 * time.Minute))
	began = time.Now()
	d.row("clock", "moved by 20 minutes; the message hops, and is due")
	if err := d.called(ctx, posts, "a271244#1", began); err != nil {
		return err
	}
	return d.answered(ctx, people, notices, posts)
}

// called waits for the call of a step.
func (d *demo) called(ctx context.Context, posts <-chan post, key string, since time.Time) error {
	select {
	case p := <-posts:
		if p.key != key {
			return fmt.Errorf("the contact was called for %q, want %q", p.key, key)
		}
		d.row("call "+key, "%s, %s later", green("the contact was called"), ms(p.at.Sub(since)))
		d.row("", "%s", faint(p.body))
		return nil
	case <-ctx.Done():
		return fmt.Errorf("call %s: %w", key, context.Cause(ctx))
	}
}

// answered answers the second call. It checks that the sister service is notified,
// the search is successful, and nobody is called again.
func (d *demo) answered(ctx context.Context, people *manhunt.Table, notices string, posts <-chan post) error {
	for first := false; !first; { // the attempt is written before the call, and stays
		var err error
		if first, err = people.Answer(ctx, "a271244", 1, "on my way"); err != nil {
			return err
		}
	}
	began := time.Now()
	m, err := d.world.receive(ctx, notices)
	switch {
	case err != nil:
		return fmt.Errorf("the notice: %w", err)
	case m.body != wantNotice:
		return fmt.Errorf("the notice is\n  %s\nwant\n  %s", m.body, wantNotice)
	}
	d.row("answer", "the search is %s, Reflex was told after %s", green("successful"), ms(m.at.Sub(began)))
	s, made, found, err := people.SearchWithAttempts(ctx, "a271244")
	if err != nil {
		return err
	}
	if !found || s.Status != manhunt.Successful || s.Resolution != "on my way" || len(made) != 2 {
		return fmt.Errorf("in the end the search is %+v with %d attempts, want it successful with 2", s, len(made))
	}
	select {
	case p := <-posts:
		return fmt.Errorf("the contact was called once more, for %s", p.key)
	default:
	}
	return d.nothingMore(ctx, notices)
}

// consume runs Manhunt's routes on stream and queues; end stops them. The context
// is that of inBackground.
func (d *demo) consume(ctx context.Context, table, attempts, watch, notices string, now func() time.Time) (_ context.Context, end func(), err error) {
	quiet := slog.New(slog.DiscardHandler)
	settings := map[string]string{"MANHUNT_QUEUE": attempts, "MANHUNT_WATCH_QUEUE": watch, "REFLEX_QUEUE": notices, "MANHUNT_WEBHOOKS": "any"}
	sqs := d.world.cfg.Copy()
	sqs.BaseEndpoint = &d.world.stack.SQS
	deps, err := manhunt.Connect(sluicerun.Setup{
		Tables: []string{table}, Env: func(name string) string { return settings[name] }, Logger: quiet,
		AWS: func(service string) aws.Config {
			return map[string]aws.Config{"dynamodb": d.world.cfg, "sqs": sqs}[service]
		},
	}, now)
	if err != nil {
		return ctx, nil, err
	}
	deps.MaxDelay = time.Second // so that a message arrives a second after the clock was moved
	r, err := manhunt.NewRouter(deps)
	if err != nil {
		return ctx, nil, err
	}
	p, err := poller.New(d.world.cfg, r, poller.Options{
		Streams: []poller.Stream{{Table: table}}, Store: state.NewMemory(), Start: poller.TrimHorizon, Logger: quiet,
	})
	if err != nil {
		return ctx, nil, err
	}
	c, err := queue.New(sqs, r, queue.Options{Queues: []string{attempts, watch}, Wait: time.Second, Logger: quiet})
	if err != nil {
		return ctx, nil, err
	}
	ctx, end = inBackground(ctx, p.Run, c.Run)
	return ctx, end, nil
}

// inBackground runs what consumes streams and queues until end is called, or one
// of them fails: that is the cause for which the context it returns then ends.
func inBackground(ctx context.Context, runs ...func(context.Context) error) (_ context.Context, end func()) {
	ctx, stop := context.WithCancelCause(ctx)
	var running sync.WaitGroup
	for _, run := range runs {
		running.Go(func() {
			if err := run(ctx); err != nil {
				stop(err)
			}
		})
	}
	return ctx, func() {
		stop(nil)
		running.Wait()
	}
}
