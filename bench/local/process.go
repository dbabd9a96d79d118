package local

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

const stopTime = 30 * time.Second

// Process is a program that logs lines of JSON to its standard error, as a daemon does.
type Process struct {
	name      string
	cmd       *exec.Cmd
	listening chan string   // the address that it logs
	ended     chan struct{} // its output has ended
	read      sync.WaitGroup

	mu  sync.Mutex
	log []string // its last lines
}

// Start starts cmd, and reads its standard output by out unless that is nil. out
// returns when the output ends. logged gets each line of the log; it may be nil.
func Start(name string, cmd *exec.Cmd, out func(io.Reader), logged func(line []byte)) (*Process, error) {
	p := &Process{name: name, cmd: cmd, listening: make(chan string, 1), ended: make(chan struct{})}
	log, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	var lines io.Reader
	if out != nil {
		if lines, err = cmd.StdoutPipe(); err != nil {
			return nil, err
		}
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	if out != nil {
		p.read.Go(func() { out(lines) })
	}
	p.read.Go(func() {
		defer close(p.ended)
		lines := bufio.NewScanner(log)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			p.logged(lines.Text())
			if logged != nil {
				logged(lines.Bytes())
			}
		}
	})
	return p, nil
}

func (p *Process) logged(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.log = append(p.log[max(0, len(p.log)-9):], line)
	var l struct{ Msg, Address string }
	if json.Unmarshal([]byte(line), &l) == nil && l.Msg == "listening" {
		select {
		case p.listening <- l.Address:
		default:
		}
	}
}

// Ended is closed when the log has ended, mostly because the program has.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Signal sends a signal to the process.
func (p *Process) Signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

// Pid is the id of the process.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Address returns the address that the daemon listens at. It is called once.
func (p *Process) Address(ctx context.Context, within time.Duration) (string, error) {
	select {
	case address := <-p.listening:
		return address, nil
	case <-p.ended:
		return "", p.Failure(errors.New("it ended by itself"))
	case <-time.After(within):
		return "", p.Failure(fmt.Errorf("it did not listen within %v", within))
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// Stop ends a daemon in order.
func (p *Process) Stop() error {
	p.Signal(syscall.SIGTERM) //nolint:errcheck // its end tells
	return p.Wait()
}

// Wait waits for the end of a program, and kills one that takes long.
func (p *Process) Wait() error {
	late := time.AfterFunc(stopTime, func() { p.cmd.Process.Kill() }) //nolint:errcheck // it may have ended
	defer late.Stop()
	p.read.Wait()
	if err := p.cmd.Wait(); err != nil {
		return p.Failure(err)
	}
	return nil
}

// Kill ends a program on the way out of a failure. It does nothing after Stop.
func (p *Process) Kill() {
	if p.cmd.ProcessState != nil {
		return
	}
	p.cmd.Process.Kill() //nolint:errcheck // it may have ended
	p.read.Wait()
	p.cmd.Wait() //nolint:errcheck // it was killed
}

// Failure adds the program's last words to err.
func (p *Process) Failure(err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Errorf("%s: %w\nthe end of its log:\n  %s", p.name, err, strings.Join(p.log, "\n  "))
}
