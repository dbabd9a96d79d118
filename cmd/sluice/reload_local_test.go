//go:build integration

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sluicehq/sluice/internal/localtest"
)

// A file that changes under load: each write takes effect once, and bad files change
// nothing.
func TestReload(t *testing.T) {
	t.Run("state file", func(t *testing.T) { reloadUnderLoad(t, "") })
	t.Run("state table", func(t *testing.T) { reloadUnderLoad(t, localtest.Name("reload-state")) })
}

func reloadUnderLoad(t *testing.T, stateTable string) {
	endpoints := map[string]string{"SLUICE_ENDPOINT_DYNAMODB": os.Getenv("SLUICE_TEST_DYNAMODB"), "SLUICE_ENDPOINT_SQS": os.Getenv("SLUICE_TEST_SQS")}
	access := credentials.NewStaticCredentialsProvider("test", "test", "")
	db := dynamodb.New(dynamodb.Options{Region: "us-east-1", BaseEndpoint: aws.String(endpoints["SLUICE_ENDPOINT_DYNAMODB"]), Credentials: access})
	queues := sqs.New(sqs.Options{Region: "us-east-1", BaseEndpoint: aws.String(endpoints["SLUICE_ENDPOINT_SQS"]), Credentials: access})
	table := localtest.Name("reload")
	if _, err := db.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: &table, BillingMode: ddb.BillingModePayPerRequest,
		AttributeDefinitions: []ddb.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: ddb.ScalarAttributeTypeS}},
		KeySchema:            []ddb.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: ddb.KeyTypeHash}},
		StreamSpecification:  &ddb.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: ddb.StreamViewTypeNewAndOldImages},
	}); err != nil {
		t.Fatal(err)
	}
	var names, urls [2]string
	for i := range names {
		names[i] = localtest.Name(fmt.Sprintf("reload-%d", i))
		out, err := queues.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &names[i]})
		if err != nil {
			t.Fatal(err)
		}
		urls[i] = *out.QueueUrl
	}
	t.Cleanup(func() {
		ctx := context.Background()
		_, err := db.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &table})
		for _, url := range urls {
			_, queueErr := queues.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: &url})
			err = errors.Join(err, queueErr)
		}
		if stateTable != "" {
			_, stateErr := db.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &stateTable})
			err = errors.Join(err, stateErr)
		}
		if err != nil {
			t.Error(err)
		}
	})
	dir := t.TempDir()
	file := filepath.Join(dir, "sluice.yaml")
	write := func(text string) {
		if err := errors.Join(os.WriteFile(file+".next", []byte(text), 0o600), os.Rename(file+".next", file)); err != nil {
			t.Fatal(err)
		}
	}
	address := ""
	state := filepath.Join(dir, "state.db")
	if stateTable != "" {
		state = "dynamodb:" + stateTable
	}
	good := func(i int) string {
		return fmt.Sprintf("name: reloaded\nsource: {tables: [%s], start: TRIM_HORIZON}\nsinks: {q: {sqs: {queue: %s}}}\nroutes: [{name: send%d, on: \"order#INSERT\", send: {to: q, body: record}}]\ndaemon: {state: \"%s\", listen: \"%s\", grace: 5m}\n",
			table, names[i%2], i%3, state, address)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0") // a command needs the address of a daemon with a state table
	if err != nil {
		t.Fatal(err)
	}
	address = l.Addr().String()
	l.Close()
	write(good(0))
	sluice := func(args ...string) *exec.Cmd {
		cmd := exec.Command("sluice", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_EC2_METADATA_DISABLED=true", "XDG_CACHE_HOME="+dir,
			"SLUICE_TOKEN=0123456789abcdef", "SLUICE_DAEMON=http://"+address)
		for name, url := range endpoints {
			cmd.Env = append(cmd.Env, name+"="+url)
		}
		return cmd
	}
	if stateTable != "" {
		if out, err := sluice("state", "create").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	var log lockedBuffer
	daemon := sluice("run")
	daemon.Stdout, daemon.Stderr = &log, &log
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- daemon.Wait() }()
	t.Cleanup(func() { _ = daemon.Process.Kill() })
	reload := func() (code int, text string) {
		out, err := sluice("reload").CombinedOutput()
		if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		} else if err != nil {
			code = exit.ExitCode()
		}
		return code, string(out)
	}
	localtest.Await(t, "the daemon starts", func() string {
		if code, text := reload(); code != 0 {
			return text + log.String()
		}
		return ""
	})

	localtest.Await(t, "the daemon is live and ready, whether its address is named or not", func() string {
		for _, named := range []string{address, ""} {
			check := sluice("health", "--ready")
			check.Env = append(check.Env, "SLUICE_DAEMON="+named)
			if out, err := check.CombinedOutput(); err != nil {
				return string(out)
			}
		}
		return ""
	})

	written := 0
	writes, stop := context.WithCancel(t.Context())
	var writing sync.WaitGroup
	writing.Go(func() {
		for writes.Err() == nil {
			if _, err := db.PutItem(context.WithoutCancel(writes), &dynamodb.PutItemInput{TableName: &table, Item: map[string]ddb.AttributeValue{
				"id": &ddb.AttributeValueMemberS{Value: fmt.Sprint(written)}, "entityType": &ddb.AttributeValueMemberS{Value: "order"},
			}}); err != nil {
				t.Error(err)
				return
			}
			written++
		}
	})
	for i := 1; i < 4; i++ {
		write(good(i))
		if code, text := reload(); code != 0 || !strings.Contains(text, "reloaded") {
			t.Errorf("reload %d: exit %d: %s", i, code, text)
		}
		if i != 2 {
			continue
		}
		for bad, want := range map[string]string{
			good(i) + "wrong: 1\n":                                      "wrong",
			strings.Replace(good(i), table, "no-such-table", 1):         "no-such-table",
			strings.Replace(good(i), "name: reloaded", "name: else", 1): "another",
		} {
			write(bad)
			if code, text := reload(); code != 1 || want != "another" && !strings.Contains(text, want) {
				t.Errorf("bad file %q: exit %d: %s", want, code, text)
			}
			if want == "wrong" { // who repairs the file still sees the daemon
				if out, err := sluice("status").CombinedOutput(); err != nil || !strings.Contains(string(out), "warning: ") || !strings.Contains(string(out), "the old configuration goes on") {
					t.Errorf("status beside a bad file: %v: %s", err, out)
				}
			}
		}
		write(good(1))
		if err := daemon.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	writing.Wait()

	times := map[string]int{}
	localtest.Await(t, "all writes take effect", func() string {
		for _, url := range urls {
			out, err := queues.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 10})
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range out.Messages {
				_, rest, _ := strings.Cut(*m.Body, `"id":`)
				times[strings.FieldsFunc(rest, func(r rune) bool { return r < '0' || r > '9' })[0]]++
				if _, err := queues.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: &url, ReceiptHandle: m.ReceiptHandle}); err != nil {
					t.Fatal(err)
				}
			}
		}
		if len(times) >= written {
			return ""
		}
		return fmt.Sprintf("%d of %d", len(times), written)
	})
	for id, n := range times {
		if n != 1 {
			t.Errorf("the write of item %s took effect %d times", id, n)
		}
	}
	if err := daemon.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("%v:\n%s", err, log.String())
		}
	case <-time.After(localtest.Patience):
		t.Error("the daemon does not stop")
	}
}

// lockedBuffer is a buffer that a process writes while a test reads.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
