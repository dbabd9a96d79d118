package demo

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// handled is what the daemon logs about each call of a route at level debug.
type handled struct {
	Msg      string        `json:"msg"`
	Sequence string        `json:"sequence"`
	Route    string        `json:"route"`
	Result   string        `json:"result"`
	Reason   string        `json:"error"`
	Took     time.Duration `json:"took"`
}

// daemon is the running program of the example.
type daemon struct {
	cmd     *exec.Cmd
	handled chan handled  // closed when it ends
	done    chan struct{} // closed when it has ended
	err     error         // how; valid after done

	mu   sync.Mutex
	tail []string // its last log lines, for a failure
}

func startDaemon(path string, args, env []string) (*daemon, error) {
	d := &daemon{cmd: exec.Command(path, args...), handled: make(chan handled, 64), done: make(chan struct{})}
	d.cmd.Env = env
	logs, err := d.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := d.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	go func() {
		defer close(d.done)
		defer close(d.handled)
		d.read(logs)
		d.err = d.cmd.Wait()
	}()
	return d, nil
}

func (d *daemon) read(logs io.Reader) {
	lines := bufio.NewScanner(logs)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		d.mu.Lock()
		d.tail = append(d.tail[max(0, len(d.tail)-9):], lines.Text())
		d.mu.Unlock()
		var h handled
		// A new search of manhunt has two routes: the demo shows it once.
		if json.Unmarshal(lines.Bytes(), &h) == nil && h.Msg == "handled" && h.Route != "note malformed methods" {
			select {
			case d.handled <- h:
			default: // nobody reads any more
			}
		}
	}
}

// next returns what the daemon handled next.
func (d *daemon) next(ctx context.Context) (handled, error) {
	select {
	case h, ok := <-d.handled:
		if !ok {
			<-d.done
			return h, d.failure(fmt.Errorf("the daemon ended by itself: %v", d.cmd.ProcessState))
		}
		return h, nil
	case <-ctx.Done():
		return handled{}, d.failure(context.Cause(ctx))
	}
}

// failure adds the daemon's last words to err.
func (d *daemon) failure(err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return fmt.Errorf("%w\nthe end of the daemon's log:\n  %s", err, strings.Join(d.tail, "\n  "))
}

// stop asks the daemon to drain and returns how long that took. It must exit
// with 0.
func (d *daemon) stop(limit time.Duration) (time.Duration, error) {
	begin := time.Now()
	d.cmd.Process.Signal(syscall.SIGTERM) //nolint:errcheck // its end tells
	select {
	case <-d.done:
	case <-time.After(limit):
		d.kill()
		return 0, d.failure(fmt.Errorf("the daemon did not end within %v of SIGTERM", limit))
	}
	if d.err != nil {
		return 0, d.failure(fmt.Errorf("the daemon's end: %w", d.err))
	}
	return time.Since(begin), nil
}

// kill ends a daemon that is still running, on the way out of a failure.
func (d *daemon) kill() {
	d.cmd.Process.Kill() //nolint:errcheck // it has mostly ended
	<-d.done
}
