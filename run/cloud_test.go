package run

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sluicehq/sluice/streamtest"
)

// cloud is what a daemon talks to, in memory: streams, tables to scan, and SQS
// as far as a consumer of a few messages sees it. A message is delivered once.
type cloud struct {
	*streamtest.Service
	scanned []string // items in DynamoDB's JSON that a Scan returns

	mu       sync.Mutex
	waiting  []string // messages to be received
	received int
	deleted  []string        // handles, which are the bodies
	refuses  map[string]bool // operations that are answered with an error
	sent     chan struct{}
}

func newCloud(t *testing.T, scanned ...string) *cloud {
	return &cloud{Service: streamtest.NewService(t), scanned: scanned, sent: make(chan struct{}, 100), refuses: map[string]bool{}}
}

func (c *cloud) send(body string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = append(c.waiting, body)
	c.sent <- struct{}{}
}

// refuse has an operation fail from now on.
func (c *cloud) refuse(op string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refuses[op] = true
}

func (c *cloud) settled() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.deleted)
}

// aws is the configuration of every service's client, without sockets.
func (c *cloud) aws(string) aws.Config {
	cfg := c.Config()
	cfg.HTTPClient = &http.Client{Transport: inMemory{c}}
	return cfg
}

type inMemory struct{ http.Handler }

func (m inMemory) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	if r.Body == nil {
		r.Body = http.NoBody
	}
	m.ServeHTTP(w, r)
	if err := context.Cause(r.Context()); err != nil {
		return nil, err
	}
	return w.Result(), nil
}

func (c *cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	service, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	c.mu.Lock()
	refused := c.refuses[op]
	c.mu.Unlock()
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	switch {
	case refused:
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"__type":"AccessDeniedException","message":"not you"}`)
	case op == "Scan":
		fmt.Fprintf(w, `{"Items":[%s],"Count":%d,"ScannedCount":%[2]d}`, strings.Join(c.scanned, ","), len(c.scanned))
	case service == "AmazonSQS":
		c.queue(w, r, op, body)
	default:
		r.Body = io.NopCloser(bytes.NewReader(body))
		c.Service.ServeHTTP(w, r)
	}
}

func (c *cloud) queue(w http.ResponseWriter, r *http.Request, op string, body []byte) {
	var in struct {
		QueueName       string
		WaitTimeSeconds int
		Entries         []struct {
			ID            string `json:"Id"`
			ReceiptHandle string
		}
	}
	if err := json.Unmarshal(body, &in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	out := map[string]any{}
	switch op {
	case "GetQueueUrl":
		out["QueueUrl"] = "https://sqs.us-east-1.amazonaws.com/1/" + in.QueueName
	case "GetQueueAttributes":
		out["Attributes"] = map[string]string{"QueueArn": "arn:aws:sqs:us-east-1:1:jobs", "MessageRetentionPeriod": "345600"}
	case "ReceiveMessage":
		select {
		case <-c.sent:
			out["Messages"] = []any{c.take()}
		case <-time.After(time.Duration(in.WaitTimeSeconds) * time.Second):
		case <-r.Context().Done():
			return
		}
	default: // DeleteMessageBatch, ChangeMessageVisibilityBatch
		var done []any
		c.mu.Lock()
		for _, e := range in.Entries {
			if op == "DeleteMessageBatch" {
				c.deleted = append(c.deleted, e.ReceiptHandle)
			}
			done = append(done, map[string]string{"Id": e.ID})
		}
		c.mu.Unlock()
		out["Successful"] = done
	}
	_ = json.NewEncoder(w).Encode(out)
}

func (c *cloud) take() map[string]any {
	c.mu.Lock()
	defer c.mu.Unlock()
	body := c.waiting[0]
	c.waiting = c.waiting[1:]
	c.received++
	sum := md5.Sum([]byte(body))
	return map[string]any{
		"MessageId": fmt.Sprintf("message-%d", c.received), "Body": body, "ReceiptHandle": body, "MD5OfBody": hex.EncodeToString(sum[:]),
		"Attributes": map[string]string{"ApproximateReceiveCount": "1", "SentTimestamp": fmt.Sprint(time.Now().UnixMilli())},
	}
}
