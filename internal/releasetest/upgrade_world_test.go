//go:build integration && proof && unix

package releasetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sluicehq/sluice/bench/local"
	"github.com/sluicehq/sluice/internal/localtest"
)

const routes = `
source: {tables: [%s], start: TRIM_HORIZON}
daemon: {state: "%s"}
sinks:
  ordered: {sqs: {queue: %s}}
  every: {sqs: {queue: %s}}
routes:
  - {name: ordered, on: "thing#*", send: {to: ordered, body: '{"id":"{id}","version":{version}}'}}
  - {name: every, on: "thing#*", send: {to: every, body: '{"id":"{id}","version":{version}}'}}
  - {name: held, on: "held#*", send: {to: ordered, body: '{"id":"{id}","version":{version}}'}}
  - {name: bad, on: "bad#*", redrive: true, send: {to: every, body: '{"missing":"of {missing}"}'}}
`

// upgrade is two versions of the program, tables that are written, and the messages that
// came of it: in a queue that keeps their order and drops repeated ones, and in another.
type upgrade struct {
	*testing.T
	dir, state string
	drained    []func() bool // whether all messages of a queue are counted
	old, next  string        // programs
	tables     []string
	env        []string
	db         *dynamodb.Client

	mu      sync.Mutex
	written map[string]int // newest versions of the items
	came    map[string]int // the same, of their messages: all before came, too
	times   map[change]int // how often the messages came
}

type change struct {
	ID      string
	Version int
}

func newUpgrade(t *testing.T, state string, tables int) *upgrade {
	t.Helper()
	cfg := localtest.OwnDynamoDB(t)
	u := &upgrade{T: t, dir: t.TempDir(), state: state, db: dynamodb.NewFromConfig(cfg),
		written: make(map[string]int), came: make(map[string]int), times: make(map[change]int)}
	u.old, u.next = programs(t, u.dir)
	for range tables {
		table, _ := localtest.Streamed(t, "things")
		u.tables = append(u.tables, table)
	}
	ordered := u.consume(localtest.Name("ordered")+".fifo", u.inOrder)
	every := u.consume(localtest.Name("every"), func(c change) { u.times[c]++ })
	u.env = []string{
		"HOME=" + u.dir, "PATH=" + os.Getenv("PATH"), "SLUICE_TOKEN=0123456789abcdef",
		"SLUICE_ENDPOINT_DYNAMODB=" + *cfg.BaseEndpoint, "SLUICE_ENDPOINT_SQS=" + *localtest.SQS(t).BaseEndpoint,
		"AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=local", "AWS_SECRET_ACCESS_KEY=local", "AWS_EC2_METADATA_DISABLED=true",
	}
	text := fmt.Sprintf(routes, strings.Join(u.tables, ", "), state, ordered, every)
	if err := os.WriteFile(filepath.Join(u.dir, "sluice.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return u
}

func (u *upgrade) fleet() bool { return strings.HasPrefix(u.state, "dynamodb:") }

// consume makes a queue, calls do with its messages until the end of the test, and
// returns its name.
func (u *upgrade) consume(name string, do func(change)) string {
	u.Helper()
	client := sqs.NewFromConfig(localtest.SQS(u))
	attributes := map[string]string{"VisibilityTimeout": "43200"} // nothing comes twice by itself
	if strings.HasSuffix(name, ".fifo") {
		attributes["FifoQueue"] = "true"
	}
	made, err := client.CreateQueue(u.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes})
	if err != nil {
		u.Fatal(err)
	}
	ctx, cancel := context.WithCancel(u.Context())
	var receiving sync.WaitGroup
	receiving.Go(func() {
		for {
			out, err := client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: made.QueueUrl, MaxNumberOfMessages: 10, WaitTimeSeconds: 1})
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				u.Error(err)
				return
			}
			u.mu.Lock()
			var done []sqstypes.DeleteMessageBatchRequestEntry
			for _, m := range out.Messages {
				var c change
				if err := json.Unmarshal([]byte(*m.Body), &c); err != nil {
					u.Errorf("message %s: %v", *m.Body, err)
				}
				do(c)
				done = append(done, sqstypes.DeleteMessageBatchRequestEntry{Id: m.MessageId, ReceiptHandle: m.ReceiptHandle})
			}
			u.mu.Unlock()
			if len(done) > 0 {
				if _, err := client.DeleteMessageBatch(context.WithoutCancel(ctx), &sqs.DeleteMessageBatchInput{QueueUrl: made.QueueUrl, Entries: done}); err != nil {
					u.Error(err)
				}
			}
		}
	})
	u.drained = append(u.drained, func() bool {
		out, err := client.GetQueueAttributes(u.Context(), &sqs.GetQueueAttributesInput{QueueUrl: made.QueueUrl, AttributeNames: []sqstypes.QueueAttributeName{"All"}})
		return err == nil && out.Attributes["ApproximateNumberOfMessages"] == "0" && out.Attributes["ApproximateNumberOfMessagesNotVisible"] == "0"
	})
	u.Cleanup(func() {
		cancel()
		receiving.Wait()
		if _, err := client.DeleteQueue(context.Background(), &sqs.DeleteQueueInput{QueueUrl: made.QueueUrl}); err != nil {
			u.Error(err)
		}
	})
	return name
}

