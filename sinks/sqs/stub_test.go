package sqs

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"go.uber.org/goleak"

	"github.com/sluicehq/sluice"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stub speaks SQS's JSON protocol. It is an HTTP client as well, so that tests
// under virtual time need no network.
type stub struct {
	t     *testing.T
	reply func(n int, req sent) answer // to SendMessageBatch n, from 0; nil takes all

	attributes map[string]string // of the queue
	missing    bool              // the queue
	denied     bool              // the right to read its attributes
	text       string            // of refused messages; default "no " and the body
	status     int               // refuses every call with …
	code       string            // … this, when not empty
	delay      time.Duration     // of each answer
	retries    time.Duration     // before each of the client; default its own

	mu       sync.Mutex
	requests []sent
	calls    []string
	names    []string // bodies of GetQueueAttributes
}

type sent struct {
	QueueUrl string //nolint:revive // SQS's spelling
	Entries  []sentEntry
}

type sentEntry struct {
	ID                     string `json:"Id"`
	MessageBody            string
	DelaySeconds           *int
	MessageGroupId         string //nolint:revive // SQS's spelling
	MessageDeduplicationId string //nolint:revive // SQS's spelling
	MessageAttributes      map[string]struct {
		DataType, StringValue string
		BinaryValue           []byte
	}
}

func (s sent) bodies() (out []string) {
	for _, e := range s.Entries {
		out = append(out, e.MessageBody)
	}
	return out
}

// answer to a SendMessageBatch.
type answer struct {
	refused map[string]string // code by body; "sender:" before it is a sender's fault
	silent  []string          // bodies in neither list
	extra   []string          // ids that were not sent, as successful
	code    string            // refuses the request as a whole
	message string
	status  int  // with code; default 400
	hang    bool // the stub does not answer until the client gives up
}

func (s *stub) Do(r *http.Request) (*http.Response, error) {
	time.Sleep(s.delay)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	if w.Code == hangs {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return w.Result(), nil
}

const hangs = 999

func (s *stub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Error(err)
	}
	call := strings.TrimPrefix(r.Header.Get("X-Amz-Target"), "AmazonSQS.")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, call)
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	fail := func(status int, code, message string) {
		w.WriteHeader(status)
		json.NewEncoder(w).Encode(map[string]string{"__type": "com.amazonaws.sqs#" + code, "message": message})
	}
	switch {
	case s.code != "":
		fail(s.status, s.code, "refused")
	case s.missing:
		fail(400, "QueueDoesNotExist", "The specified queue does not exist.")
	case call == "GetQueueUrl":
		json.NewEncoder(w).Encode(map[string]string{"QueueUrl": "https://sqs.us-east-1.amazonaws.com/1/found"})
	case call == "GetQueueAttributes" && s.denied:
		fail(403, "AccessDeniedException", "not authorized to perform: sqs:getqueueattributes")
	case call == "GetQueueAttributes":
		s.names = append(s.names, string(body))
		json.NewEncoder(w).Encode(map[string]any{"Attributes": s.attributes})
	case call == "SendMessageBatch":
		var req sent
		if err := json.NewDecoder(bytes.NewReader(body)).Decode(&req); err != nil {
			s.t.Error(err)
		}
		s.requests = append(s.requests, req)
		var a answer
		if s.reply != nil {
			a = s.reply(len(s.requests)-1, req)
		}
		if a.hang {
			w.WriteHeader(hangs)
			return
		}
		if a.code != "" {
			fail(max(a.status, 400), a.code, a.message)
			return
		}
		var out struct {
			Successful, Failed []map[string]any
		}
		seen := map[string]bool{}
		for _, e := range req.Entries {
			if seen[e.ID] || e.ID == "" || len(e.ID) > 80 {
				s.t.Errorf("entry id %q is not unique or not valid", e.ID)
			}
			seen[e.ID] = true
			code, fault := strings.CutPrefix(a.refused[e.MessageBody], "sender:")
			switch {
			case slices.Contains(a.silent, e.MessageBody):
			case code != "":
				out.Failed = append(out.Failed, map[string]any{"Id": e.ID, "Code": code, "SenderFault": fault, "Message": cmp.Or(s.text, "no "+e.MessageBody)})
			default: // in reverse: results are matched by id
				out.Successful = slices.Insert(out.Successful, 0, map[string]any{"Id": e.ID, "MessageId": "m"})
			}
		}
		for _, id := range a.extra {
			out.Successful = append(out.Successful, map[string]any{"Id": id, "MessageId": "m"})
		}
		json.NewEncoder(w).Encode(out)
	default:
		s.t.Errorf("unexpected call %q", call)
		fail(400, "UnknownOperation", call)
	}
}

const (
	standard = "https://sqs.us-east-1.amazonaws.com/123456789012/jobs"
	fifo     = standard + ".fifo"
)

func config(client aws.HTTPClient) aws.Config {
	return aws.Config{Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""), HTTPClient: client}
}

func (s *stub) queue(t *testing.T, name string, o Options) *Queue {
	t.Helper()
	s.t = t
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	cfg := config(s)
	if s.retries > 0 {
		cfg.Retryer = func() aws.Retryer {
			return retry.NewStandard(func(o *retry.StandardOptions) {
				o.Backoff = retry.BackoffDelayerFunc(func(int, error) (time.Duration, error) { return s.retries, nil })
			})
		}
	}
	q, err := New(cfg, name, o)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// bodies of all requests, in order.
func (s *stub) bodies() (out [][]string) {
	for _, r := range s.requests {
		out = append(out, r.bodies())
	}
	return out
}

func (s *stub) expect(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	for _, b := range s.bodies() {
		got = append(got, strings.Join(b, " "))
	}
	if !slices.Equal(got, want) {
		t.Errorf("requests %q, want %q", got, want)
	}
}

// messages makes one for each body; "a/1" is in group a.
func messages(bodies ...string) (ms []sluice.Message) {
	for _, b := range bodies {
		m := sluice.Message{Body: b}
		if g, _, ok := strings.Cut(b, "/"); ok {
			m.GroupID = g
		}
		ms = append(ms, m)
	}
	return ms
}

func text(errs []error) string { return fmt.Sprint(errs) }
