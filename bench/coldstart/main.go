//go:build unix

// Command coldstart compares how long functions take from exec to their first
// poll and to their first answer, each in processes of its own that take turns:
//
//	handwritten  events.DynamoDBEvent, a switch, one SendMessage per record
//	sluice       the same with this module's router, Lambda source and SQS sink
//	config       the same as a file of five lines, run by cmd/sluice-lambda
//
// The event has 100 records of 1.5 KB; its messages go to a stub of the queue
// service on a loopback address. The times are the lower quartiles: what else the
// machine does only adds.
package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice/bench/local"
	"github.com/sluicehq/sluice/internal/benchdata"
	"github.com/sluicehq/sluice/internal/runtimeapi"
)

const records = 100

var functions = []string{"handwritten", "sluice", "config"}

// file is the configuration for cmd/sluice-lambda, with the same work as the other
// functions.
const file = `source: {tables: [manhunt]}
sinks: {queue: {sqs: {queue: "${QUEUE_URL}"}}}
routes:
  - name: changed
    on: ["search#MODIFY", "searchAttempt#MODIFY", "contact#MODIFY", "contactMethod#MODIFY", "incident#MODIFY"]
    send: {to: queue, body: '{"PK":"{PK}","SK":"{SK}","Event":"{$event}"}'}
`

func main() {
	rounds := flag.Int("n", 15, "rounds; each starts every function once")
	local.Main("coldstart", func(ctx context.Context) error { return run(ctx, *rounds) })
}

func run(ctx context.Context, rounds int) error {
	dir, err := os.MkdirTemp("", "sluice-coldstart-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	for _, name := range functions {
		pkg := "bench/coldstart/" + name
		if name == "config" {
			pkg = "cmd/sluice-lambda"
		}
		if err := local.Build(ctx, filepath.Join(dir, name), pkg); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "sluice.yaml"), []byte(file), 0o600); err != nil {
		return err
	}
	b := bench{dir: dir, event: benchdata.Event(benchdata.Modify, records)}
	b.queue = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		local.ServeQueue(w, r, func(_ string, messages []local.Message) bool {
			b.sent.Add(int64(len(messages)))
			return true
		})
	}))
	defer b.queue.Close()
	order := slices.Clone(functions)
	polls, answers := make(map[string][]time.Duration), make(map[string][]time.Duration)
	for range rounds {
		for _, name := range order {
			poll, answer, err := b.measure(ctx, name)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			polls[name], answers[name] = append(polls[name], poll), append(answers[name], answer)
		}
		// None always comes after the same other, whose idle or busy time
		// would show in its own.
		slices.Reverse(order)
	}
	for _, name := range functions {
		fmt.Printf("cost coldstart_%s_next_ms %.1f\n", name, quartile(polls[name]))
		fmt.Printf("cost coldstart_%s_answer_ms %.1f\n", name, quartile(answers[name]))
	}
	return nil
}

type bench struct {
	dir   string
	queue *httptest.Server
	sent  atomic.Int64 // messages
	event []byte
}

// measure starts one process, and returns the times to its first poll and to its
// first answer.
func (b *bench) measure(ctx context.Context, name string) (poll, answer time.Duration, err error) {
	sent := b.sent.Load()
	var stderr strings.Builder
	f, err := runtimeapi.Start(ctx, runtimeapi.Command{
		Path: filepath.Join(b.dir, name),
		Env: []string{
			"AWS_ACCESS_KEY_ID=any", "AWS_SECRET_ACCESS_KEY=any", "AWS_SESSION_TOKEN=any",
			"AWS_ENDPOINT_URL_SQS=" + b.queue.URL,
			"LAMBDA_TASK_ROOT=" + b.dir, "SLUICE_EMF=off", // the others write no metrics
			"QUEUE_URL=" + b.queue.URL + "/000000000000/escalations",
		},
		Stderr: &stderr,
	})
	if err != nil {
		return 0, 0, fmt.Errorf("%w\n%s", err, stderr.String())
	}
	defer f.Kill() //nolint:errcheck // its answer is what counts
	a, err := f.Invoke(ctx, b.event, time.Minute)
	if err != nil {
		return 0, 0, err
	}
	if n := b.sent.Load() - sent; n != records || a.Failed {
		return 0, 0, fmt.Errorf("%d messages sent, want %d; answer %s %s\n%s", n, records, a.Payload, a.Message, stderr.String())
	}
	return f.FirstPoll(), f.SinceStart(a.At), nil
}

// quartile returns the lower one, in milliseconds.
func quartile(times []time.Duration) float64 {
	return float64(slices.Sorted(slices.Values(times))[len(times)/4]) / 1e6
}
