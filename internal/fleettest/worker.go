//go:build unix

package fleettest

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/sluicehq/sluice/bench/local"
	"github.com/sluicehq/sluice/streamtest"
)

// Worker is one daemon. It has its name for itself: a new process is another Worker.
type Worker struct {
	*local.Process
	Name  string
	Began time.Time         // just before the process
	State *streamtest.Proxy // between it and the state table

	fleet *Fleet
	front *http.Server
	at    string // address of its metrics
}

// Start starts a worker, and returns once it listens.
func (f *Fleet) Start(ctx context.Context, within time.Duration) (*Worker, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	w := &Worker{fleet: f, State: streamtest.NewProxy(nil, f.o.DynamoDB)}
	w.front = &http.Server{Handler: w, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0)} // workers are killed
	cmd := exec.Command(f.o.Program, "run", "--config", filepath.Join(f.o.Dir, "sluice.yaml"), "--listen", "127.0.0.1:0", "--log-format", "json")
	cmd.Dir = f.o.Dir
	endpoint := "http://" + l.Addr().String()
	cmd.Env = []string{
		"HOME=" + f.o.Dir, "PATH=" + os.Getenv("PATH"), "SLUICE_TOKEN=0123456789abcdef", "FLEET_STATE=" + f.o.State,
		"SLUICE_ENDPOINT_DYNAMODB=" + endpoint, "SLUICE_ENDPOINT_SQS=" + endpoint,
		"AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=local", "AWS_SECRET_ACCESS_KEY=local", "AWS_EC2_METADATA_DISABLED=true",
	}
	f.mu.Lock()
	w.Name, w.Began = fmt.Sprintf("worker %d", len(f.workers)+1), time.Now()
	go w.front.Serve(l) //nolint:errcheck // until Close
	w.Process, err = local.Start(w.Name, cmd, nil, func(line []byte) {
		if f.o.Logged != nil {
			f.o.Logged(w.Name, string(line))
		}
	})
	if err == nil {
		f.workers = append(f.workers, w)
	}
	f.mu.Unlock()
	if err != nil {
		w.front.Close()
		w.State.Close()
		return nil, err
	}
	if w.at, err = w.Address(ctx, within); err != nil {
		w.Kill()
		return nil, err
	}
	return w, nil
}

// ServeHTTP passes a request of the worker on. A request for the state table arrives
// there even if the worker gives it up or dies meanwhile, as on a network.
func (w *Worker) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	api, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	switch {
	case strings.HasPrefix(api, "DynamoDBStreams_"), op == "DescribeTable":
		w.fleet.service.ServeHTTP(rw, r)
	case api == "AmazonSQS":
		w.fleet.Effects.serve(w.Name, rw, r)
	default:
		ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
		defer cancel()
		defer context.AfterFunc(w.fleet.running, cancel)()
		w.State.ServeHTTP(rw, r.WithContext(ctx))
	}
}

// Shards returns how many shards the worker reads.
func (w *Worker) Shards(ctx context.Context) (int, error) {
	series, err := local.Metrics(ctx, w.at)
	if err != nil {
		return 0, w.Failure(err)
	}
	return int(series[`sluice_shards{table="`+tableName+`"}`]), nil // 0 while its stream is not open yet
}

// Started reports whether the worker reads its stream.
func (w *Worker) Started(ctx context.Context) bool {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+w.at+"/startedz", http.NoBody)
	if err != nil {
		return false
	}
	_, err = local.Do(r)
	return err == nil
}
