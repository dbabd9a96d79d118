package letterqueue

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/awsclient"
	"github.com/sluicehq/sluice/internal/letterkeys"
	"github.com/sluicehq/sluice/state"
)

const (
	visibility   = 2 * time.Minute // visibility timeout of received messages, renewed until the end
	mostReceived = 10_000          // messages at a time: so many are held in memory
	mostMessage  = 1 << 20         // bytes of one
)

// Letters is a store of the dead letters in an SQS queue. It receives all messages
// of the queue, and hides them from others until the end. Deleting a letter
// deletes its messages; the rest is returned.
type Letters struct {
	api   *sqs.Client
	url   *string
	app   string
	keys  letterkeys.Keys
	Part  string // why these may not be all; "" when they are
	stop  context.CancelFunc
	hider sync.WaitGroup

	mu      sync.Mutex
	letters map[string][]byte
	handles map[string][]string // receipt handles of a letter's messages; under "" those of other messages
}

var _ state.Letters = (*Letters)(nil)

// A deadletter.Box looks for these methods.
var _ interface {
	Sign(letter []byte) []byte
	Verify(letter []byte) error
} = (*Letters)(nil)

// Sign signs a letter: whoever may send to the queue may write letters.
func (q *Letters) Sign(letter []byte) []byte { return q.keys.Sign(letter) }

// Verify returns nil for a letter that one of the keys has signed.
func (q *Letters) Verify(letter []byte) error { return q.keys.Verify(letter) }

// Receive receives the messages of the queue of that name or URL. Close returns
// the rest. Warnings for the user go to stderr.
func Receive(ctx context.Context, cfg aws.Config, queue, app string, keys letterkeys.Keys, stderr io.Writer) (*Letters, error) {
	q := &Letters{api: sqs.NewFromConfig(cfg), url: &queue, app: app, keys: keys, letters: make(map[string][]byte), handles: make(map[string][]string)}
	if !strings.Contains(queue, "://") {
		out, err := q.api.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &queue})
		if err != nil {
			if errors.As(err, new(*types.QueueDoesNotExist)) {
				return nil, fmt.Errorf("--queue: there is no queue %s %s: correct its name, or the endpoint, the Region or the account", queue, awsclient.Place(cfg))
			}
			return nil, fmt.Errorf("--queue: queue %s cannot be asked for %s: %w", queue, awsclient.Place(cfg), err)
		}
		q.url = out.QueueUrl
	}
	hiding, stop := context.WithCancel(context.WithoutCancel(ctx))
	q.stop = stop
	q.hider.Go(func() { q.hide(hiding) })
	n := 0
	for empty := 0; empty < 2 && n < mostReceived; {
		out, err := q.api.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
			QueueUrl: q.url, MaxNumberOfMessages: 10, VisibilityTimeout: int32(visibility.Seconds()), WaitTimeSeconds: 1,
		})
		if err != nil {
			return nil, errors.Join(fmt.Errorf("--queue: %w", err), q.Close())
		}
		if len(out.Messages) == 0 {
			empty++ // not every server of the queue is asked each time
			continue
		}
		n += len(out.Messages)
		q.mu.Lock()
		for _, m := range out.Messages {
			q.add(m)
		}
		q.mu.Unlock()
	}
	if others := len(q.handles[""]); others > 0 {
		fmt.Fprintf(stderr, "%d messages of the queue are no dead letters of Sluice: they are left there; on-failure records of Lambda are for sluice replay\n", others)
	}
	if n >= mostReceived {
		q.Part = fmt.Sprintf("the queue holds more than %d messages, and these are so many", mostReceived)
	} else {
		q.Part = q.inOtherHands(ctx, n)
	}
	if q.Part != "" {
		fmt.Fprintln(stderr, q.Part)
	}
	return q, nil
}

// inOtherHands says whether there are messages beside the n that are here: that
// others have received and not given back, that come later, or that a FIFO queue
// keeps behind others of their group.
func (q *Letters) inOtherHands(ctx context.Context, n int) string {
	const (
		hidden  = types.QueueAttributeNameApproximateNumberOfMessagesNotVisible
		delayed = types.QueueAttributeNameApproximateNumberOfMessagesDelayed
		behind  = types.QueueAttributeNameApproximateNumberOfMessages
	)
	out, err := q.api.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: q.url, AttributeNames: []types.QueueAttributeName{hidden, delayed, behind}})
	if err != nil {
		return fmt.Sprintf("whether somebody else has messages of the queue in hand cannot be told (sqs:GetQueueAttributes): %v", err)
	}
	count := func(name types.QueueAttributeName) int {
		all, _ := strconv.Atoi(out.Attributes[string(name)])
		return all
	}
	if all := count(hidden); all > n {
		return fmt.Sprintf("%d messages of the queue are in other hands: somebody else works on them, or a command that was killed hides them for up to %v", all-n, visibility)
	}
	if later := count(delayed); later > 0 {
		return fmt.Sprintf("%d messages of the queue are delayed, and come later", later)
	}
	if more := count(behind); more > 0 && q.fifo() {
		return fmt.Sprintf("%d messages of the queue are behind those that are here: a FIFO queue gives ten of a group at a time", more)
	}
	return ""
}

func (q *Letters) fifo() bool { return strings.HasSuffix(*q.url, ".fifo") }

