//go:build integration

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sluicehq/sluice/internal/localstack"
	"github.com/sluicehq/sluice/internal/localtest"
)

// ran runs the program with sluice, on the servers of the tests, and reports what it left.
func ran(t *testing.T, build func(sluice string)) (out string, err error) {
	t.Helper()
	tables, queues := dynamodb.NewFromConfig(localtest.DynamoDB(t)), sqs.NewFromConfig(localtest.SQS(t))
	bin, tmp := t.TempDir(), t.TempDir()
	build(filepath.Join(bin, "sluice"))
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("TMPDIR", tmp)
	t.Setenv("SLUICE_CONFIG", "of-another-daemon.yaml")
	t.Setenv("OTEL_TRACES_EXPORTER", "otlp")
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "of another daemon")
	var text strings.Builder
	cmd := command(&text, &text)
	cmd.SetArgs(nil)
	err = cmd.ExecuteContext(t.Context())
	out = text.String()
	if files, _ := filepath.Glob(filepath.Join(tmp, "*")); len(files) > 0 {
		t.Errorf("it left %q", files)
	}
	_, rest, _ := strings.Cut(out, "tables: [orders-")
	id, _, _ := strings.Cut(rest, "]")
	table, queue := "orders-"+id, "jobs-"+id
	if _, err := tables.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &table}); err == nil || !strings.Contains(err.Error(), "ResourceNotFound") {
		t.Errorf("table %s is left: %v", table, err)
	}
	if _, err := queues.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: &queue}); err == nil || !strings.Contains(err.Error(), "QueueDoesNotExist") {
		t.Errorf("queue %s is left: %v", queue, err)
	}
	return out, err
}

