package rows

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// service answers each request by the next of its answers, and keeps requests.
type service struct {
	answers  []func(body map[string]json.RawMessage) (status int, answer string)
	requests []string
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	data, _ := io.ReadAll(r.Body)
	var body map[string]json.RawMessage
	json.Unmarshal(data, &body)
	s.requests = append(s.requests, string(data))
	if len(s.answers) == 0 {
		http.Error(w, `{"__type":"com.amazon.coral.validate#ValidationException","message":"one request too many"}`, http.StatusBadRequest)
		return
	}
	status, answer := s.answers[0](body)
	s.answers = s.answers[1:]
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.WriteHeader(status)
	io.WriteString(w, answer)
}

func (s *service) table(t *testing.T) *DynamoDB {
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return NewDynamoDB(aws.Config{Region: "us-east-1", BaseEndpoint: &server.URL, Credentials: credentials.NewStaticCredentialsProvider("AKID", "secret", "")}, "state")
}

func answer(status int, text string) func(map[string]json.RawMessage) (int, string) {
	return func(map[string]json.RawMessage) (int, string) { return status, text }
}

const (
	lost = `{"__type":"com.amazonaws.dynamodb.v20120810#InternalServerError","message":"The request processing has failed because of an unknown error"}`
	// throttled is the shape of
	// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html
	throttled = `{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException","message":"The level of configured provisioned throughput for the table was exceeded."}`
	refused   = `{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException","message":"The conditional request failed"%s}`
)

// tokenOf is the new token in a request of Write.
func tokenOf(body map[string]json.RawMessage) string {
	var values map[string]struct{ S string }
	json.Unmarshal(body["ExpressionAttributeValues"], &values)
	return values[":token"].S
}

func item(token string) string {
	return fmt.Sprintf(`,"Item":{"partition":{"S":"p"},"sort":{"S":"s"},"token":{"S":"%s"},"n":{"N":"7"}}`, token)
}

var (
	seen = Row{Key: Key{"p", "s"}, Token: "before"}
	set  = map[string]types.AttributeValue{"n": &types.AttributeValueMemberN{Value: "8"}}
)

// A response is lost, the SDK repeats the request, and the service refuses the
// repetition because of the first: the write was made.
func TestWriteWhoseResponseIsLost(t *testing.T) {
	s := &service{answers: []func(map[string]json.RawMessage) (int, string){
		answer(500, lost), answer(400, throttled),
		func(body map[string]json.RawMessage) (int, string) {
			return 400, fmt.Sprintf(refused, item(tokenOf(body)))
		},
	}}
	row, err := s.table(t).Write(t.Context(), seen, set)
	if err != nil || row.Attributes["n"].(*types.AttributeValueMemberN).Value != "8" || !row.Exists() {
		t.Fatalf("Write = %+v, %v", row, err)
	}
	if len(s.requests) != 3 || s.requests[0] != s.requests[1] || s.requests[1] != s.requests[2] {
		t.Errorf("requests: %q, want one request three times", s.requests)
	}
	for _, want := range []string{`"ReturnValuesOnConditionCheckFailure":"ALL_OLD"`, `"ConditionExpression":"#token = :seen"`, `":seen":{"S":"before"}`} {
		if !strings.Contains(s.requests[0], want) {
			t.Errorf("request %s lacks %s", s.requests[0], want)
		}
	}
}

func TestWriteThatIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ now, token string }{
		"written": {item("other"), "other"},
		"deleted": {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := &service{answers: []func(map[string]json.RawMessage) (int, string){answer(400, fmt.Sprintf(refused, c.now))}}
			_, err := s.table(t).Write(t.Context(), seen, set)
			var changed *ChangedError
			if !errors.As(err, &changed) || changed.Now.Token != c.token || changed.Now.Key != seen.Key {
				t.Fatalf("Write = %v, want a ChangedError of token %q", err, c.token)
			}
			s.answers = []func(map[string]json.RawMessage) (int, string){answer(400, fmt.Sprintf(refused, c.now))}
			err = s.table(t).Delete(t.Context(), seen)
			if c.token == "" && err != nil || c.token != "" && !errors.As(err, &changed) {
				t.Errorf("Delete = %v", err)
			}
		})
	}
}

