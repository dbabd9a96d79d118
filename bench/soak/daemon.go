//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sluicehq/sluice/bench/local"
	"github.com/sluicehq/sluice/internal/localstack"
)

const (
	startTime = time.Minute
	stopTime  = 30 * time.Second
)

// daemon is the process that is looked at.
type daemon struct {
	cmd     *exec.Cmd
	address string // of its metrics
	ready   chan string
	read    sync.WaitGroup

	mu  sync.Mutex
	log []string // its last lines
}

func startDaemon(ctx context.Context, binary, dir string, stack *localstack.Stack) (*daemon, error) {
	d := &daemon{ready: make(chan string, 1)}
	d.cmd = exec.CommandContext(ctx, binary, "run", "--config", filepath.Join(dir, "sluice.yaml"), "--state", filepath.Join(dir, "soak.db"), "--listen", "127.0.0.1:0", "--log-format", "json")
	d.cmd.Env = append(stack.Environ(), "HOME="+dir, "PATH="+os.Getenv("PATH"),
		"SLUICE_ENDPOINT_DYNAMODB="+stack.DynamoDB, "SLUICE_ENDPOINT_SQS="+stack.SQS, "SLUICE_ENDPOINT_OPENSEARCH="+stack.OpenSearch)
	out, err := d.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := d.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the daemon: %w", err)
	}
	ended := make(chan struct{})
	d.read.Go(func() {
		defer close(ended)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			d.logged(lines.Text())
		}
	})
	select {
	case d.address = <-d.ready:
		return d, nil
	case <-ended:
		err = errors.New("it ended by itself")
	case <-time.After(startTime):
		err = fmt.Errorf("it did not listen within %v", startTime)
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	d.kill()
	return nil, d.failure(err)
}

func (d *daemon) logged(line string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.log = append(d.log[max(0, len(d.log)-9):], line)
	var l struct{ Msg, Address string }
	if json.Unmarshal([]byte(line), &l) == nil && l.Msg == "listening" {
		select {
		case d.ready <- l.Address:
		default:
		}
	}
}

// metrics asks the daemon for its series.
func (d *daemon) metrics(ctx context.Context) (series, error) {
	text, err := local.Metrics(ctx, d.address)
	if err != nil {
		return nil, err
	}
	return parseSeries(text)
}

// stop ends the daemon in order.
func (d *daemon) stop() error {
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	late := time.AfterFunc(stopTime, func() { d.cmd.Process.Kill() }) //nolint:errcheck // it may have ended
	defer late.Stop()
	d.read.Wait()
	return d.cmd.Wait()
}

// kill ends the daemon on the way out of a failure; it does nothing after stop.
func (d *daemon) kill() {
	if d.cmd.ProcessState != nil {
		return
	}
	d.cmd.Process.Kill() //nolint:errcheck // it may have ended
	d.read.Wait()
	d.cmd.Wait() //nolint:errcheck // it was killed
}

// failure adds the daemon's last words to err.
func (d *daemon) failure(err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return fmt.Errorf("%w\nthe end of the daemon's log:\n  %s", err, strings.Join(d.log, "\n  "))
}
