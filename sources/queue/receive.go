package queue

import (
	"context"
	"crypto/rand"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/backoff"
)

// run consumes until ctx ends. It returns when no message is in hand, or the wait
// for them has ended.
func (s *source) run(ctx context.Context, t terms) {
	s.calls = s.newCalls(t.writes)
	s.health.begin(true)
	defer s.health.begin(false)
	if s.c.o.Hold != nil {
		select {
		case <-s.c.o.Hold:
		case <-ctx.Done():
			return
		}
	}
	beats, end := context.WithCancel(context.WithoutCancel(ctx))
	var keeping sync.WaitGroup
	keeping.Go(func() { s.keep(beats, t) })
	r := receiving{s: s, t: t}
	r.loop(ctx, false)
	r.loops.Wait()
	r.lanes.Wait()
	end()
	keeping.Wait()
}

// receiving is the receivers of one source and the lanes that they start.
type receiving struct {
	s     *source
	t     terms
	loops sync.WaitGroup // of extra receivers
	lanes sync.WaitGroup

	mu    sync.Mutex
	extra int
}

// loop receives until ctx ends. Full responses start extra receivers, which end
// when there is less to do. So an idle queue costs the calls of one receiver.
func (r *receiving) loop(ctx context.Context, extra bool) {
	s := r.s
	if extra {
		defer func() {
			r.mu.Lock()
			r.extra--
			r.mu.Unlock()
		}()
	}
	for tries := 0; ctx.Err() == nil; {
		slow, most := s.pace.wait(ctx), maxBatch
		if slow {
			if extra {
				return
			}
			most = 1
		}
		n := s.hand.reserve(ctx, most)
		if n == 0 {
			return
		}
		ms, err := s.receive(ctx, n)
		ends := r.take(ctx, ms)
		s.hand.release(n - len(ends))
		switch {
		case err == nil:
			tries = 0
		case ctx.Err() != nil:
			return
		default:
			if extra {
				return
			}
			d := maxDelay
			if !needsPerson(err) {
				d = backoff.Doubled(time.Second, maxDelay, tries)
			}
			tries++
			s.tell("messages cannot be received: will be tried again", "ReceiveMessage", err)
			_ = backoff.Sleep(ctx, backoff.Full(d, d, 1))
			continue
		}
		switch full := len(ms) == n; {
		case extra && !full:
			return
		case slow:
			for _, ended := range ends { // to learn whether it fails, too
				select {
				case <-ended:
				case <-time.After(mostPausing):
				case <-ctx.Done():
				}
			}
		case full && n == maxBatch:
			r.more(ctx)
		}
	}
}

// more starts another receiver if it is useful.
func (r *receiving) more(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.extra < min(maxReceivers-1, r.s.c.o.Concurrency/maxBatch-1) {
		r.extra++
		r.loops.Go(func() { r.loop(ctx, true) })
	}
}

// take puts received messages in hand and starts them. For each new message it
// returns a channel that is closed when its lane has ended.
func (r *receiving) take(ctx context.Context, ms []*message) (ends []chan struct{}) {
	r.s.hand.mu.Lock()
	defer r.s.hand.mu.Unlock()
	for _, m := range ms {
		added, start := r.s.hand.add(m)
		if !added {
			continue
		}
		ended := make(chan struct{})
		ends = append(ends, ended)
		if !start {
			close(ended)
			continue
		}
		r.lanes.Add(1)
		defer func() { // when the whole response is in its lanes
			go func() {
				defer r.lanes.Done()
				defer close(ended)
				r.s.work(ctx, r.t, m.lane)
			}()
		}()
	}
	return ends
}

// receive requests up to n messages.
func (s *source) receive(ctx context.Context, n int) ([]*message, error) {
	o := s.c.o
	in := &awssqs.ReceiveMessageInput{
		QueueUrl: &s.url, MaxNumberOfMessages: int32(n), VisibilityTimeout: seconds(o.Visibility), WaitTimeSeconds: seconds(o.Wait),
		MessageAttributeNames:       []string{"All"},
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
	}
	if s.fifo { // the client's own retry gets the messages of a lost response
		in.ReceiveRequestAttemptId = aws.String(rand.Text())
	}
	start := time.Now()
	call, cancel := context.WithTimeout(ctx, o.Wait+o.CallTimeout)
	out, err := s.client.ReceiveMessage(call, in)
	cancel()
	var ms []*message
	if err == nil {
		for i := range out.Messages {
			ms = append(ms, s.message(&out.Messages[i], start))
		}
	}
	if err == nil || ctx.Err() == nil { // else it was cancelled on purpose
		s.health.call("ReceiveMessage", err)
		if hook := o.Hooks.Received; hook != nil {
			hook(s.name, Call{Messages: len(ms), Took: time.Since(start), Err: err})
		}
	}
	return ms, err
}

// message returns a message received by a call that began at asked. SQS hid it
// between that time and now. Its visibility counts from the call, unless that
// would leave too little time to extend it.
func (s *source) message(in *types.Message, asked time.Time) *message {
	now, visibility := time.Now(), s.c.o.Visibility
	hidden := now.Add(-visibility / 2)
	if asked.After(hidden) {
		hidden = asked
	}
	m := &message{handle: aws.ToString(in.ReceiptHandle), taken: now, until: hidden.Add(visibility), renewAt: hidden.Add(visibility / 2)}
	m.ID, m.Body = aws.ToString(in.MessageId), aws.ToString(in.Body)
	m.Received, _ = strconv.Atoi(in.Attributes[string(types.MessageSystemAttributeNameApproximateReceiveCount)]) // 0 when unknown
	if ms, err := strconv.ParseInt(in.Attributes[string(types.MessageSystemAttributeNameSentTimestamp)], 10, 64); err == nil {
		m.Sent = time.UnixMilli(ms).UTC()
	}
	m.GroupID = in.Attributes[string(types.MessageSystemAttributeNameMessageGroupId)]
	m.DeduplicationID = in.Attributes[string(types.MessageSystemAttributeNameMessageDeduplicationId)]
	for name, a := range in.MessageAttributes {
		if m.Attributes == nil {
			m.Attributes = make(map[string]sluice.MessageAttribute, len(in.MessageAttributes))
		}
		m.Attributes[name] = sluice.MessageAttribute{Type: aws.ToString(a.DataType), Value: aws.ToString(a.StringValue), Bytes: a.BinaryValue}
	}
	m.lane = m.ID
	if s.fifo { // a standard queue's groups have no order
		m.lane = m.GroupID
	}
	return m
}
