// Package demo shows the whole of Sluice at work, on real servers: a change in
// a DynamoDB table becomes a message in a queue, first by the daemon, then by
// the Lambda function, both built from the manhunt example as it stands; calls,
// deletions and documents of a search index follow from others, and a daemon takes
// over the shards of another one that is killed.
//
// It exits with 0 only if every expected message arrived and the two programs
// sent the same bytes.
package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice/examples/manhunt"
	"github.com/sluicehq/sluice/internal/localstack"
	"github.com/sluicehq/sluice/internal/runtimeapi"
)

const (
	patience    = time.Minute            // for one effect to be seen, on a machine with much to do
	quietPeriod = 500 * time.Millisecond // in which no further message may come
)

// Run runs the demo on out; servers log to log. It needs the repository, Go, Java
// and, the first time, Maven. Its error names a missing tool.
func Run(ctx context.Context, out, log io.Writer) error {
	for _, folder := range []string{programMain, estuveMain, sluiceMain} {
		if _, err := os.Stat(folder); err != nil {
			return fmt.Errorf("the demo builds the examples of Sluice's repository: run it in a checkout's root, where %s is", folder)
		}
	}
	if _, err := exec.LookPath("go"); err != nil {
		return errors.New("the demo builds the examples of Sluice's repository: install Go, see https://go.dev/dl")
	}
	return run(ctx, &screen{out: out, begin: time.Now()}, log)
}

// demo is what its parts share.
type demo struct {
	*screen
	world   *world
	program string // path of the built example
	dir     string // of temporary files
	table   string
	watch   string // queue of the watchdog

	// What the daemon did.
	changes, routed int
	bodies          []string
	latencies       []time.Duration
}

func run(ctx context.Context, s *screen, log io.Writer) error {
	dir, err := os.MkdirTemp("", "sluice-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	s.title("1. Servers and program")
	stack, err := localstack.Start(ctx, localstack.Options{Log: log, OpenSearch: true})
	if err != nil {
		return err
	}
	defer stack.Stop()

	// Names of its own, in case the servers are shared.
	d := &demo{screen: s, dir: dir, program: filepath.Join(dir, "manhunt"), table: "manhunt-" + strings.ToLower(rand.Text()[:6])}
	if d.world, err = newWorld(stack, d.table); err != nil {
		return err
	}
	for _, part := range []func(context.Context) error{d.prepare, d.byDaemon, d.byLambda, d.bySearch, d.byCascade, d.byProjection, d.byFleet} {
		if err := part(ctx); err != nil {
			return err
		}
	}

	stack.Stop()
	d.title("8. Summary")
	d.row("changes", "%d written, %d routed, %d settled without a route", d.changes, d.routed, d.changes-d.routed)
	d.row("messages", "%d by the daemon, %s by Lambda", len(d.bodies), green("the same bytes"))
	d.row("write to queue", "%s at best, %s at worst", ms(slices.Min(d.latencies)), ms(slices.Max(d.latencies)))
	d.row("stopped", "daemon, function and servers; %.1f s in all", time.Since(d.begin).Seconds())
	return nil
}

// prepare builds the program and makes the table.
func (d *demo) prepare(ctx context.Context) error {
	d.row("DynamoDB Local", "%s", d.world.stack.DynamoDB)
	d.row("ElasticMQ", "%s", d.world.stack.SQS)
	d.row("OpenSearch", "%s", d.world.stack.OpenSearch)
	if err := manhunt.Create(ctx, d.world.cfg, d.table); err != nil {
		return err
	}
	var err error
	if d.watch, err = d.world.createQueue(ctx, d.table+"-watch"); err != nil {
		return err
	}
	d.row("table", "%s, stream NEW_AND_OLD_IMAGES", d.table)
	begin := time.Now()
	if err := localstack.Build(ctx, d.program, "-tags", "lambda.norpc", programMain); err != nil {
		return err
	}
	d.row("program", "%s, built in %.1f s", programMain, time.Since(begin).Seconds())
	return nil
}

// byDaemon makes the changes one after another, each as soon as the effects of
// the one before have been seen.
func (d *demo) byDaemon(ctx context.Context) error {
	d.title("2. The daemon: each change as it happens")
	queue, err := d.world.createQueue(ctx, d.table)
	if err != nil {
		return err
	}
	p, err := startDaemon(d.program, d.daemonArgs(), d.daemonEnv(queue))
	if err != nil {
		return err
	}
	defer p.Kill()
	d.row("daemon", "pid %d, sends to %s", p.Pid(), queue)
	fmt.Fprintln(d.out)
	for _, c := range changes() {
		if err := d.oneChange(ctx, p, queue, c); err != nil {
			return fmt.Errorf("%s of %s %s: %w", c.event, c.entity, c.key, err)
		}
	}
	if err := d.nothingMore(ctx, queue); err != nil {
		return err
	}
	if !slices.Equal(d.bodies, wantBodies) {
		return fmt.Errorf("the daemon sent\n  %s\nwant\n  %s", strings.Join(d.bodies, "\n  "), strings.Join(wantBodies, "\n  "))
	}
	begin := time.Now()
	if err := p.Stop(); err != nil {
		return err
	}
	fmt.Fprintln(d.out)
	d.row("SIGTERM", "drained, position stored, exit 0 after %s", ms(time.Since(begin)))
	return nil
}

func (d *demo) oneChange(ctx context.Context, p *daemon, queue string, c change) error {
	if err := d.world.table.Put(ctx, c.item); err != nil {
		return err
	}
	written := time.Now()
	d.change(c.event, c.entity, c.key)
	d.changes++
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("no effect was seen within %v", patience))
	defer cancel()
	h, err := p.next(ctx)
	if err != nil {
		return err
	}
	d.handled(h)
	switch h.Result {
	case "done":
		d.routed++
	case "skipped":
		d.routed++
		return nil
	case "unrouted":
		return nil
	default:
		return p.Failure(fmt.Errorf("route %q: %s", h.Route, h.Result))
	}
	m, err := d.world.receive(ctx, queue)
	if err != nil {
		return p.Failure(fmt.Errorf("its message did not arrive: %w", err))
	}
	d.bodies = append(d.bodies, m.body)
	d.latencies = append(d.latencies, m.at.Sub(written))
	d.sent(m, m.at.Sub(written))
	return nil
}

