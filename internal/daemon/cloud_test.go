package daemon

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

// cloud has a daemon's services in memory: streams, tables to scan, and the part of SQS
// that a consumer of a few messages needs.
type cloud struct {
	*streamtest.Service
	scanned []string // items in DynamoDB's JSON that a Scan returns

	mu       sync.Mutex
	messages []*sqsMessage // that are not deleted
	received int
	deleted  []string        // handles, which are the bodies
	refuses  map[string]bool // operations that are answered with an error
	sent     chan struct{}
}

// sqsMessage is a message of the queue. No two have the same body.
type sqsMessage struct {
	id, body string
	sent     time.Time
	visible  time.Time // from then on
	received int
}

func newCloud(t *testing.T, scanned ...string) *cloud {
	return &cloud{Service: streamtest.NewService(t), scanned: scanned, sent: make(chan struct{}, 1), refuses: map[string]bool{}}
}

func (c *cloud) send(body string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.messages = append(c.messages, &sqsMessage{id: fmt.Sprintf("message-%d", len(c.messages)+len(c.deleted)+1), body: body, sent: now, visible: now})
	select {
	case c.sent <- struct{}{}:
	default:
	}
}

// receives is how often each message that is not deleted was received.
func (c *cloud) receives() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := map[string]int{}
	for _, m := range c.messages {
		all[m.body] = m.received
	}
	return all
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
		QueueName           string
		WaitTimeSeconds     int
		MaxNumberOfMessages int
		VisibilityTimeout   int
		Entries             []struct {
			ID                string `json:"Id"`
			ReceiptHandle     string
			VisibilityTimeout int
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
		for over := time.Now().Add(time.Duration(in.WaitTimeSeconds) * time.Second); ; {
			got, next := c.receive(in.MaxNumberOfMessages, time.Duration(in.VisibilityTimeout)*time.Second)
			if len(got) > 0 || !time.Now().Before(over) {
				out["Messages"] = got
				break
			}
			if next.IsZero() || next.After(over) {
				next = over
			}
			select {
			case <-c.sent:
			case <-time.After(time.Until(next)):
			case <-r.Context().Done():
				return
			}
		}
	default: // DeleteMessageBatch, ChangeMessageVisibilityBatch
		var done []any
		c.mu.Lock()
		for _, e := range in.Entries {
			i := slices.IndexFunc(c.messages, func(m *sqsMessage) bool { return m.body == e.ReceiptHandle })
			switch {
			case op == "DeleteMessageBatch":
				c.deleted = append(c.deleted, e.ReceiptHandle)
				c.messages = slices.Delete(c.messages, i, i+1)
			case i >= 0:
				c.messages[i].visible = time.Now().Add(time.Duration(e.VisibilityTimeout) * time.Second)
			}
			done = append(done, map[string]string{"Id": e.ID})
		}
		c.mu.Unlock()
		out["Successful"] = done
	}
	_ = json.NewEncoder(w).Encode(out)
}

// receive hands out messages, and otherwise says when the next can be seen.
func (c *cloud) receive(most int, hidden time.Duration) (got []any, next time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	for _, m := range c.messages {
		switch {
		case m.visible.After(now):
			if next.IsZero() || m.visible.Before(next) {
				next = m.visible
			}
			continue
		case len(got) == most:
			return got, next
		}
		m.visible = now.Add(hidden)
		m.received++
		c.received++
		sum := md5.Sum([]byte(m.body))
		got = append(got, map[string]any{
			"MessageId": m.id, "Body": m.body, "ReceiptHandle": m.body, "MD5OfBody": hex.EncodeToString(sum[:]),
			"Attributes": map[string]string{"ApproximateReceiveCount": fmt.Sprint(m.received), "SentTimestamp": fmt.Sprint(m.sent.UnixMilli())},
		})
	}
	return got, next
}
