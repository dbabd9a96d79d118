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
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sluicehq/sluice/bench/figures/tell"
)

const (
	patience  = time.Minute // for one record
	drainTime = 5 * time.Minute
	stopTime  = 30 * time.Second
)

// child is one of the programs, running.
type child struct {
	name    string
	cmd     *exec.Cmd
	began   time.Time
	lines   chan tell.Line // closed when it ends
	metrics chan string    // address of a daemon's metrics
	read    sync.WaitGroup // of its output

	mu  sync.Mutex
	log []string // its last lines, for a failure
}

// start runs a program until stop or kill, or until it ends.
func (b *bench) start(ctx context.Context, name string, env, args []string) (*child, error) {
	c := &child{name: name, lines: make(chan tell.Line, 1<<16), metrics: make(chan string, 1)}
	c.cmd = exec.CommandContext(ctx, b.path(name), args...)
	c.cmd.Env = append(b.env[:len(b.env):len(b.env)], env...)
	c.cmd.Dir = b.dir
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	log, err := c.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	c.began = time.Now()
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	c.read.Go(func() {
		defer close(c.lines)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var l tell.Line
			if json.Unmarshal(lines.Bytes(), &l) == nil {
				c.lines <- l
			}
		}
	})
	c.read.Go(func() {
		for lines := bufio.NewScanner(log); lines.Scan(); {
			c.logged(lines.Text())
		}
	})
	return c, nil
}

// daemon starts the daemon on tables, with a metrics address of its own.
func (b *bench) daemon(ctx context.Context, state, start, env string, tables ...string) (*child, error) {
	args := []string{"--state", b.path(state), "--listen", "127.0.0.1:0", "--log-format", "json", "--table", strings.Join(tables, ",")}
	if start != "" {
		args = append(args, "--start", start)
	}
	return b.start(ctx, "daemon", []string{env}, args)
}

func (c *child) logged(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.log = append(c.log[max(0, len(c.log)-9):], line)
	var l struct{ Msg, Address string }
	if json.Unmarshal([]byte(line), &l) == nil && l.Msg == "listening" {
		select {
		case c.metrics <- l.Address:
		default:
		}
	}
}

// next returns what the program reports next.
func (c *child) next(ctx context.Context, within time.Duration) (tell.Line, error) {
	select {
	case l, ok := <-c.lines:
		if !ok {
			return l, c.failure(errors.New("it ended by itself"))
		}
		return l, nil
	case <-time.After(within):
		return tell.Line{}, c.failure(fmt.Errorf("no report within %v", within))
	case <-ctx.Done():
		return tell.Line{}, context.Cause(ctx)
	}
}

// stop ends a daemon in order, or waits for the end of another program.
func (c *child) stop() error {
	if c.name == "daemon" {
		c.cmd.Process.Signal(syscall.SIGTERM) //nolint:errcheck // its end tells
	}
	late := time.AfterFunc(stopTime, func() { c.cmd.Process.Kill() }) //nolint:errcheck // it may have ended
	defer late.Stop()
	c.read.Wait()
	if err := c.cmd.Wait(); err != nil {
		return c.failure(err)
	}
	return nil
}

// kill ends a program on the way out of a failure; it does nothing after stop.
func (c *child) kill() {
	if c.cmd.ProcessState != nil {
		return
	}
	c.cmd.Process.Kill() //nolint:errcheck // it may have ended
	c.read.Wait()
	c.cmd.Wait() //nolint:errcheck // it was killed
}

// failure adds the program's last words to err.
func (c *child) failure(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Errorf("%s: %w\nthe end of its log:\n  %s", c.name, err, strings.Join(c.log, "\n  "))
}

// memory returns the resident size of the process now, and at its largest, in
// bytes.
func (c *child) memory() (now, most float64, err error) {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(c.cmd.Process.Pid) + "/status")
	if err != nil {
		return 0, 0, fmt.Errorf("resident memory is available on Linux only: %w", err)
	}
	if now, err = kibibytes(string(status), "VmRSS:"); err == nil {
		most, err = kibibytes(string(status), "VmHWM:")
	}
	return now, most, err
}

func kibibytes(status, name string) (float64, error) {
	_, rest, _ := strings.Cut(status, name)
	line, _, _ := strings.Cut(rest, "\n")
	n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(line, "kB")), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s %q in the process's status: %w", name, line, err)
	}
	return float64(n << 10), nil
}
