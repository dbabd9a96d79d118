package queue

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// stub fakes the parts of SQS that a consumer uses: visibility, receive counts, groups
// of FIFO queues, retention. It is an HTTP client: tests under virtual time need no
// network. dial returns a consumer's client.
type stub struct {
	mu      sync.Mutex
	queues  map[string]*stubQueue
	changed chan struct{} // closed and made anew when a receive may look again

	// fault is asked before each call and may refuse it, and each entry.
	fault   func(call, queue string) *fault
	faultMu sync.Mutex // held while it is asked
	// deleted is called with each deleted message.
	deleted func(m *stubMessage)
	calls   []stubCall
}

type stubCall struct {
	name, queue string
	entries     int
	at          time.Time
	seconds     []int // of changes
	handles     []string
}

// fault is a failure of one call.
type fault struct {
	code   string         // refuses it
	status int            // with code; default 400
	lost   bool           // no answer; with after: it was done
	after  bool           // the fault comes once the call was done
	entry  map[int]string // codes of entries; "sender:" before it is the sender's fault
	silent map[int]bool   // entries in neither list, that were done
	delay  time.Duration  // before anything is done
	late   time.Duration  // once it was done
}

type stubQueue struct {
	name       string
	attributes map[string]string
	retention  time.Duration
	ms         []*stubMessage // as sent
	byID       map[string]*stubMessage
	live       []*stubMessage // those of ms that may still be there
	ids        int
}

type stubMessage struct {
	id, body, group string
	attributes      map[string]any
	sent            time.Time
	visible         time.Time
	received        int
	taken           time.Time
	gone            bool
}

func newStub(queues ...string) *stub {
	s := &stub{queues: map[string]*stubQueue{}, changed: make(chan struct{})}
	for _, name := range queues {
		s.queues[name] = &stubQueue{name: name, byID: map[string]*stubMessage{}, retention: 4 * 24 * time.Hour, attributes: map[string]string{
			"QueueArn": "arn:aws:sqs:us-east-1:1:" + name, "MessageRetentionPeriod": "345600",
		}}
	}
	return s
}

// send puts bodies into a queue; "g/body" is in group g of a FIFO queue.
func (s *stub) send(queue string, bodies ...string) (ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queues[queue]
	for _, b := range bodies {
		q.ids++
		now := time.Now()
		m := &stubMessage{id: fmt.Sprintf("%s-%03d", queue, q.ids), body: b, sent: now, visible: now}
		if g, rest, ok := strings.Cut(b, "/"); ok && strings.HasSuffix(queue, ".fifo") {
			m.group, m.body = g, rest
		}
		q.ms, q.live, q.byID[m.id] = append(q.ms, m), append(q.live, m), m
		ids = append(ids, m.id)
	}
	s.poke()
	return ids
}

func (s *stub) poke() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// left lists the ids of the messages that are still in a queue.
func (s *stub) left(queue string) (ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.queues[queue].live {
		if !m.gone {
			ids = append(ids, m.id)
		}
	}
	return ids
}

// find returns a copy.
func (s *stub) find(id string) *stubMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range s.queues {
		if m := q.byID[id]; m != nil {
			return new(*m)
		}
	}
	return nil
}

func (s *stub) count(call string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		if c.name == call {
			n++
		}
	}
	return n
}

// line is one process's connection.
type line struct {
	s    *stub
	mu   sync.Mutex
	dead bool
}

func (s *stub) dial() *line { return &line{s: s} }

// cut has every call fail from now on, also those under way.
func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead = true
}

func (l *line) isDead() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dead
}

func (l *line) config() aws.Config {
	return aws.Config{
		Region: "us-east-1", Credentials: aws.AnonymousCredentials{}, HTTPClient: l, // the stub reads no signature
		Retryer: func() aws.Retryer { return aws.NopRetryer{} },
	}
}

var errCut = errors.New("connection lost")

