//go:build integration && aws

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sluicehq/sluice/internal/localstack"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/sinks/opensearch"
)

// The products example as a user runs it on AWS: sluice finds the addresses by the
// Region, signs what it sends, also to OpenSearch, and has the credentials of the
// environment. Only the test uses the gateway.
func TestDirect(t *testing.T) {
	db, queues := dynamodb.NewFromConfig(localtest.DynamoDB(t)), sqs.NewFromConfig(localtest.SQS(t))
	search, err := opensearch.Connect(opensearch.Connection{URLs: []string{localtest.OpenSearchURL(t)}})
	if err != nil {
		t.Fatal(err)
	}
	name := localtest.Name("direct")
	if _, err := db.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: ddbtypes.BillingModePayPerRequest,
		AttributeDefinitions: []ddbtypes.AttributeDefinition{{AttributeName: aws.String("sku"), AttributeType: ddbtypes.ScalarAttributeTypeS}},
		KeySchema:            []ddbtypes.KeySchemaElement{{AttributeName: aws.String("sku"), KeyType: ddbtypes.KeyTypeHash}},
		StreamSpecification:  &ddbtypes.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: ddbtypes.StreamViewTypeNewAndOldImages},
	}); err != nil {
		t.Fatal(err)
	}
	made, err := queues.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		db.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &name})
		queues.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: made.QueueUrl})
		search.Call(ctx, "DELETE", "/"+name+"-000001", nil, nil)
	})
	put := func(price, version int) {
		t.Helper()
		if _, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &name, Item: map[string]ddbtypes.AttributeValue{
			"sku": &ddbtypes.AttributeValueMemberS{Value: "p-1"}, "entityType": &ddbtypes.AttributeValueMemberS{Value: "product"}, "name": &ddbtypes.AttributeValueMemberS{Value: "Kettle"},
			"price": &ddbtypes.AttributeValueMemberN{Value: fmt.Sprint(price)}, "version": &ddbtypes.AttributeValueMemberN{Value: fmt.Sprint(version)},
		}}); err != nil {
			t.Fatal(err)
		}
	}

	sluice := newCommand(t, name)
	sluice.run("validate", "--connect")
	put(29, 1)
	var log bytes.Buffer
	daemon := sluice.exec("run", "--listen", "127.0.0.1:0")
	daemon.Stdout, daemon.Stderr = &log, &log
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- daemon.Wait() }()
	t.Cleanup(func() {
		if t.Failed() {
			daemon.Process.Kill()
			<-ended
			t.Logf("the daemon:\n%s", &log)
		}
	})
	put(25, 2)
	localtest.Await(t, "the document", func() string {
		var found struct {
			Version int `json:"_version"`
		}
		if err := search.Call(t.Context(), "GET", "/"+name+"/_doc/p-1", nil, &found); err != nil || found.Version != 2 {
			return fmt.Sprint(found, err)
		}
		return ""
	})
	localtest.Await(t, "the message", func() string {
		out, err := queues.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: made.QueueUrl, WaitTimeSeconds: 1})
		if err != nil || len(out.Messages) == 0 {
			return fmt.Sprint(err)
		}
		if got := *out.Messages[0].Body; got != `{"sku":"p-1","name":"Kettle","from":29,"to":25}` {
			t.Errorf("message %s", got)
		}
		return ""
	})
	daemon.Process.Signal(syscall.SIGTERM)
	err = <-ended
	ended <- nil
	if err != nil {
		t.Errorf("the daemon: %v", err)
	}
	sluice.run("audit", "--route", "search", "--settle", "1s")
}

// command is sluice with the environment that the caller of the suite has.
type command struct {
	t   *testing.T
	bin string
	env []string
}

func newCommand(t *testing.T, name string) *command {
	t.Helper()
	dir := t.TempDir()
	c := &command{t: t, bin: filepath.Join(dir, "sluice")}
	if err := localstack.Build(t.Context(), c.bin, "../../../cmd/sluice"); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(dir, "products"), os.DirFS("../../../examples/products")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "products", "sluice.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	signed := strings.Replace(string(text), "    opensearch:\n", "    opensearch:\n      sign: es\n", 1)
	if signed == string(text) {
		t.Fatal("the products example has no OpenSearch where it was")
	}
	if err := os.WriteFile(file, []byte(signed), 0o644); err != nil {
		t.Fatal(err)
	}
	c.env = []string{
		"HOME=" + os.Getenv("HOME"), "PATH=" + os.Getenv("PATH"), "SLUICE_CONFIG=" + file, "SLUICE_STATE=" + filepath.Join(dir, "state.db"),
		"PRODUCTS_TABLE=" + name, "PRODUCTS_QUEUE=" + name, "PRODUCTS_INDEX=" + name, "PRODUCTS_OPENSEARCH=" + os.Getenv("SLUICE_DIRECT_OPENSEARCH"),
	}
	for _, v := range os.Environ() {
		if v, ok := strings.CutPrefix(v, "SLUICE_DIRECT_AWS_"); ok {
			c.env = append(c.env, "AWS_"+v)
		}
	}
	return c
}

func (c *command) run(args ...string) {
	c.t.Helper()
	if out, err := c.exec(args...).CombinedOutput(); err != nil {
		c.t.Fatalf("sluice %v: %v\n%s", args, err, out)
	}
}

func (c *command) exec(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(c.t.Context(), c.bin, args...)
	cmd.Env = c.env
	return cmd
}
