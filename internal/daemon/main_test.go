package daemon

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/batch"
	"github.com/sluicehq/sluice/internal/access"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/router"
)

// childEnv says which program of children this binary is to be.
const childEnv = "SLUICE_RUN_TEST_CHILD"

func TestMain(m *testing.M) {
	if name := os.Getenv(childEnv); name != "" {
		failingAfter, checkEvery, returnWithin = time.Millisecond, 20*time.Millisecond, time.Second
		ctx := context.Background()
		if !UnderLambda(os.Getenv) {
			ctx = OnSignals(ctx)
		}
		os.Exit(Main(ctx, children[name], os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
	}
	time.Local = time.UTC // in what is compared
	// The SDK's clients keep connections that nobody can close.
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}

var children = map[string]App{
	// deaf ignores SIGTERM.
	"deaf": {Name: "deaf", Tables: []string{"table"}, Routes: func(ctx context.Context, _ Setup) (sluice.Matcher, error) {
		fmt.Fprintln(os.Stderr, "routes")
		<-ctx.Done()
		fmt.Fprintln(os.Stderr, "told")
		select {}
	}},
	// patient ends its start at SIGTERM.
	"patient": {Name: "patient", Tables: []string{"table"}, Routes: func(ctx context.Context, _ Setup) (sluice.Matcher, error) {
		fmt.Fprintln(os.Stderr, "routes")
		<-ctx.Done()
		return nil, ctx.Err()
	}},
	// echo prints the records that it handles.
	"echo": {Name: "echo", Routes: func(_ context.Context, s Setup) (sluice.Matcher, error) {
		if s.Env("ECHO_FAIL") != "" {
			return nil, errors.New("the queue is missing")
		}
		r := router.New()
		r.Handle("*#*", func(_ context.Context, rec *sluice.Record) error {
			id, _ := rec.Keys.Lookup("id")
			_, err := fmt.Println("handled", id.Str(), rec.Table, s.Lambda, s.Tables)
			return err
		})
		return r, nil
	}},
	// broken fails for every record.
	"broken": {Name: "broken", Routes: func(_ context.Context, s Setup) (sluice.Matcher, error) {
		r := router.New()
		r.Handle("*#*", func(context.Context, *sluice.Record) error { return errors.New("the sink is down") },
			router.Backoff(time.Millisecond, 10*time.Millisecond))
		return r, nil
	}},
	// poisoned cannot handle one record.
	"poisoned": {Name: "poisoned", Routes: func(_ context.Context, s Setup) (sluice.Matcher, error) {
		r := router.New()
		r.Handle("*#*", func(_ context.Context, rec *sluice.Record) error {
			if id, _ := rec.Keys.Lookup("id"); id.Str() == "poison" {
				return sluice.Permanent(errors.New("never"))
			}
			return nil
		})
		return r, nil
	}},
	// holding has one item wait, and cannot handle another.
	"holding": {Name: "holding", Routes: func(_ context.Context, s Setup) (sluice.Matcher, error) {
		r := router.New()
		r.Handle("*#*", func(_ context.Context, rec *sluice.Record) error {
			switch id, _ := rec.Keys.Lookup("id"); id.Str() {
			case "held":
				return sluice.RetryAfter(time.Hour, errors.New("not\tyet\nof all"))
			case "poison":
				return sluice.Permanent(errors.New("never"))
			}
			return nil
		}, router.Name("work"))
		return r, nil
	}},
	// refused has a sink that refuses the items whose key begins with bad.
	"refused": {Name: "refused", Routes: func(context.Context, Setup) (sluice.Matcher, error) {
		sink := batch.New(func(_ context.Context, keys []string) []error {
			errs := make([]error, len(keys))
			for i, key := range keys {
				if strings.HasPrefix(key, "bad") {
					errs[i] = sluice.Permanent(errors.New("the sink refuses it"))
				}
			}
			return errs
		}, nil, batch.Options{Sink: "bin"})
		r := router.New()
		r.Handle("*#*", func(ctx context.Context, rec *sluice.Record) error {
			id, _ := rec.Keys.Lookup("id")
			if err := sink.Do(ctx, id.Str()); err != nil {
				return err
			}
			fmt.Println("sent", id.Str())
			return nil
		}, router.Name("send"))
		return r, nil
	}},
	// stuck never comes back from its first record.
	"stuck": {Name: "stuck", Routes: func(context.Context, Setup) (sluice.Matcher, error) {
		r := router.New()
		r.Handle("*#*", func(context.Context, *sluice.Record) error {
			fmt.Fprintln(os.Stderr, "handling")
			select {}
		})
		return r, nil
	}},
}

// child is a running program of children.
type child struct {
	*exec.Cmd
	t    *testing.T
	done chan struct{}

	mu    sync.Mutex
	lines []string
	more  chan struct{} // signals a new line
}

// testToken is that of every child.
const testToken = "0123456789abcdef"

func startChild(t *testing.T, name string, env []string, args ...string) *child {
	t.Helper()
	c := &child{Cmd: exec.Command(os.Args[0], args...), t: t, done: make(chan struct{}), more: make(chan struct{}, 1)}
	c.Env = append(append(os.Environ(), childEnv+"="+name, access.TokenEnv+"="+testToken, "XDG_CACHE_HOME="+t.TempDir()), env...)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Stdout, c.Stderr = w, w
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	go func() {
		defer close(c.done)
		defer r.Close()
		for s := bufio.NewScanner(r); s.Scan(); {
			c.mu.Lock()
			c.lines = append(c.lines, s.Text())
			c.mu.Unlock()
			select {
			case c.more <- struct{}{}:
			default:
			}
		}
		_ = c.Wait()
	}()
	t.Cleanup(func() {
		_ = c.Process.Kill() // one that has ended is gone
		<-c.done
	})
	return c
}

func (c *child) output() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.lines, "\n")
}