func TestFirstMessage(t *testing.T) {
	out, err := ran(t, func(sluice string) {
		if err := localstack.Build(t.Context(), sluice, "../sluice"); err != nil {
			t.Fatal(err)
		}
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{`"keys":{"pk":"o-1"}`, `"keys":{"pk":"o-2"}`, "on: [order#INSERT]"} {
		if !strings.Contains(out, want) {
			t.Errorf("output lacks %s:\n%s", want, out)
		}
	}
}

// A daemon that does not start says why, also after an end without an error.
func TestDaemonThatEnds(t *testing.T) {
	for _, code := range []string{"2", "0"} {
		out, err := ran(t, func(sluice string) {
			if err := os.WriteFile(sluice, []byte("#!/bin/sh\necho no such flag >&2\nexit "+code+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
		})
		if err == nil || !strings.Contains(err.Error(), "exit status "+code+"\nno such flag") {
			t.Errorf("it says %v\n%s", err, out)
		}
	}
}

// programs builds sluice and sluice-local into a folder.
func programs(t *testing.T) (folder string) {
	t.Helper()
	folder = t.TempDir()
	for _, pkg := range []string{"../sluice", "."} {
		if err := localstack.Build(t.Context(), folder, pkg); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// readUntil reads lines until one begins so.
func readUntil(lines *bufio.Scanner, begin string) {
	for lines.Scan() && !strings.HasPrefix(lines.Text(), begin) {
	}
}

// staying starts the program with --stay, and returns its output behind that word.
func staying(t *testing.T, bin string, problems io.Writer, args ...string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "sluice-local"), append(args, "--stay")...)
	cmd.Stderr = problems
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	readUntil(lines, "stay ")
	return cmd, lines
}

// A terminal that is closed, or an output that nobody reads, leaves no daemon and no file.
func TestEndsInOrder(t *testing.T) {
	localtest.DynamoDB(t)
	localtest.SQS(t)
	bin := programs(t)
	// Under nohup this process ignores the signal, and what it starts would, too.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	defer signal.Reset(syscall.SIGHUP)
	for _, tt := range []struct {
		until string // the output is read, and then closed
		hang  bool
		want  string
		args  []string
	}{
		{"stay ", true, "exit status 130", []string{"--stay"}},
		{"servers ", false, "exit status 0", nil},
	} {
		tmp := t.TempDir()
		cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "sluice-local"), tt.args...)
		cmd.Env = append(os.Environ(), "TMPDIR="+tmp)
		read, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stdout, cmd.Stderr = write, os.Stderr
		err = errors.Join(cmd.Start(), write.Close())
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(read)
		readUntil(lines, tt.until)
		if tt.hang {
			err = cmd.Process.Signal(syscall.SIGHUP)
		}
		err = errors.Join(err, read.Close())
		if err != nil {
			t.Error(err)
		}
		cmd.Wait() //nolint:errcheck // below
		if files, _ := filepath.Glob(filepath.Join(tmp, "*")); cmd.ProcessState.String() != tt.want || len(files) > 0 {
			t.Errorf("after %q: %v, left %q", tt.until, cmd.ProcessState, files)
		}
	}
}

// What is killed cannot remove anything: its daemon ends nevertheless, and no file is left.
func TestKilled(t *testing.T) {
	localtest.DynamoDB(t)
	localtest.SQS(t)
	bin, tmp := programs(t), t.TempDir()
	sluice := filepath.Join(bin, "sluice")
	if err := os.Rename(sluice, sluice+"-real"); err != nil {
		t.Fatal(err)
	}
	alive := filepath.Join(t.TempDir(), "alive") // a pipe that only the daemon writes to
	if err := syscall.Mkfifo(alive, 0o600); err != nil {
		t.Fatal(err)
	}
	script := "#!/bin/sh\nexec '" + sluice + "-real' \"$@\" 9>'" + alive + "'\n"
	if err := os.WriteFile(sluice, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		os.ReadFile(alive) //nolint:errcheck // it has nothing, and an end
	}()
	t.Setenv("TMPDIR", tmp)
	cmd, lines := staying(t, bin, os.Stderr)
	var other strings.Builder // what it prints for another terminal
	for lines.Scan() {
		fmt.Fprintln(&other, lines.Text())
		if lines.Text() == "sluice status" {
			break
		}
	}
	terminal := exec.CommandContext(t.Context(), "sh", "-ec", other.String())
	terminal.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	if text, err := terminal.CombinedOutput(); err != nil || !strings.Contains(string(text), "local") {
		t.Errorf("%s%v: %s", other.String(), err, text)
	}
	cmd.Process.Kill() //nolint:errcheck // below
	cmd.Wait()         //nolint:errcheck // it was killed
	select {
	case <-ended:
	case <-time.After(localtest.Patience):
		t.Error("its daemon runs on")
	}
	localtest.Await(t, "after a kill", func() string {
		files, _ := filepath.Glob(filepath.Join(tmp, "*"))
		return strings.Join(files, " ")
	})
}

// A server that ends is named, and ends the session.
func TestServerThatEnds(t *testing.T) {
	localtest.DynamoDB(t)
	bin, tmp := programs(t), t.TempDir()
	java, err := exec.LookPath("java")
	if home := os.Getenv("JAVA_HOME"); home != "" {
		java, err = filepath.Join(home, "bin", "java"), nil
	}
	if err != nil {
		t.Fatal(err)
	}
	number := filepath.Join(tmp, "number")
	script := "#!/bin/sh\ncase \"$*\" in *elasticmq*) echo $$ >'" + number + "';; esac\nexec '" + java + "' \"$@\"\n"
	if err := os.WriteFile(filepath.Join(bin, "java"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("JAVA_HOME", "")
	t.Setenv(localstack.EnvSQS, "") // one of its own
	var problems strings.Builder
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	cmd, lines := staying(t, bin, &problems, "--cache", filepath.Join(cache, "sluice", "local"))
	text, err := os.ReadFile(number)
	if err != nil {
		t.Fatal(err, problems.String())
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err == nil {
		err = syscall.Kill(pid, syscall.SIGKILL)
	}
	if err != nil {
		t.Fatal(err)
	}
	for lines.Scan() {
	}
	cmd.Wait() //nolint:errcheck // below
	if got := problems.String(); cmd.ProcessState.ExitCode() != 1 || !strings.Contains(got, "sluice-local: elasticmq has ended by itself: signal: killed") || strings.Contains(got, "yourself") {
		t.Errorf("%v\n%s", cmd.ProcessState, got)
	}
}

// A queue whose creation was not answered is removed, too.
func TestRemoveUnanswered(t *testing.T) {
	var log strings.Builder
	tables, queues := dynamodb.NewFromConfig(localtest.DynamoDB(t)), sqs.NewFromConfig(localtest.SQS(t))
	s := &session{log: &log, stack: &localstack.Stack{DynamoDB: os.Getenv(localstack.EnvDynamoDB), SQS: os.Getenv(localstack.EnvSQS)}}
	s.connect()
	s.remove()
	if err := s.create(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.queueURL = ""
	s.remove()
	if _, err := tables.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &s.table}); err == nil {
		t.Error("the table is left")
	}
	if _, err := queues.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: &s.queue}); err == nil || log.String() != "" {
		t.Errorf("the queue is left, or nothing was: %v; log: %s", err, log.String())
	}
}
