//go:build integration

package streamtest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sluicehq/sluice/internal/localtest"
)

// spoiled is a table of DynamoDB Local, and a client that comes to it through
// a proxy and does not retry.
type spoiled struct {
	t       *testing.T
	name    string
	direct  *dynamodb.Client
	through *dynamodb.Client
	proxy   *Proxy
}

func newSpoiled(t *testing.T) *spoiled {
	cfg := localtest.DynamoDB(t)
	s := &spoiled{t: t, name: localtest.Name("proxy"), direct: dynamodb.NewFromConfig(cfg), proxy: NewProxy(t, *cfg.BaseEndpoint)}
	s.through = dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) {
		o.BaseEndpoint = aws.String(s.proxy.URL())
		o.Retryer = aws.NopRetryer{}
	})
	_, err := s.through.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: &s.name, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := s.direct.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &s.name}); err != nil {
			t.Error(err)
		}
	})
	return s
}

// add adds one to the item a's n.
func (s *spoiled) add(opts ...func(*dynamodb.Options)) error {
	_, err := s.through.UpdateItem(s.t.Context(), &dynamodb.UpdateItemInput{
		TableName: &s.name, Key: map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "a"}},
		UpdateExpression:          aws.String("ADD n :one"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":one": &types.AttributeValueMemberN{Value: "1"}},
		ReturnValues:              types.ReturnValueAllNew,
	}, opts...)
	return err
}

// n returns what add has come to.
func (s *spoiled) n() string {
	out, err := s.direct.GetItem(s.t.Context(), &dynamodb.GetItemInput{
		TableName: &s.name, Key: map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "a"}}, ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		s.t.Fatal(err)
	}
	n, ok := out.Item["n"].(*types.AttributeValueMemberN)
	if !ok {
		return "0"
	}
	return n.Value
}

// What the SDK's client meets, and what became of its write.
func TestProxyLocalWrites(t *testing.T) {
	for _, tt := range []struct {
		name  string
		fault ProxyFault
		fails bool
		n     string
	}{
		{"nothing", ProxyFault{Drop: true, Op: "PutItem"}, false, "1"},
		{"request dropped", ProxyFault{Drop: true}, true, "0"},
		{"answer dropped", ProxyFault{DropAnswer: true}, true, "1"},
		{"answer cut", ProxyFault{Cut: true}, true, "1"},
		{"duplicated", ProxyFault{Duplicate: true}, false, "2"},
		{"rewritten", ProxyFault{Rewrite: func(r []byte, send func([]byte) (int, []byte)) []byte { // its checksum is right
			_, answer := send(r)
			return append(answer, ' ')
		}}, false, "1"},
		{"refused", ProxyFault{Status: 500}, true, "0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSpoiled(t)
			if tt.fault.Op == "" {
				tt.fault.Op = "UpdateItem"
			}
			s.proxy.Fail(tt.fault)
			if err := s.add(); (err != nil) != tt.fails {
				t.Errorf("the client was told %v", err)
			}
			wantText(t, "n", s.n(), tt.n)
		})
	}
}

// The SDK takes the proxy's own answers for DynamoDB's, and retries.
func TestProxyLocalErrors(t *testing.T) {
	s := newSpoiled(t)
	s.proxy.Fail(ProxyFault{Op: "UpdateItem", Status: 400, Times: 1, Body: `{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException","message":"slow down"}`})
	var throttled *types.ProvisionedThroughputExceededException
	if err := s.add(); !errors.As(err, &throttled) || throttled.ErrorMessage() != "slow down" {
		t.Errorf("the client was told %v", err)
	}
	s.proxy.Fail(ProxyFault{Op: "UpdateItem", Status: 503, Times: 1})
	s.proxy.Fail(ProxyFault{Op: "UpdateItem", DropAnswer: true, Times: 1})
	err := s.add(func(o *dynamodb.Options) {
		o.Retryer = retry.NewStandard(func(o *retry.StandardOptions) { // three attempts
			o.Backoff = retry.BackoffDelayerFunc(func(int, error) (time.Duration, error) { return 0, nil })
		})
	})
	if err != nil {
		t.Error(err)
	}
	wantText(t, "n, after an answer was lost and the write repeated", s.n(), "2")
	if got := s.proxy.Counts(); got.Answered != 2 || got.AnswersDropped != 1 {
		t.Errorf("counts: %+v", got)
	}
}

// Who does not look at UnprocessedItems loses writes; who sends them again
// loses none.
func TestProxyLocalUnprocessed(t *testing.T) {
	s := newSpoiled(t)
	s.proxy.Fail(Unprocessed(0.3, 1))
	write := func(kind string, repeat bool) (rounds int) {
		var all []types.WriteRequest
		for i := range 25 {
			all = append(all, types.WriteRequest{PutRequest: &types.PutRequest{Item: map[string]types.AttributeValue{
				"pk": &types.AttributeValueMemberS{Value: fmt.Sprint(kind, i)}, "kind": &types.AttributeValueMemberS{Value: kind},
			}}})
		}
		for left := map[string][]types.WriteRequest{s.name: all}; len(left) > 0; rounds++ {
			if rounds > 0 && !repeat {
				return rounds
			}
			out, err := s.through.BatchWriteItem(t.Context(), &dynamodb.BatchWriteItemInput{RequestItems: left})
			if err != nil {
				t.Fatal(err)
			}
			left = out.UnprocessedItems
		}
		return rounds
	}
	written := func(kind string) int32 {
		out, err := s.direct.Scan(t.Context(), &dynamodb.ScanInput{
			TableName: &s.name, Select: types.SelectCount, ConsistentRead: aws.Bool(true), FilterExpression: aws.String("kind = :kind"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":kind": &types.AttributeValueMemberS{Value: kind}},
		})
		if err != nil {
			t.Fatal(err)
		}
		return out.Count
	}
	write("careless", false)
	if n := written("careless"); n < 10 || n > 24 {
		t.Errorf("without another round %d of 25 were written", n)
	}
	rounds := write("careful", true)
	if n := written("careful"); n != 25 || rounds < 2 {
		t.Errorf("after %d rounds %d of 25 were written", rounds, n)
	}
}

// Another server and protocol: a message sent twice is in the queue twice, and
// one whose answer is lost is in it although its sender does not know.
func TestProxyLocalQueue(t *testing.T) {
	cfg := localtest.SQS(t)
	p := NewProxy(t, *cfg.BaseEndpoint)
	cfg.BaseEndpoint = aws.String(p.URL())
	c := sqs.NewFromConfig(cfg, func(o *sqs.Options) { o.Retryer = aws.NopRetryer{} })
	queue, err := c.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String(localtest.Name("proxy"))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := c.DeleteQueue(context.Background(), &sqs.DeleteQueueInput{QueueUrl: queue.QueueUrl}); err != nil {
			t.Error(err)
		}
	})
	p.Fail(ProxyFault{Op: "SendMessage", Duplicate: true, Times: 1})
	p.Fail(ProxyFault{Op: "SendMessage", DropAnswer: true, Times: 1})
	for i, fails := range []bool{false, true, false} {
		_, err := c.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: queue.QueueUrl, MessageBody: aws.String(fmt.Sprint(i))})
		if (err != nil) != fails {
			t.Errorf("message %d: %v", i, err)
		}
	}
	got := map[string]int{}
	for range 4 {
		out, err := c.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: queue.QueueUrl, MaxNumberOfMessages: 1, WaitTimeSeconds: 5})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range out.Messages {
			got[*m.Body]++
		}
	}
	wantText(t, "messages", fmt.Sprint(got), "map[0:2 1:1 2:1]")
}
