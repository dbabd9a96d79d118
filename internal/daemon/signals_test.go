package daemon

import (
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func TestASignalSentTwiceIsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signals := make(chan os.Signal, 2)
		stopped, code := 0, -1
		go func() { code = secondOf(signals, func() { stopped++ }) }()
		synctest.Wait()
		if stopped != 0 {
			t.Fatal("stopped without a signal")
		}
		signals <- syscall.SIGTERM
		signals <- syscall.SIGTERM // the same, sent to the process group too
		time.Sleep(sameSignal)
		synctest.Wait()
		if stopped != 1 || code != -1 {
			t.Fatalf("after one signal sent twice: stopped %d times, exit code %d", stopped, code)
		}
		signals <- syscall.SIGINT
		synctest.Wait()
		if stopped != 1 || code != 128+int(syscall.SIGINT) {
			t.Errorf("after the second signal: stopped %d times, exit code %d", stopped, code)
		}
	})
}
