package runtimeapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"
)

// Lambda gives a function 10 s for its start, and 500 ms between SIGTERM and
// SIGKILL. A busy machine needs longer for both, which is not the function's
// fault.
const (
	initTimeout = 3 * time.Minute
	killDelay   = time.Minute

	outputDelay = 2 * time.Second // for output after the process is gone, which its children may keep open
)

// Command says which function to run. The process gets the environment of a
// Lambda function and Env, nothing of the caller's own.
type Command struct {
	Path           string
	Args           []string
	Dir            string        // where it runs (default: here); Lambda's is that of the package
	Env            []string      // "key=value"
	MaxConcurrency int           // AWS_LAMBDA_MAX_CONCURRENCY when above 1
	InitTimeout    time.Duration // from exec to the first poll (default 3 min)
	Stdout, Stderr io.Writer     // default: nowhere
}

// Function is a running function process. Invoke may be called concurrently;
// the process takes as many at a time as it polls for.
type Function struct {
	cmd     *exec.Cmd
	server  *server
	started time.Time
	exited  chan struct{} // closed once the process is gone
	waitErr error         // valid after exited
}

// Start runs the function and waits until it asks for its first invocation.
// The error is an [*InitError], [ErrExited] or [ErrTimedOut] in its chain when
// it never did; nothing is left running then.
func Start(ctx context.Context, c Command) (*Function, error) {
	s, err := newServer()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(c.Path, c.Args...)
	cmd.Dir, cmd.WaitDelay = c.Dir, outputDelay
	cmd.Env = append(environment(s.addr, c.MaxConcurrency), c.Env...)
	cmd.Stdout, cmd.Stderr = c.Stdout, c.Stderr
	f := &Function{cmd: cmd, server: s, started: time.Now(), exited: make(chan struct{})}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start function: %w", err), s.close())
	}
	go func() {
		f.waitErr = cmd.Wait()
		close(f.exited)
	}()
	if c.InitTimeout <= 0 {
		c.InitTimeout = initTimeout
	}
	limit := time.NewTimer(c.InitTimeout)
	defer limit.Stop()
	select {
	case <-s.polled:
		return f, nil
	case err = <-s.initErr:
	case <-f.exited:
		select {
		case err = <-s.initErr:
		default:
			err = fmt.Errorf("%w before its first poll: %w", ErrExited, f.exitError())
		}
	case <-limit.C:
		err = fmt.Errorf("no poll within %v of its start: %w", c.InitTimeout, ErrTimedOut)
	case <-ctx.Done():
		err = ctx.Err()
	}
	f.Kill() //nolint:errcheck // err is what the caller needs to know
	return nil, err
}

func environment(addr string, maxConcurrency int) []string {
	env := []string{
		"AWS_LAMBDA_RUNTIME_API=" + addr,
		"AWS_LAMBDA_FUNCTION_NAME=sluice",
		"AWS_LAMBDA_FUNCTION_VERSION=$LATEST",
		"AWS_LAMBDA_FUNCTION_MEMORY_SIZE=512",
		"AWS_REGION=us-east-1",
		"LAMBDA_TASK_ROOT=" + os.TempDir(),
	}
	if maxConcurrency > 1 {
		env = append(env, "AWS_LAMBDA_MAX_CONCURRENCY="+strconv.Itoa(maxConcurrency))
	}
	return env
}

// Invoke hands payload to the function with a deadline that is timeout from
// now and waits for its answer. An answer of the function's own, also an
// error, comes as an Answer; [ErrExited] and [ErrTimedOut] say that it gave
// none.
func (f *Function) Invoke(ctx context.Context, payload []byte, timeout time.Duration) (Answer, error) {
	inv, err := f.server.submit(ctx, payload, timeout, f.exited)
	if err != nil {
		return Answer{}, err
	}
	limit := time.NewTimer(time.Until(inv.deadline))
	defer limit.Stop()
	select {
	case a := <-inv.answer:
		return a, nil
	case <-f.exited:
		select {
		case a := <-inv.answer: // answered, then exited
			return a, nil
		default:
			return Answer{}, fmt.Errorf("%w: %w", ErrExited, f.exitError())
		}
	case <-limit.C:
		f.cmd.Process.Kill() //nolint:errcheck // gone already is as good
		<-f.exited
		return Answer{}, fmt.Errorf("%w after %v", ErrTimedOut, timeout)
	case <-ctx.Done():
		return Answer{}, ctx.Err()
	}
}

// FirstPoll returns how long after its start the function asked for its first
// invocation.
func (f *Function) FirstPoll() time.Duration {
	f.server.mu.Lock()
	defer f.server.mu.Unlock()
	return f.server.firstAt.Sub(f.started)
}

// SinceStart returns how long after the function's start t was.
func (f *Function) SinceStart(t time.Time) time.Duration { return t.Sub(f.started) }

// Exited is closed once the process is gone.
func (f *Function) Exited() <-chan struct{} { return f.exited }

// Stop ends the function like Lambda: SIGTERM and some time if it registered for
// that, then SIGKILL. The state has its exit and resource usage.
func (f *Function) Stop() (*os.ProcessState, error) {
	select {
	case <-f.server.sigterm:
		f.cmd.Process.Signal(syscall.SIGTERM) //nolint:errcheck // gone already is as good
		limit := time.NewTimer(killDelay)
		defer limit.Stop()
		select {
		case <-f.exited:
		case <-limit.C:
		}
	default:
	}
	return f.Kill()
}

// Kill ends the function at once. Like Stop, it may be called again.
func (f *Function) Kill() (*os.ProcessState, error) {
	f.cmd.Process.Kill() //nolint:errcheck // gone already is as good
	<-f.exited
	return f.cmd.ProcessState, f.server.close()
}

func (f *Function) exitError() error {
	if f.waitErr != nil {
		return f.waitErr
	}
	return errors.New("exit status 0")
}
