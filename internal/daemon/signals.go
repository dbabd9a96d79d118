package daemon

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// sameSignal is how long after the first signal another one is taken for the
// same: timeout(1) and others signal the process and then its process group,
// and so the process twice.
const sameSignal = 20 * time.Millisecond

// OnSignals returns a context that the first SIGTERM or SIGINT cancels; the
// second one ends the process at once. It is called once, by main.
func OnSignals(ctx context.Context) context.Context {
	ctx, stop := context.WithCancel(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	go func() { // as long as the process
		os.Exit(secondOf(signals, stop))
	}()
	return ctx
}

// secondOf calls stop at the first signal and returns the exit code that says
// which was the second.
func secondOf(signals <-chan os.Signal, stop func()) int {
	<-signals
	for same := time.After(sameSignal); same != nil; {
		select {
		case <-signals:
		case <-same:
			same = nil
		}
	}
	stop() // only now, so that whoever sees it and signals again is heard
	if s, ok := (<-signals).(syscall.Signal); ok {
		return 128 + int(s)
	}
	return exitFailed
}

// heedHangups calls hangup at a SIGHUP, one after another, until stop is called.
func heedHangups(hangup func()) (stop func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range signals {
			hangup()
		}
	}()
	return func() {
		signal.Stop(signals)
		close(signals)
		<-done
	}
}
