package runtimeapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// TestMain makes the test binary double as the function: under the Runtime API it
// speaks the protocol by hand. Each payload has the action.
func TestMain(m *testing.M) {
	if api := os.Getenv("AWS_LAMBDA_RUNTIME_API"); api != "" {
		function("http://"+api, os.Getenv("START"))
		return
	}
	goleak.VerifyTestMain(m)
}

func function(api, start string) {
	const runtime = "/2018-06-01/runtime"
	post := func(path, body string) int {
		resp, err := http.Post(api+path, "application/json", strings.NewReader(body))
		if err != nil {
			os.Exit(9)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	switch start {
	case "exit":
		os.Exit(4)
	case "fail":
		post(runtime+"/init/error", `{"errorType":"Init","errorMessage":"no table"}`)
		os.Exit(1)
	case "never":
		select {}
	case "register":
		post("/2020-01-01/extension/register", `{"events":[]}`)
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGTERM)
		go func() {
			<-c
			os.Exit(0)
		}()
	}
	loop := func() {
		for {
			resp, err := http.Get(api + runtime + "/invocation/next")
			if err != nil {
				os.Exit(9)
			}
			body, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			id := resp.Header.Get("Lambda-Runtime-Aws-Request-Id")
			here := runtime + "/invocation/" + id
			switch string(body) {
			case "exit":
				os.Exit(5)
			case "hang":
				select {}
			case "error":
				post(here+"/error", `{"errorType":"Broken","errorMessage":"told to fail"}`)
			case "deadline":
				post(here+"/response", resp.Header.Get("Lambda-Runtime-Deadline-Ms"))
			case "twice":
				post(here+"/response", "first")
				if code := post(here+"/response", "second"); code != http.StatusForbidden {
					os.Exit(code % 256)
				}
			case "unknown":
				post(here+"/response", strconv.Itoa(post(runtime+"/invocation/nobody/response", "")))
			case "badly":
				post(here+"/response", strconv.Itoa(post(here+"/error", "not JSON")))
			default:
				post(here+"/response", id+" "+string(body))
			}
		}
	}
	n, _ := strconv.Atoi(os.Getenv("AWS_LAMBDA_MAX_CONCURRENCY"))
	for range n - 1 {
		go loop()
	}
	loop()
}

func start(t *testing.T, c Command) *Function {
	t.Helper()
	c.Path = os.Args[0]
	f, err := Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Kill() }) //nolint:errcheck // it may have ended
	return f
}

func TestInvocations(t *testing.T) {
	f := start(t, Command{})
	if f.FirstPoll() <= 0 {
		t.Errorf("first poll after %v", f.FirstPoll())
	}
	for i, tt := range []struct {
		payload string
		want    string
		failed  bool
	}{
		{"one", "00000000-0000-4000-8000-000000000001 one", false},
		{"two", "00000000-0000-4000-8000-000000000002 two", false},
		{"error", "Broken told to fail", true},
		{"twice", "first", false},
		{"unknown", "403", false},
		{"badly", "400", false},
		{"last", "00000000-0000-4000-8000-000000000007 last", false},
	} {
		a, err := f.Invoke(t.Context(), []byte(tt.payload), time.Minute)
		if err != nil {
			t.Fatalf("%s: %v", tt.payload, err)
		}
		got := string(a.Payload)
		if a.Failed {
			got = a.ErrorType + " " + a.Message
		}
		if got != tt.want || a.Failed != tt.failed {
			t.Errorf("%s: answer %q, failed %v", tt.payload, got, a.Failed)
		}
		if want := fmt.Sprintf("%012d", i+1); !strings.HasSuffix(a.RequestID, want) || f.SinceStart(a.At) <= 0 {
			t.Errorf("%s: request %s, %v after the start", tt.payload, a.RequestID, f.SinceStart(a.At))
		}
	}
	before := time.Now()
	a, err := f.Invoke(t.Context(), []byte("deadline"), time.Minute)
	ms, _ := strconv.ParseInt(string(a.Payload), 10, 64)
	if d := time.UnixMilli(ms).Sub(before); err != nil || d < 59*time.Second || d > 2*time.Minute {
		t.Errorf("deadline %v from now, error %v", d, err)
	}
}

func TestConcurrentInvocations(t *testing.T) {
	f := start(t, Command{MaxConcurrency: 3})
	var wg sync.WaitGroup
	for range 12 {
		wg.Go(func() {
			if a, err := f.Invoke(t.Context(), []byte("x"), time.Minute); err != nil || !strings.HasPrefix(string(a.Payload), a.RequestID) {
				t.Errorf("answer %q, error %v", a.Payload, err)
			}
		})
	}
	wg.Wait()
}

func TestProcessThatExits(t *testing.T) {
	f := start(t, Command{})
	_, err := f.Invoke(t.Context(), []byte("exit"), time.Minute)
	if !errors.Is(err, ErrExited) || !strings.Contains(err.Error(), "exit status 5") {
		t.Errorf("error %v", err)
	}
	if _, err := f.Invoke(t.Context(), []byte("more"), time.Minute); !errors.Is(err, ErrExited) {
		t.Errorf("afterwards: error %v", err)
	}
}

func TestProcessThatMissesItsDeadline(t *testing.T) {
	f := start(t, Command{})
	if _, err := f.Invoke(t.Context(), []byte("hang"), 20*time.Millisecond); !errors.Is(err, ErrTimedOut) {
		t.Errorf("error %v", err)
	}
	<-f.Exited()
	if state, err := f.Stop(); err != nil || state.ExitCode() != -1 {
		t.Errorf("ended with %v, error %v; want it killed", state, err)
	}
}

func TestStarts(t *testing.T) {
	for _, tt := range []struct{ start, want string }{
		{"exit", "exit status 4"},
		{"fail", "Init: no table"},
		{"never", "no poll within"},
	} {
		t.Run(tt.start, func(t *testing.T) {
			c := Command{Path: os.Args[0], Env: []string{"START=" + tt.start}}
			if tt.start == "never" {
				c.InitTimeout = 100 * time.Millisecond
			}
			f, err := Start(t.Context(), c)
			if err == nil {
				f.Kill() //nolint:errcheck // the test has failed anyway
				t.Fatal("started")
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %q, want %q", err, tt.want)
			}
		})
	}
	if _, err := Start(t.Context(), Command{Path: "/no/such/function"}); err == nil {
		t.Error("started a file that is not there")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Start(ctx, Command{Path: os.Args[0], Env: []string{"START=never"}}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// SIGTERM comes only to a process that asked for it.
func TestStop(t *testing.T) {
	// The race detector would sleep for a second before it exits.
	f := start(t, Command{Env: []string{"START=register", "GORACE=atexit_sleep_ms=0"}})
	if state, err := f.Stop(); err != nil || state.ExitCode() != 0 {
		t.Errorf("registered: ended with %v, error %v", state, err)
	}
	f = start(t, Command{})
	if state, err := f.Stop(); err != nil || state.ExitCode() != -1 {
		t.Errorf("not registered: ended with %v, error %v", state, err)
	}
}

// The process sees a function's environment, not the caller's.
func TestEnvironment(t *testing.T) {
	t.Setenv("START", "exit")
	var out bytes.Buffer
	f := start(t, Command{Stderr: &out})
	if a, err := f.Invoke(t.Context(), []byte("x"), time.Minute); err != nil || a.Failed {
		t.Errorf("answer %+v, error %v", a, err)
	}
}