// add adds a message. Several messages may have the same letter, because a
// repeated function call parks it again. A letter that the keys cannot verify is
// identified by its content: it cannot replace another, and an operator who has
// read it can name it.
func (q *Letters) add(m types.Message) {
	body := []byte(aws.ToString(m.Body))
	e, err := deadletter.Parse(body)
	verified := q.keys.Verify(body) == nil
	if err == nil && !verified {
		if e.ID, err = e.ContentID(); err == nil {
			body, err = e.Append(nil)
		}
		if err != nil { // nobody can have written it
			e.ID = ""
		}
	}
	id := e.ID // also of a letter of a newer program
	q.handles[id] = append(q.handles[id], aws.ToString(m.ReceiptHandle))
	if id == "" {
		return
	}
	if had, ok := q.letters[id]; ok {
		old, oldErr := deadletter.Parse(had)
		switch hadVerified := q.keys.Verify(had) == nil; {
		case verified && !hadVerified: // it takes its place
		case hadVerified && !verified, !verified && err != nil && oldErr == nil: // of a newer program, or of nobody
			return
		case err == nil && oldErr == nil && (old.Redrives > e.Redrives || old.Redrives == e.Redrives && old.Last.At.After(e.Last.At)):
			return
		}
	}
	q.letters[id] = body
}

// hide keeps received messages hidden until ctx ends.
func (q *Letters) hide(ctx context.Context) {
	tick := time.NewTicker(visibility / 3)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			_ = q.setVisibility(ctx, int32(visibility.Seconds())) // else it is received again, and repeated
		case <-ctx.Done():
			return
		}
	}
}

func (q *Letters) setVisibility(ctx context.Context, seconds int32) error {
	q.mu.Lock()
	all := slices.Concat(slices.Collect(maps.Values(q.handles))...)
	q.mu.Unlock()
	var errs []error
	for part := range slices.Chunk(all, 10) {
		in := &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: q.url}
		for i, h := range part {
			in.Entries = append(in.Entries, types.ChangeMessageVisibilityBatchRequestEntry{Id: aws.String(fmt.Sprint(i)), ReceiptHandle: &h, VisibilityTimeout: seconds})
		}
		if _, err := q.api.ChangeMessageVisibilityBatch(ctx, in); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Close returns the rest.
func (q *Letters) Close() error {
	q.stop()
	q.hider.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := q.setVisibility(ctx, 0); err != nil {
		return fmt.Errorf("the messages left in the queue stay hidden for up to %v: %w", visibility, err)
	}
	return nil
}

func (q *Letters) ours(app string) bool { return app == q.app }

// PutLetter sends a letter that failed again, and then deletes its earlier
// messages.
func (q *Letters) PutLetter(ctx context.Context, _, id string, data []byte) error {
	if len(data) > mostMessage {
		signed := q.keys.Verify(data) == nil
		e, err := deadletter.Parse(data)
		if err != nil {
			return err
		}
		if data, err = e.Fit(mostMessage - letterkeys.SignatureBytes); err != nil {
			return err
		}
		if signed {
			data = q.keys.Sign(data)
		}
	}
	in := &sqs.SendMessageInput{QueueUrl: q.url, MessageBody: aws.String(string(data))}
	if q.fifo() {
		// A group of its own: only ten of one are given at a time. Ids have no space.
		in.MessageGroupId, in.MessageDeduplicationId = &id, aws.String(fmt.Sprintf("%s/%d", id, time.Now().UnixNano()))
	}
	if _, err := q.api.SendMessage(ctx, in); err != nil {
		return fmt.Errorf("send dead letter %s back to the queue: %w", id, err)
	}
	if err := q.deleteMessages(ctx, id); err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.letters[id] = data // it still exists, although not in hand: later changes of its item wait for it
	return nil
}

// GetLetter implements state.Letters.
func (q *Letters) GetLetter(_ context.Context, app, id string) ([]byte, bool, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	data, ok := q.letters[id]
	return bytes.Clone(data), ok && q.ours(app), nil
}

// ListLetters implements state.Letters.
func (q *Letters) ListLetters(_ context.Context, app, after string, limit int) (all []state.Letter, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(q.letters)) {
		if q.ours(app) && id > after && len(all) < limit {
			all = append(all, state.Letter{ID: id, Data: bytes.Clone(q.letters[id])})
		}
	}
	return all, nil
}

// DeleteLetter deletes all messages of a letter.
func (q *Letters) DeleteLetter(ctx context.Context, _, id string) error {
	q.mu.Lock()
	sentBack := q.letters[id] != nil && len(q.handles[id]) == 0
	q.mu.Unlock()
	if sentBack {
		return fmt.Errorf("dead letter %s was sent back to the queue a moment ago, and is not in hand: run the command again", id)
	}
	return q.deleteMessages(ctx, id)
}

func (q *Letters) deleteMessages(ctx context.Context, id string) error {
	q.mu.Lock()
	handles := q.handles[id]
	q.mu.Unlock()
	for _, h := range handles {
		if _, err := q.api.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: q.url, ReceiptHandle: &h}); err != nil {
			return fmt.Errorf("delete dead letter %s from the queue: %w", id, err)
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.letters, id)
	delete(q.handles, id)
	return nil
}