// until waits for n lines that hold text.
func (c *child) until(text string, n int) {
	c.t.Helper()
	timeout := time.After(localtest.Patience)
	for {
		if strings.Count(c.output(), text) >= n {
			return
		}
		select {
		case <-c.more:
		case <-c.done:
			if strings.Count(c.output(), text) < n {
				c.t.Fatalf("it ended (%v) without %d × %q:\n%s", c.ProcessState, n, text, c.output())
			}
		case <-timeout:
			c.t.Fatalf("no %d × %q:\n%s", n, text, c.output())
		}
	}
}

// ask asks its server.
func (c *child) ask(method, path string) (code int, body string) {
	c.t.Helper()
	return c.askWith(testToken, method, path)
}

func (c *child) askWith(token, method, path string) (code int, body string) {
	c.t.Helper()
	c.until("msg=listening", 1)
	_, rest, _ := strings.Cut(c.output(), "msg=listening address=")
	address, _, _ := strings.Cut(rest, "\n")
	req, err := http.NewRequestWithContext(c.t.Context(), method, "http://"+address+path, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return resp.StatusCode, string(all)
}

func (c *child) signal(s syscall.Signal) {
	c.t.Helper()
	if err := c.Process.Signal(s); err != nil {
		c.t.Fatal(err)
	}
}

// exit waits for the end and returns the code.
func (c *child) exit() int {
	c.t.Helper()
	select {
	case <-c.done:
		return c.ProcessState.ExitCode()
	case <-time.After(localtest.Patience):
		c.t.Fatalf("it does not end:\n%s", c.output())
		return 0
	}
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	for s, want := range map[syscall.Signal]int{syscall.SIGTERM: 143, syscall.SIGINT: 130} {
		c := startChild(t, "deaf", nil)
		c.until("routes", 1)
		c.signal(syscall.SIGTERM)
		c.until("told", 1)
		c.signal(s)
		if got := c.exit(); got != want {
			t.Errorf("exit code %d after a second %v, want %d:\n%s", got, s, want, c.output())
		}
	}
}

func TestSignalDuringStart(t *testing.T) {
	c := startChild(t, "patient", nil)
	c.until("routes", 1)
	c.signal(syscall.SIGTERM)
	if got := c.exit(); got != 0 {
		t.Errorf("exit code %d, want 0:\n%s", got, c.output())
	}
}