// The row is new: a condition without a value, for a key that nobody has.
func TestWriteOfNew(t *testing.T) {
	s := &service{answers: []func(map[string]json.RawMessage) (int, string){answer(200, `{}`)}}
	if _, err := s.table(t).Write(t.Context(), Row{Key: seen.Key}, set); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(s.requests[0], `"ConditionExpression":"attribute_not_exists(#token)"`) || strings.Contains(s.requests[0], ":seen") {
		t.Errorf("request: %s", s.requests[0])
	}
}

// All attempts fail: nobody knows whether the write was made.
func TestWriteOfUnknownEnd(t *testing.T) {
	s := new(service)
	for range attempts {
		s.answers = append(s.answers, answer(500, lost))
	}
	_, err := s.table(t).Write(t.Context(), seen, set)
	var changed *ChangedError
	if err == nil || errors.As(err, &changed) || !strings.Contains(err.Error(), "state table state: UpdateItem") {
		t.Fatalf("Write = %v, want an error of another kind", err)
	}
}

// Failed requests use up no budget that later ones need: a heartbeat must be
// repeated, however many writes have failed.
func TestRetriesHaveNoQuota(t *testing.T) {
	s := new(service)
	const writes = 150
	for range writes * attempts {
		s.answers = append(s.answers, answer(400, throttled))
	}
	table := s.table(t)
	table.db = dynamodb.New(table.db.Options(), func(o *dynamodb.Options) {
		o.Retryer = retry.AddWithMaxBackoffDelay(o.Retryer, time.Microsecond)
	})
	for range writes {
		if _, err := table.Write(t.Context(), seen, set); err == nil {
			t.Fatal("a write that failed has no error")
		}
	}
	if len(s.requests) != writes*attempts {
		t.Errorf("%d requests for %d writes, want %d each", len(s.requests), writes, attempts)
	}
}

// Reads are consistent, and a deletion is conditional.
func TestRequests(t *testing.T) {
	s := &service{answers: []func(map[string]json.RawMessage) (int, string){answer(200, `{`+item("t")[1:]+`}`), answer(200, `{}`), answer(200, `{}`)}}
	table := s.table(t)
	row, err := table.Get(t.Context(), seen.Key)
	if err != nil || row.Token != "t" || len(row.Attributes) != 1 {
		t.Errorf("Get = %+v, %v", row, err)
	}
	if none, err := table.Get(t.Context(), seen.Key); err != nil || none.Exists() {
		t.Errorf("Get of a row that does not exist = %+v, %v", none, err)
	}
	if err := table.Delete(t.Context(), row); err != nil {
		t.Errorf("Delete: %v", err)
	}
	if err := table.Delete(t.Context(), Row{Key: seen.Key}); err != nil || len(s.requests) != 3 {
		t.Errorf("Delete of a row that was seen missing: %v, %d requests", err, len(s.requests))
	}
	for i, want := range []string{`"ConsistentRead":true`, `"ConsistentRead":true`, `"ConditionExpression":"#token = :seen"`} {
		if !strings.Contains(s.requests[i], want) {
			t.Errorf("request %s lacks %s", s.requests[i], want)
		}
	}
}

func TestListReadsAllPages(t *testing.T) {
	page := func(sort, next string) func(map[string]json.RawMessage) (int, string) {
		return answer(200, fmt.Sprintf(`{"Count":1,"Items":[{"partition":{"S":"p"},"sort":{"S":%q},"token":{"S":"t"}}]%s}`, sort, next))
	}
	last := `,"LastEvaluatedKey":{"partition":{"S":"p"},"sort":{"S":"a"}}`
	s := &service{answers: []func(map[string]json.RawMessage) (int, string){
		page("a", last), answer(200, `{"Count":0,"Items":[]`+last+`}`), answer(400, throttled), page("b", ""),
	}}
	var got []string
	for row, err := range s.table(t).List(t.Context(), "p", "0", 1) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, row.Sort)
	}
	if fmt.Sprint(got) != "[a b]" || len(s.answers) != 0 {
		t.Errorf("listed %v, %d answers not asked for", got, len(s.answers))
	}
	if !strings.Contains(s.requests[0], `"ConsistentRead":true`) || !strings.Contains(s.requests[0], `#s \u003e :s`) && !strings.Contains(s.requests[0], `#s > :s`) {
		t.Errorf("request: %s", s.requests[0])
	}
	for _, err := range (&service{}).table(t).List(t.Context(), "p", "", 0) {
		if err == nil {
			t.Error("a failed List has no error")
		}
	}
}
