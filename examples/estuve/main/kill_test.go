//go:build integration

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/examples/estuve"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/run"
	"github.com/sluicehq/sluice/sources/queue"
	"github.com/sluicehq/sluice/streamtest"
)

// asWorker makes this program a worker of the queue that it names.
const asWorker = "ESTUVE_TEST_WORKER"

func TestMain(m *testing.M) {
	if os.Getenv(asWorker) != "" {
		if err := work(run.OnSignals(context.Background())); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// work is the command "worker" with a shorter visibility timeout: the message of a dead
// worker comes again sooner.
func work(ctx context.Context) error {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return err
	}
	db, sqs := cfg.Copy(), cfg.Copy()
	db.BaseEndpoint, sqs.BaseEndpoint = aws.String(os.Getenv("SLUICE_ENDPOINT_DYNAMODB")), aws.String(os.Getenv("SLUICE_ENDPOINT_SQS"))
	r, err := estuve.Connect(run.Setup{Env: os.Getenv, AWS: func(service string) aws.Config {
		return map[string]aws.Config{"dynamodb": db, "sqs": sqs}[service]
	}})
	if err != nil {
		return err
	}
	c, err := queue.New(sqs, r, queue.Options{Queues: []string{os.Getenv(asWorker)}, Visibility: 5 * time.Second, Wait: time.Second})
	if err != nil {
		return err
	}
	return c.Run(ctx)
}

// A map of many points goes, and so does, after its first page of deletes, the
// worker: kill -9. Another one takes the message that comes again, and the
// totals are right in the end.
func TestWorkerIsKilledAfterItsFirstPage(t *testing.T) {
	const many = 1600
	if localtest.Elsewhere(t) {
		return
	}
	localtest.OwnDynamoDB(t)
	w := newWorld(t)
	proxy := streamtest.NewProxy(t, w.env["SLUICE_ENDPOINT_DYNAMODB"])
	q := localtest.SQS(t)
	name := localtest.Name("estuve")
	made, err := awssqs.NewFromConfig(q).CreateQueue(t.Context(), &awssqs.CreateQueueInput{QueueName: &name})
	if err != nil {
		t.Fatal(err)
	}
	w.env["ESTUVE_QUEUE"], w.env["ESTUVE_THRESHOLD"], w.env["SLUICE_ENDPOINT_SQS"] = *made.QueueUrl, "0", *q.BaseEndpoint

	key := item.Of(item.String("user_id", "u-1"), item.String("map_id", "m-1"))
	w.put(estuve.Fixture{Table: w.tables.Users, Item: item.Of(item.String("user_id", "u-1"))}, estuve.Fixture{Table: w.tables.Maps, Item: key})
	var points []sluice.Item
	for n := range many {
		points = append(points, key.With(item.String("point_id", fmt.Sprintf("p-%05d", n))))
	}
	for _, err := range w.store.PutAll(t.Context(), w.tables.Points, points) {
		if err != nil {
			t.Fatal(err)
		}
	}
	defer w.daemon()()
	w.await("all is counted", estuve.User{ID: "u-1", Maps: 1, Points: many})

	var once sync.Once
	var deletes atomic.Int64
	first := w.worker(proxy.URL())
	proxy.Fail(streamtest.ProxyFault{Op: "BatchWriteItem", Rewrite: func(request []byte, send func([]byte) (int, []byte)) []byte {
		_, answer := send(request)
		if deletes.Add(1) == 1000/25 {
			once.Do(func() { _ = first.Process.Kill() })
		}
		return answer
	}})
	if err := w.store.Delete(t.Context(), w.tables.Maps, key); err != nil {
		t.Fatal(err)
	}
	w.wait(first, "signal: killed")
	left := w.points()
	if left == 0 || left == many { // how many a request deletes is up to the machine
		t.Fatalf("%d points are left", left)
	}
	t.Logf("killed with %d of %d points left", left, many)

	second := w.worker(w.env["SLUICE_ENDPOINT_DYNAMODB"])
	w.await("all is gone, and off the counters", estuve.User{ID: "u-1"})
	if left := w.points(); left != 0 {
		t.Errorf("%d points are left", left)
	}
	if err := second.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	w.wait(second, "")
}

// daemon reads the streams until it is stopped.
func (w *world) daemon() (stop func()) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	exit := make(chan int, 1)
	var log bytes.Buffer
	go func() {
		a := app(w.getenv)
		a.Queues = nil // that is for the workers
		args := []string{"--start", "TRIM_HORIZON", "--listen", "off", "--state", filepath.Join(w.t.TempDir(), "state.db")}
		exit <- run.Run(ctx, a, args, w.getenv, &log, &log)
	}()
	return func() {
		cancel()
		if code := <-exit; code != 0 || w.t.Failed() {
			w.t.Errorf("exit %d, log:\n%s", code, log.String())
		}
	}
}

// worker starts this program as one.
func (w *world) worker(dynamodb string) *exec.Cmd {
	w.t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asWorker+"="+w.env["ESTUVE_QUEUE"])
	for name, value := range w.env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.Env = append(cmd.Env, "SLUICE_ENDPOINT_DYNAMODB="+dynamodb)
	cmd.Stderr = new(bytes.Buffer)
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = cmd.Process.Kill() }) // it has ended unless the test failed
	return cmd
}

func (w *world) wait(cmd *exec.Cmd, want string) {
	w.t.Helper()
	err := cmd.Wait()
	if (err == nil) != (want == "") || err != nil && err.Error() != want {
		w.t.Fatalf("the worker ended with %v, want %q; log:\n%s", err, want, cmd.Stderr)
	}
}

// await waits until other processes have counted the user's maps and points.
func (w *world) await(what string, want estuve.User) {
	w.t.Helper()
	localtest.Await(w.t, what, func() string {
		if u := w.user(); u != want {
			return fmt.Sprintf("%+v", u)
		}
		return ""
	})
}

func (w *world) user() estuve.User {
	w.t.Helper()
	u, _, err := estuve.Reads{Tables: w.tables, Store: w.store}.User(w.t.Context(), "u-1")
	if err != nil {
		w.t.Fatal(err)
	}
	return u
}

func (w *world) points() (n int) {
	w.t.Helper()
	q := dynamo.Query{Table: w.tables.Points, Partition: item.String("map_id", "m-1"), Attributes: []string{"point_id"}}
	for _, err := range dynamo.All(w.t.Context(), w.store.Query, q) {
		if err != nil {
			w.t.Fatal(err)
		}
		n++
	}
	return n
}
