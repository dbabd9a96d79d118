//go:build integration

package main

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/localstack"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/state/boltstate"
	"github.com/sluicehq/sluice/streamtest"
)

// The same file in a daemon that is killed as it writes and starts again comes
// to the same end.
func TestAllRoutesAsADaemon(t *testing.T) {
	w := newWorld(t)
	dir := t.TempDir()
	program := filepath.Join(dir, "sluice")
	if err := localstack.Build(t.Context(), program, "../sluice"); err != nil {
		t.Fatal(err)
	}
	w.proxy["search"].Fail(streamtest.ProxyFault{Match: bulk, After: 1, Times: 8, Status: 503})
	w.proxy["sqs"].Fail(streamtest.ProxyFault{Op: "SendMessageBatch", After: 2, Times: 4, Status: 500})
	// A receive whose caller is killed hides its messages for a minute: make receives
	// short.
	w.proxy["sqs"].Fail(streamtest.ProxyFault{Op: "ReceiveMessage", Rewrite: func(request []byte, send func([]byte) (int, []byte)) []byte {
		_, answer := send(bytes.Replace(request, []byte(`"WaitTimeSeconds":20`), []byte(`"WaitTimeSeconds":1`), 1))
		return answer
	}})
	w.killAt(5, 8)
	w.fill()
	state := filepath.Join(dir, "state.db")
	stop := w.daemon(program, "run", "--state", state, "--listen", "off")
	defer stop()
	for _, emptied := range []bool{false, true} {
		if emptied {
			w.empty()
		}
		localtest.Await(t, "all is handled", func() string {
			w.consume()
			return w.missing(emptied)
		})
	}
	stop()
	w.check()
	if w.kills != 8 {
		t.Errorf("it was killed %d times, want 8", w.kills)
	}

	positions, err := boltstate.Open(state, boltstate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer positions.Close()
	letters, _, err := deadletter.NewBox(positions, w.name).List(t.Context(), "", 10)
	if err != nil {
		t.Fatal(err)
	}
	if len(letters) != 1 || letters[0].Route != "only numbers" {
		t.Errorf("dead letters %+v, want the record that fails for good", letters)
	}
}

// daemon starts a program as often as it ends, as a service manager does, until
// stop is called.
func (w *world) daemon(program string, args ...string) (stop func()) {
	w.t.Helper()
	var mu sync.Mutex
	stopped := false
	var cmd *exec.Cmd
	var log *bytes.Buffer
	start := func() {
		log = new(bytes.Buffer)
		cmd = exec.Command(program, args...)
		cmd.Env, cmd.Stderr = w.env, log
		if err := cmd.Start(); err != nil {
			w.t.Error(err)
			stopped = true
			return
		}
		process := cmd.Process
		w.running(func() { _ = process.Kill() })
	}
	start()
	if stopped {
		return func() {}
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			err := cmd.Wait()
			mu.Lock()
			status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
			killed := status.Signaled() && status.Signal() == syscall.SIGKILL
			if err != nil && !killed { // a server was not there as it started
				w.t.Logf("the daemon ended with %v\n%s", err, log.String())
			}
			switch {
			case !stopped:
				start()
			case err != nil:
				w.t.Error("it did not end as it was told to")
			}
			done := stopped
			mu.Unlock()
			if done {
				return
			}
		}
	}()
	return func() {
		w.running(nil)
		mu.Lock()
		if !stopped {
			stopped = true
			_ = cmd.Process.Signal(syscall.SIGTERM) // it is about to be waited for
		}
		mu.Unlock()
		<-ended
	}
}
