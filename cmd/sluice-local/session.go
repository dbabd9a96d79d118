package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/fatih/color"

	"github.com/sluicehq/sluice/internal/localstack"
)

// patience is how long a message may take, also on a machine with much to do.
const patience = time.Minute

// session is one run on servers that are up.
type session struct {
	out, log io.Writer
	program  string // sluice
	dir      string // of files
	stack    *localstack.Stack
	stay     bool

	tables           *dynamodb.Client
	queues           *sqs.Client
	table, queue     string // names of its own, because the servers may be shared
	created          bool   // the table, for sure
	ended            bool   // a server, with what it had
	queueURL, config string
}

var (
	bold  = color.New(color.Bold).SprintFunc()
	faint = color.New(color.Faint).SprintFunc()
)

func (s *session) say(label, format string, args ...any) {
	fmt.Fprintf(s.out, "%s %s\n", bold(fmt.Sprintf("%-9s", label)), fmt.Sprintf(format, args...))
}

func (s *session) run(ctx context.Context) error {
	s.say("servers", "DynamoDB Local %s, ElasticMQ %s", s.stack.DynamoDB, s.stack.SQS)
	s.connect()
	defer s.remove() //nolint:contextcheck // also after Ctrl-C
	if err := s.create(ctx); err != nil {
		return err
	}
	s.say("table", "%s, with a stream", s.table)
	s.say("queue", "%s", s.queue)
	if err := s.writeConfig(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var all sync.WaitGroup
	defer func() { cancel(nil); all.Wait() }()
	all.Go(func() {
		if err := s.stack.Watch(ctx); err != nil {
			s.ended = true
			cancel(err)
		}
	})
	daemon, err := s.start(ctx)
	if err != nil {
		return err
	}
	all.Go(func() { cancel(daemon()) })
	s.say("daemon", "%s", faint("sluice run --config "+quoted(s.config)))

	for n := 1; n <= 2; n++ { // the first may wait for the daemon's start
		if err := s.oneOrder(ctx, n); err != nil {
			return err
		}
	}
	if s.stay {
		s.say("stay", "Ctrl-C ends all. In another terminal:")
		fmt.Fprintf(s.out, `export %s
export SLUICE_CONFIG=%s SLUICE_STATE=%s
sluice status
aws --endpoint-url $SLUICE_ENDPOINT_DYNAMODB dynamodb put-item --table-name %s --item '{"pk":{"S":"o-3"},"entityType":{"S":"order"}}'
aws --endpoint-url $SLUICE_ENDPOINT_SQS sqs receive-message --queue-url %s
`, strings.Join(s.environ(), " "), quoted(s.config), quoted(s.state()), s.table, s.queueURL)
		<-ctx.Done()
		return s.because(ctx, nil)
	}
	s.say("next", "sluice init --help; https://github.com/sluicehq/sluice#readme")
	return nil
}

func (s *session) connect() {
	cfg := aws.Config{Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("local", "local", "")}
	s.tables = dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) { o.BaseEndpoint = &s.stack.DynamoDB })
	s.queues = sqs.NewFromConfig(cfg, func(o *sqs.Options) { o.BaseEndpoint = &s.stack.SQS })
	id := strings.ToLower(rand.Text()[:6])
	s.table, s.queue = "orders-"+id, "jobs-"+id
}

func (s *session) create(ctx context.Context) error {
	_, err := s.tables.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName: &s.table, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}},
		StreamSpecification:  &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages},
	})
	if err != nil {
		return fmt.Errorf("create table %s at %s: %w", s.table, s.stack.DynamoDB, err)
	}
	s.created = true
	out, err := s.queues.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: &s.queue})
	if err != nil {
		return fmt.Errorf("create queue %s at %s: %w", s.queue, s.stack.SQS, err)
	}
	s.queueURL = aws.ToString(out.QueueUrl)
	return nil
}

// remove deletes the table and the queue.
func (s *session) remove() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_, err := s.tables.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &s.table})
	if _, none := errors.AsType[*types.ResourceNotFoundException](err); none { // it was not created
		err = nil
	}
	if s.queueURL == "" { // Ctrl-C may have come between its creation and the answer
		if out, err := s.queues.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &s.queue}); err == nil {
			s.queueURL = aws.ToString(out.QueueUrl)
		}
	}
	if s.queueURL != "" {
		_, err2 := s.queues.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: &s.queueURL})
		err = errors.Join(err, err2)
	}
	if err != nil && s.created && !s.ended {
		fmt.Fprintf(s.log, "sluice-local: delete table %s and queue %s yourself: %v\n", s.table, s.queue, err)
	}
}

