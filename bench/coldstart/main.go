//go:build unix

// Command coldstart compares how long functions take from exec to their first
// poll and to their first answer, each in processes of its own that take turns:
//
//	hello        aws-lambda-go alone: what no function can be below
//	handwritten  events.DynamoDBEvent, a switch, one SendMessage per record
//	sluice       the same with this module's router, Lambda source and SQS sink
//	config       the same as a file of five lines, run by cmd/sluice-lambda
//
// The event has 100 records of 1.5 KB; its messages go to a stub of the queue
// service on a loopback address. Wall time, CPU time of the process (user and
// system, as the kernel counts it) and its largest resident size are the lower
// quartiles: what else the machine does only adds.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice/bench/local"
	"github.com/sluicehq/sluice/internal/benchdata"
	"github.com/sluicehq/sluice/internal/runtimeapi"
)

const records = 100

var functions = []string{"hello", "handwritten", "sluice", "config"}

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
	log.SetFlags(0)
	rounds := flag.Int("n", 15, "rounds; each starts every function once for each figure")
	latency := flag.Duration("latency", 5*time.Millisecond, "of one request to the queue, in the second comparison")
	flag.Parse()
	if err := run(context.Background(), *rounds, *latency); err != nil {
		log.Fatal(err)
	}
}

// sample is one process.
type sample struct {
	wall, cpu time.Duration
	rss       float64 // bytes
}

type samples map[string][]sample

func run(ctx context.Context, rounds int, latency time.Duration) error {
	dir, err := os.MkdirTemp("", "sluice-coldstart-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	for _, name := range functions {
		if err := build(dir, name); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "sluice.yaml"), []byte(file), 0o600); err != nil {
		return err
	}
	queue := newStub()
	defer queue.Close()
	b := bench{dir: dir, queue: queue, event: benchdata.Event(benchdata.Modify, records)}

	order := slices.Clone(functions)
	figures := []struct {
		what    string
		of      samples
		answer  bool
		latency time.Duration
	}{{"next", samples{}, false, 0}, {"answer", samples{}, true, 0}, {"answer_" + latency.String(), samples{}, true, latency}}
	for _, figure := range figures {
		for range rounds {
			for _, name := range order {
				if err := b.measure(ctx, figure.of, name, figure.answer, figure.latency); err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
			}
			// None always comes after the same other, whose idle or busy time
			// would show in its own.
			slices.Reverse(order)
		}
	}
	for _, name := range functions {
		size, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		fmt.Printf("cost coldstart_%s_binary_mb %.1f\n", name, float64(size.Size())/1e6)
		for _, figure := range figures {
			m := typical(figure.of[name])
			fmt.Printf("cost coldstart_%s_%s_ms %.1f (cpu %.1f ms, rss %.1f MB)\n", name, figure.what, ms(m.wall), ms(m.cpu), m.rss/1e6)
		}
	}
	for _, figure := range figures {
		theirs := typical(figure.of["handwritten"])
		for _, one := range []struct{ name, as string }{{"sluice", "coldstart_"}, {"config", "coldstart_config_"}} {
			ours := typical(figure.of[one.name])
			fmt.Printf("ratio %s%s %.2f (cpu %.2f)\n", one.as, figure.what, float64(theirs.wall)/float64(ours.wall), float64(theirs.cpu)/float64(ours.cpu))
		}
	}
	return nil
}

func build(dir, name string) error {
	pkg := "./bench/coldstart/" + name
	if name == "config" {
		pkg = "./cmd/sluice-lambda"
	}
	out, err := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-tags", "lambda.norpc", "-o", filepath.Join(dir, name), pkg).CombinedOutput()
	if err != nil {
		return fmt.Errorf("build %s: %w\n%s", name, err, out)
	}
	return nil
}

type bench struct {
	dir   string
	queue *stub
	event []byte
}

// measure starts one process and adds the time to its first poll, or to its first
// response.
func (b *bench) measure(ctx context.Context, to samples, name string, answer bool, latency time.Duration) error {
	b.queue.latency = latency
	sent := b.queue.messages.Load()
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
		return fmt.Errorf("%w\n%s", err, stderr.String())
	}
	s := sample{wall: f.FirstPoll()}
	if answer {
		a, err := f.Invoke(ctx, b.event, time.Minute)
		if err != nil {
			return err
		}
		s.wall = f.SinceStart(a.At)
		if want := int64(records); name != "hello" && b.queue.messages.Load()-sent != want || a.Failed {
			return fmt.Errorf("%d messages sent, want %d; answer %s %s\n%s", b.queue.messages.Load()-sent, want, a.Payload, a.Message, stderr.String())
		}
	}
	_, s.rss, _ = local.Memory(f.PID()) // 0 on a system that does not tell
	state, err := f.Kill()
	if err != nil {
		return err
	}
	s.cpu = state.UserTime() + state.SystemTime()
	to[name] = append(to[name], s)
	return nil
}

// typical takes each figure's own quartile.
func typical(s []sample) sample {
	return sample{
		wall: quartile(s, func(s sample) time.Duration { return s.wall }),
		cpu:  quartile(s, func(s sample) time.Duration { return s.cpu }),
		rss:  quartile(s, func(s sample) float64 { return s.rss }),
	}
}

func quartile[T cmp.Ordered](s []sample, of func(sample) T) T {
	v := make([]T, len(s))
	for i := range s {
		v[i] = of(s[i])
	}
	slices.Sort(v)
	return v[len(v)/4]
}

func ms(d time.Duration) float64 { return float64(d) / 1e6 }