// inOrder expects the next version of an item, or a repeated one.
func (u *upgrade) inOrder(c change) {
	if c.Version > u.came[c.ID]+1 {
		u.Errorf("item %s: after version %d comes %d", c.ID, u.came[c.ID], c.Version)
	}
	u.came[c.ID] = max(u.came[c.ID], c.Version)
}

// put writes a version of an item.
func (u *upgrade) put(table, kind, id string, version int) {
	if _, err := u.db.PutItem(context.WithoutCancel(u.Context()), &dynamodb.PutItemInput{TableName: &table, Item: map[string]types.AttributeValue{
		"id": &types.AttributeValueMemberS{Value: id}, "entityType": &types.AttributeValueMemberS{Value: kind},
		"version": &types.AttributeValueMemberN{Value: fmt.Sprint(version)},
	}}); err != nil {
		u.Error(err)
	}
	if kind != "bad" {
		u.mu.Lock()
		u.written[id] = version
		u.mu.Unlock()
	}
}

// write writes items until the returned function is called.
func (u *upgrade) write() (stop func()) {
	ctx, cancel := context.WithCancel(u.Context())
	var writing sync.WaitGroup
	writing.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for n := 0; ctx.Err() == nil; n++ {
			id := fmt.Sprintf("thing-%d", n%(4*len(u.tables)))
			u.mu.Lock()
			version := u.written[id] + 1
			u.mu.Unlock()
			u.put(u.tables[n%len(u.tables)], "thing", id, version)
			<-tick.C
		}
	})
	u.Cleanup(func() { cancel(); writing.Wait() })
	return func() { cancel(); writing.Wait() }
}

// start starts a daemon, and returns once it reads a shard.
func (u *upgrade) start(program string) *local.Process {
	u.Helper()
	cmd := exec.Command(program, "run", "--listen", "127.0.0.1:0", "--log-format", "json")
	cmd.Dir, cmd.Env = u.dir, u.env
	p, err := local.Start(filepath.Base(program), cmd, nil, nil)
	if err != nil {
		u.Fatal(err)
	}
	u.Cleanup(p.Kill)
	at, err := p.Address(u.Context(), localtest.Patience)
	if err != nil {
		u.Fatal(err)
	}
	localtest.Await(u, "a daemon reads", func() string {
		series, err := local.Metrics(u.Context(), at)
		for name, shards := range series {
			if strings.HasPrefix(name, "sluice_shards{") && shards > 0 {
				return ""
			}
		}
		return u.below(0, p) + fmt.Sprintf("not yet: %v", err)
	})
	return p
}

// end ends a daemon in order.
func (u *upgrade) end(p *local.Process) {
	u.Helper()
	if err := p.Stop(); err != nil {
		u.Fatal(err)
	}
}

// run runs a command of the program, which finds the daemon or the state by itself.
func (u *upgrade) run(program string, args ...string) string {
	u.Helper()
	return u.exits(0, program, args...)
}

func (u *upgrade) exits(code int, program string, args ...string) string {
	u.Helper()
	cmd := exec.CommandContext(u.Context(), program, args...)
	cmd.Dir, cmd.Env = u.dir, u.env
	out, err := cmd.Output()
	e := new(exec.ExitError)
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != code {
		errors.As(err, &e)
		u.Fatalf("%s %v: %v, want exit code %d\n%s%s", filepath.Base(program), args, err, code, out, e.Stderr)
	}
	return string(out)
}

// count is how many changes have their message.
func (u *upgrade) count() (n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, version := range u.came {
		n += version
	}
	return n
}

// repeated is how many messages came more than once, when the queues are empty.
func (u *upgrade) repeated() (n int) {
	u.Helper()
	for _, drained := range u.drained {
		localtest.Await(u, "all messages", func() string {
			if drained() {
				return ""
			}
			return "some are in the queue"
		})
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, times := range u.times {
		n += times - 1
	}
	return n
}

// more waits for messages of changes while all daemons run.
func (u *upgrade) more(all ...*local.Process) {
	u.Helper()
	want := u.count() + 100
	localtest.Await(u, "more changes", func() string { return u.below(want, all...) })
}

// below says how many changes have their message, if they are fewer than wanted. All
// daemons must run.
func (u *upgrade) below(want int, all ...*local.Process) string {
	u.Helper()
	for _, p := range all {
		select {
		case <-p.Ended():
			u.Fatal(p.Failure(errors.New("it ended by itself")))
		default:
		}
	}
	if have := u.count(); have < want {
		return fmt.Sprintf("%d of %d", have, want)
	}
	return ""
}

// caughtUp waits until each version that was written has come to both queues.
func (u *upgrade) caughtUp(all ...*local.Process) {
	u.Helper()
	localtest.Await(u, "all messages", func() string {
		u.below(0, all...)
		u.mu.Lock()
		defer u.mu.Unlock()
		missing := 0
		for id, versions := range u.written {
			missing += versions - u.came[id]
			for v := range versions {
				if u.times[change{id, v + 1}] == 0 && strings.HasPrefix(id, "thing-") {
					missing++
				}
			}
		}
		if missing > 0 {
			return fmt.Sprintf("%d are missing", missing)
		}
		return ""
	})
}