func (s *session) writeConfig() error {
	s.config = filepath.Join(s.dir, "sluice.yaml")
	text := fmt.Sprintf(`name: local
source:
  tables: [%s]
  start: TRIM_HORIZON
entityType: entityType
sinks:
  queue: {sqs: {queue: %s}}
routes:
  - name: send
    on: [order#INSERT]
    send: {to: queue, body: record}
`, s.table, s.queue)
	fmt.Fprintln(s.out, faint("\n"+text))
	return os.WriteFile(s.config, []byte(text), 0o600)
}

// environ is what sluice needs to reach the servers.
func (s *session) environ() []string {
	return []string{
		"AWS_REGION=us-east-1", "AWS_DEFAULT_REGION=us-east-1", "AWS_ACCESS_KEY_ID=local", "AWS_SECRET_ACCESS_KEY=local", "AWS_SESSION_TOKEN=",
		"SLUICE_ENDPOINT_DYNAMODB=" + s.stack.DynamoDB, "SLUICE_ENDPOINT_SQS=" + s.stack.SQS,
	}
}

func (s *session) state() string { return filepath.Join(s.dir, "state.db") }

// quoted is one word of a shell: a temporary folder may have a space.
func quoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// start starts the daemon. wait waits for its end, which is an error unless ctx ended it.
func (s *session) start(ctx context.Context) (wait func() error, err error) {
	listen := "off"
	if s.stay {
		listen = "127.0.0.1:0"
	}
	cmd := exec.CommandContext(ctx, s.program, "run", "--config", s.config, "--state", s.state(), "--listen", listen)
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { // settings of other daemons
		return strings.HasPrefix(v, "SLUICE_") || strings.HasPrefix(v, "AWS_") || strings.HasPrefix(v, "OTEL_")
	}), s.environ()...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second // then it is killed
	log, err := os.Create(filepath.Join(s.dir, "daemon.log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	done, err := localstack.StartChild(cmd, s.dir, s.stack.LogDir)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", s.program, err)
	}
	return func() error {
		<-done
		if ctx.Err() != nil {
			return nil
		}
		text, _ := os.ReadFile(log.Name())                                              // without it the code is all there is
		return fmt.Errorf("sluice run ended by itself: %v\n%s", cmd.ProcessState, text) // an end without an error, too
	}, nil
}

// oneOrder writes an item and shows its message.
func (s *session) oneOrder(ctx context.Context, n int) error {
	id := fmt.Sprint("o-", n)
	_, err := s.tables.PutItem(ctx, &dynamodb.PutItemInput{TableName: &s.table, Item: map[string]types.AttributeValue{
		"pk":         &types.AttributeValueMemberS{Value: id},
		"entityType": &types.AttributeValueMemberS{Value: "order"},
		"total":      &types.AttributeValueMemberN{Value: "250"},
	}})
	if err != nil {
		return s.because(ctx, fmt.Errorf("put an item into %s: %w", s.table, err))
	}
	written := time.Now()
	s.say("item", `{"pk": %q, "entityType": "order", "total": 250}`, id)
	for {
		out, err := s.queues.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &s.queueURL, WaitTimeSeconds: 1})
		switch {
		case err != nil:
			return s.because(ctx, fmt.Errorf("receive from %s: %w", s.queue, err))
		case len(out.Messages) > 0:
			var body any
			text := aws.ToString(out.Messages[0].Body)
			if err := json.Unmarshal([]byte(text), &body); err != nil || !strings.Contains(text, id) {
				return fmt.Errorf("the message is not the item's: %s", text)
			}
			s.say("message", "after %d ms: %s", time.Since(written).Milliseconds(), text)
			_, err = s.queues.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &s.queueURL, ReceiptHandle: out.Messages[0].ReceiptHandle})
			return err
		case time.Since(written) > patience:
			text, _ := os.ReadFile(filepath.Join(s.dir, "daemon.log")) // shown if it is there
			return fmt.Errorf("no message within %v; the daemon's log:\n%s", patience, text)
		}
	}
}

// because returns why ctx ended, or else err.
func (s *session) because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return err
}
