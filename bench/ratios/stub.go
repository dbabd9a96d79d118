//go:build unix

package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/sluicehq/sluice/bench"
)

// A cluster's stub runs in its own process, so that its CPU time does not count.
// It is this program, called with serveBulk.
const serveBulk = "serve-bulk"

// serve answers bulk requests until its standard input ends, which it does with
// the parent. It prints its URL first.
func serve() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("http://" + l.Addr().String())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	s := &http.Server{Handler: http.HandlerFunc(bench.AnswerBulk), ReadHeaderTimeout: time.Minute}
	return s.Serve(l)
}

// startStub starts the stub and returns its URL and what stops it.
func startStub() (url string, stop func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	cmd := exec.Command(self, serveBulk)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	stop = func() {
		in.Close()
		_ = cmd.Wait()
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		stop()
		return "", nil, fmt.Errorf("the stub did not start: %w", err)
	}
	return strings.TrimSpace(line), stop, nil
}
