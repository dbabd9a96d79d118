package sqs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/batch"
	"github.com/sluicehq/sluice/internal/sqsclient"
)

// Queue sends to one queue. Its methods are safe for concurrent use. It needs no
// Close.
type Queue struct {
	name   string // for messages
	where  string // endpoint and Region, for messages
	fifo   bool
	client *awssqs.Client
	opt    Options
	batch  *batch.Batcher[*entry]

	maxMessage atomic.Int64 // bytes; lowered by Check, and by refusals
	maxRequest atomic.Int64 // lowered by refusals

	mu  sync.Mutex
	url string // "" until it is looked up by name
}

// New returns a Queue for the URL or the name of a queue of cfg's account and
// region. It makes no call: [Queue.Check] verifies the queue. With a URL the first
// Send needs no call of GetQueueUrl.
//
// The endpoint is that of cfg or of AWS_ENDPOINT_URL_SQS. Without one it is AWS's,
// or that of a URL outside of AWS.
func New(cfg aws.Config, queue string, o Options) (*Queue, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	at, err := sqsclient.Open(cfg, queue)
	if err != nil {
		return nil, fmt.Errorf("sqs: %w", err)
	}
	q := &Queue{name: at.Name, url: at.URL, where: at.Where, fifo: at.FIFO, client: at.Client, opt: o.withDefaults()}
	q.maxMessage.Store(int64(q.opt.MaxBytes))
	q.maxRequest.Store(int64(q.opt.MaxBytes))
	q.batch = batch.New(q.commit, func(e *entry) int { return e.size }, batch.Options{
		MaxItems: maxEntries,
		MaxBytes: q.opt.MaxBytes,
		InFlight: q.opt.InFlight,
		Linger:   q.opt.Linger,
		Timeout:  q.opt.Timeout,
		Metrics:  q.opt.Metrics,
		Sink:     q.opt.Sink,
	})
	return q, nil
}

// Send returns nil once the queue has m. The body has at least one character and is
// valid UTF-8. The delay is from 0 (the queue's default) to 15 minutes, rounded up
// to whole seconds. A FIFO queue requires GroupID; for other queues it is optional
// (fair queues). DeduplicationID is for FIFO queues only, and required without
// content-based deduplication.
//
// An error that is not sluice.Permanent may
// be temporary; see Failures in the package comment. If ctx ends before m is sent,
// m is withdrawn; afterwards Send waits for the real result.
func (q *Queue) Send(ctx context.Context, m sluice.Message) error {
	if err := q.validate(&m); err != nil {
		return err
	}
	return q.wrap(q.batch.Do(ctx, newEntry(&m, q.fifo)))
}

// SendAll is Send for several messages, in order. It returns one error per
// message, or nil when the queue has all. Messages that do not fit in one request
// go in several, one after another. If order does not matter, Send from several
// goroutines is faster. In a FIFO queue a temporary failure also fails the later
// messages of its group.
func (q *Queue) SendAll(ctx context.Context, ms []sluice.Message) []error {
	errs := make([]error, len(ms))
	failed := false
	set := func(i int, err error) {
		errs[i] = err
		failed = failed || err != nil
	}
	var behind map[string]error
	if q.fifo {
		behind = map[string]error{}
	}
	entries := make([]*entry, 0, len(ms))
	at := make([]int, 0, len(ms)) // of entries in ms
	for i := range ms {
		m := ms[i] // entries point to the copy; the caller owns ms
		if err := q.validate(&m); err != nil {
			set(i, err)
			continue
		}
		e := newEntry(&m, q.fifo)
		e.behind = behind
		entries = append(entries, e)
		at = append(at, i)
	}
	for k, err := range q.batch.DoAll(ctx, entries) {
		set(at[k], q.wrap(err))
	}
	if !failed {
		return nil
	}
	return errs
}

func (q *Queue) validate(m *sluice.Message) error {
	err := validate(m, q.fifo, int(q.maxMessage.Load()))
	if err == nil && q.fifo && q.opt.DeduplicationIDs && m.DeduplicationID == "" {
		err = errors.New("it has no DeduplicationID, which Options.DeduplicationIDs says that all messages have")
	}
	if err != nil {
		return sluice.Permanent(q.wrap(err))
	}
	return nil
}

// wrap adds the queue to err.
func (q *Queue) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("sqs: queue %q: %w", q.name, err)
}

func (q *Queue) log() *slog.Logger { return q.opt.Logger.With("queue", q.name) }
