// Command function is a Lambda function for tests: its handler obeys the attribute
// "do" of a record and notes its calls.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/sources/lambda"
)

func main() {
	r := router.New()
	r.Handle("search#*", handle)
	var o lambda.Options
	if s := os.Getenv("MARGIN"); s != "" {
		o.Margin, _ = time.ParseDuration(s)
	}
	if s := os.Getenv("STUCK_WAIT"); s != "" {
		o.StuckWait, _ = time.ParseDuration(s)
	}
	if os.Getenv("SIGTERM") != "" {
		o.SIGTERM = func() {
			note("terminated")
			os.Exit(0)
		}
	}
	lambda.Start(r, o)
}

func handle(ctx context.Context, rec *sluice.Record) error {
	v, _ := rec.Image().Lookup("do")
	switch v.Str() {
	case "quiet":
		return nil
	case "fail":
		note("failed %s", rec.Sequence)
		return errors.New("told to fail")
	case "panic":
		panic("told to panic")
	case "exit":
		note("exited %s", rec.Sequence)
		os.Exit(3)
	case "wait":
		<-ctx.Done()
		return ctx.Err()
	case "stuck":
		select {}
	case "report":
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		note("heap %d goroutines %d", m.HeapAlloc, runtime.NumGoroutine())
	default:
		note("handled %s", rec.Sequence)
	}
	return nil
}

// note appends a line to the file that the test reads; each is one write.
func note(format string, args ...any) {
	f, err := os.OpenFile(os.Getenv("NOTES"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	fmt.Fprintf(f, format+"\n", args...)
}