func (l *line) Do(r *http.Request) (*http.Response, error) {
	if l.isDead() {
		return nil, errCut
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	w := httptest.NewRecorder()
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	if err := l.s.serve(r.Context(), w, strings.TrimPrefix(r.Header.Get("X-Amz-Target"), "AmazonSQS."), body); err != nil {
		return nil, err
	}
	if l.isDead() {
		return nil, errCut
	}
	return w.Result(), nil
}

type stubRequest struct {
	QueueUrl, QueueName string //nolint:revive // SQS's spelling
	MaxNumberOfMessages int
	VisibilityTimeout   int
	WaitTimeSeconds     int
	Entries             []struct {
		ID                string `json:"Id"`
		ReceiptHandle     string
		VisibilityTimeout int
	}
}

func (s *stub) serve(ctx context.Context, w http.ResponseWriter, call string, body []byte) error {
	var in stubRequest
	if err := json.Unmarshal(body, &in); err != nil {
		return err
	}
	name := in.QueueName
	if in.QueueUrl != "" {
		name = in.QueueUrl[strings.LastIndexByte(in.QueueUrl, '/')+1:]
	}
	s.mu.Lock()
	c := stubCall{name: call, queue: name, entries: len(in.Entries), at: time.Now()}
	for _, e := range in.Entries {
		c.seconds = append(c.seconds, e.VisibilityTimeout)
		c.handles = append(c.handles, e.ReceiptHandle)
	}
	s.calls = append(s.calls, c)
	q := s.queues[name]
	ask := s.fault
	s.mu.Unlock()
	f := new(fault)
	if ask != nil {
		s.faultMu.Lock()
		if g := ask(call, name); g != nil {
			f = g
		}
		s.faultMu.Unlock()
	}
	if f.delay > 0 {
		time.Sleep(f.delay)
	}
	refuse := func(status int, code string) error {
		w.WriteHeader(status)
		return json.NewEncoder(w).Encode(map[string]string{"__type": "com.amazonaws.sqs#" + code, "message": "refused"})
	}
	if !f.after {
		switch {
		case f.lost:
			return errCut
		case f.code != "":
			return refuse(max(f.status, 400), f.code)
		}
	}
	if q == nil {
		return refuse(400, "QueueDoesNotExist")
	}
	var out any
	switch call {
	case "GetQueueUrl":
		out = map[string]string{"QueueUrl": "https://sqs.us-east-1.amazonaws.com/1/" + name}
	case "GetQueueAttributes":
		out = map[string]any{"Attributes": q.attributes}
	case "ReceiveMessage":
		ms, err := s.receive(ctx, q, in)
		if err != nil {
			return err
		}
		out = map[string]any{"Messages": ms}
	default:
		out = s.entries(call, q, in, f)
	}
	if f.late > 0 {
		time.Sleep(f.late)
	}
	switch {
	case f.lost:
		return errCut
	case f.code != "":
		return refuse(max(f.status, 500), f.code)
	}
	return json.NewEncoder(w).Encode(out)
}

func (s *stub) receive(ctx context.Context, q *stubQueue, in stubRequest) (out []map[string]any, err error) {
	deadline := time.Now().Add(time.Duration(in.WaitTimeSeconds) * time.Second)
	for {
		s.mu.Lock()
		now := time.Now()
		next := deadline
		locked := map[string]bool{}
		q.live = slices.DeleteFunc(q.live, func(m *stubMessage) bool { return m.gone })
		for _, m := range q.live { // a group with a hidden message delivers none
			if m.group != "" && m.visible.After(now) {
				locked[m.group] = true
			}
		}
		for _, m := range q.live {
			switch {
			case now.Sub(m.sent) >= q.retention:
				m.gone = true
				continue
			case m.visible.After(now):
				if m.visible.Before(next) {
					next = m.visible
				}
				continue
			case locked[m.group] && m.group != "" || len(out) == in.MaxNumberOfMessages:
				continue
			}
			m.received++
			m.taken, m.visible = now, now.Add(time.Duration(in.VisibilityTimeout)*time.Second)
			out = append(out, m.json())
		}
		changed := s.changed
		s.mu.Unlock()
		if len(out) > 0 || !now.Before(deadline) {
			return out, nil
		}
		t := time.NewTimer(next.Sub(now))
		select {
		case <-changed:
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return nil, ctx.Err()
		}
		t.Stop()
	}
}

func (m *stubMessage) handle() string { return m.id + "/" + strconv.Itoa(m.received) }

func (m *stubMessage) json() map[string]any {
	sum := md5.Sum([]byte(m.body))
	attributes := map[string]string{
		"ApproximateReceiveCount": strconv.Itoa(m.received), "SentTimestamp": strconv.FormatInt(m.sent.UnixMilli(), 10),
	}
	if m.group != "" {
		attributes["MessageGroupId"], attributes["MessageDeduplicationId"] = m.group, m.id
	}
	out := map[string]any{"MessageId": m.id, "Body": m.body, "ReceiptHandle": m.handle(), "MD5OfBody": hex.EncodeToString(sum[:]), "Attributes": attributes}
	if m.attributes != nil {
		out["MessageAttributes"] = m.attributes
	}
	return out
}

func (s *stub) entries(call string, q *stubQueue, in stubRequest, f *fault) any {
	var out struct{ Successful, Failed []map[string]any }
	fifo := strings.HasSuffix(q.name, ".fifo")
	var told []*stubMessage
	s.mu.Lock()
	for i, e := range in.Entries {
		if code, fault := strings.CutPrefix(f.entry[i], "sender:"); code != "" {
			out.Failed = append(out.Failed, map[string]any{"Id": e.ID, "Code": code, "SenderFault": fault, "Message": "no"})
			continue
		}
		id, _, _ := strings.Cut(e.ReceiptHandle, "/")
		m := q.byID[id]
		now := time.Now()
		code := ""
		switch {
		case m == nil:
			code = "ReceiptHandleIsInvalid"
		case call == "DeleteMessageBatch":
			switch current := m.handle() == e.ReceiptHandle; {
			case m.gone:
			case fifo && (!current || !m.visible.After(now)):
				code = "InvalidParameterValue" // the receipt handle has expired
			case current:
				m.gone = true
				told = append(told, m)
			}
		default:
			switch until := now.Add(time.Duration(e.VisibilityTimeout) * time.Second); {
			case m.gone || m.handle() != e.ReceiptHandle:
				code = "ReceiptHandleIsInvalid"
			case !m.visible.After(now):
				code = "MessageNotInflight"
			case until.Sub(m.taken) > 12*time.Hour:
				code = "InvalidParameterValue"
			default:
				m.visible = until
			}
		}
		switch {
		case code != "":
			out.Failed = append(out.Failed, map[string]any{"Id": e.ID, "Code": code, "SenderFault": true, "Message": "no"})
		case !f.silent[i]: // in reverse: results are matched by id
			out.Successful = slices.Insert(out.Successful, 0, map[string]any{"Id": e.ID})
		}
	}
	s.poke()
	deleted := s.deleted
	s.mu.Unlock()
	for _, m := range told {
		if deleted != nil {
			deleted(m)
		}
	}
	return out
}