// nothingMore holds that the queue is empty.
func (d *demo) nothingMore(ctx context.Context, queue string) error {
	ctx, cancel := context.WithTimeout(ctx, quietPeriod)
	defer cancel()
	switch m, err := d.world.receive(ctx, queue); {
	case m.body != "": // though it may not be deleted in time
		return fmt.Errorf("an unexpected message: %s", m.body)
	case ctx.Err() == nil:
		return err
	}
	return nil
}

// byLambda feeds the records that the daemon has read to the function, as one
// event, and compares what it sends.
func (d *demo) byLambda(ctx context.Context) error {
	d.title("3. The same records as one Lambda event")
	event, err := d.world.lambdaEvent(ctx, d.table, d.changes)
	if err != nil {
		return err
	}
	queue, err := d.world.createQueue(ctx, d.table+"-lambda")
	if err != nil {
		return err
	}
	var logs strings.Builder
	fn, err := runtimeapi.Start(ctx, runtimeapi.Command{Path: d.program, Env: d.settings(queue), Stdout: &logs, Stderr: &logs})
	if err != nil {
		return fmt.Errorf("%w\n%s", err, logs.String())
	}
	defer fn.Kill() //nolint:errcheck // its answer is what counts
	d.row("function", "the same program, asks for its first event %s after exec", ms(fn.FirstPoll()))
	begin := time.Now()
	answer, err := fn.Invoke(ctx, event, patience)
	took := time.Since(begin)
	if err != nil {
		return fmt.Errorf("%w\n%s", err, logs.String())
	}
	if string(answer.Payload) != `{"batchItemFailures":[]}` {
		return fmt.Errorf("the function answered %s %s\n%s", answer.Payload, answer.Message, logs.String())
	}
	d.row("event", "%d records, %d bytes", d.changes, len(event))
	d.row("answer", "%s in %s", answer.Payload, ms(took))

	receiving, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var bodies []string
	for range d.bodies {
		m, err := d.world.receive(receiving, queue)
		if err != nil {
			return fmt.Errorf("the function sent %d messages within %v, the daemon %d: %w", len(bodies), patience, len(d.bodies), err)
		}
		bodies = append(bodies, m.body)
	}
	if err := d.nothingMore(ctx, queue); err != nil {
		return err
	}
	slices.Sort(bodies) // a standard queue promises no order
	for i, want := range slices.Sorted(slices.Values(d.bodies)) {
		if bodies[i] != want {
			return fmt.Errorf("the bodies differ:\n  daemon %s\n  Lambda %s", want, bodies[i])
		}
		d.row(fmt.Sprintf("message %d", i+1), "%s", green("byte-identical"))
	}
	return nil
}
