package localstack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// process is one running server.
type process struct {
	name     string
	cmd      *exec.Cmd
	port     int
	endpoint string
	logPath  string
	data     string          // the folder of its documents, if it has any
	done     <-chan struct{} // closed when the process is gone
}

var errPortTaken = errors.New("port taken by another process")

// launch starts a server on a free loopback port and returns when it answers.
func launch(ctx context.Context, st start, run string, timeout time.Duration) (*process, error) {
	return onPort(func() (*process, error) {
		port, err := freePort()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", st.server.name, err)
		}
		return launchOn(ctx, st, port, run, timeout)
	})
}

// onPort tries again where somebody's connection has the port, which ends.
func onPort(start func() (*process, error)) (*process, error) {
	for attempt := 1; ; attempt++ {
		if p, err := start(); !errors.Is(err, errPortTaken) || attempt == 5 {
			return p, err
		}
	}
}

func launchOn(ctx context.Context, st start, port int, run string, timeout time.Duration) (*process, error) {
	srv := st.server
	args, err := srv.args(run, port)
	if err != nil {
		return nil, err
	}
	p := &process{
		name:     srv.name,
		cmd:      exec.Command(st.java, append(slices.Clone(st.options), args...)...),
		port:     port,
		endpoint: "http://127.0.0.1:" + strconv.Itoa(port),
		logPath:  filepath.Join(run, srv.name+".log"),
		data:     filepath.Join(run, srv.name),
	}
	p.cmd.Dir = st.home
	if err := p.begin(); err != nil {
		return nil, fmt.Errorf("%s: %w", srv.name, err)
	}
	if err := p.awaitReady(ctx, srv, timeout); err != nil {
		p.terminate()
		p.wait()
		return nil, err
	}
	return p, nil
}

// freePort asks the system for a free port. Another process may take it before the
// server does: launch then tries another.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// begin starts the process, with its output in its log.
func (p *process) begin() error {
	log, err := os.Create(p.logPath)
	if err != nil {
		return err
	}
	defer log.Close()
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.done, err = StartChild(p.cmd)
	return err
}

// awaitReady polls the server until it answers as srv says.
func (p *process) awaitReady(ctx context.Context, srv server, timeout time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout,
		fmt.Errorf("no answer from %s within %v", p.endpoint, timeout))
	defer cancel()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	beat := time.NewTicker(50 * time.Millisecond)
	defer beat.Stop()
	for {
		answers := p.answers(ctx, client, srv)
		if p.logged("address already in use") { // and what answers is not ours
			return fmt.Errorf("%s: %w", srv.name, errPortTaken)
		}
		if answers && p.logged(srv.started) {
			return nil
		}
		select {
		case <-p.done:
			if p.logged("address already in use") {
				return fmt.Errorf("%s: %w", srv.name, errPortTaken)
			}
			return p.failed(fmt.Errorf("ended at once: %v", p.cmd.ProcessState))
		case <-ctx.Done():
			return p.failed(context.Cause(ctx))
		case <-beat.C:
		}
	}
}

func (p *process) answers(ctx context.Context, client *http.Client, srv server) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.endpoint, nil)
	if err != nil {
		return false
	}
	resp, err := client.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return srv.ready(resp)
}

// logged reports whether the server's log holds text, case apart.
func (p *process) logged(text string) bool {
	log, err := os.ReadFile(p.logPath)
	return err == nil && bytes.Contains(bytes.ToLower(log), []byte(text))
}

func (p *process) failed(err error) error {
	return fmt.Errorf("%s did not start: %w\n%s", p.name, err, p.logEnd())
}

// ended is the error of a process that is gone.
func (p *process) ended() error {
	return fmt.Errorf("%s has ended by itself: %v\n%s", p.name, p.cmd.ProcessState, p.logEnd())
}

func (p *process) logEnd() string {
	log, _ := os.ReadFile(p.logPath)
	return fmt.Sprintf("the end of %s:\n%s", p.logPath, tail(log))
}

// terminate asks the process to end; wait waits until it has, by force if need be.
func (p *process) terminate() {
	p.cmd.Process.Signal(syscall.SIGTERM) //nolint:errcheck // it may be gone already
}

// kill ends the process without a warning.
func (p *process) kill() {
	select {
	case <-p.done: // its number may be another's by now
	default:
		killChild(p.cmd)
	}
}

const grace = 5 * time.Second

func (p *process) wait() {
	select {
	case <-p.done:
	case <-time.After(grace):
		p.kill()
		<-p.done
	}
}

// tail returns the last lines of a log, indented.
func tail(log []byte) []byte {
	const lines = 20
	log = bytes.TrimRight(log, "\n")
	if len(log) == 0 {
		return []byte("  (nothing)")
	}
	all := bytes.Split(log, []byte("\n"))
	if len(all) > lines {
		all = all[len(all)-lines:]
	}
	return append([]byte("  "), bytes.Join(all, []byte("\n  "))...)
}
