//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"golang.org/x/time/rate"

	"github.com/sluicehq/sluice/bench/local"
	"github.com/sluicehq/sluice/internal/backoff"
	"github.com/sluicehq/sluice/internal/localstack"
	"github.com/sluicehq/sluice/sinks/opensearch"
)

// world is the servers and the writes to them.
type world struct {
	duration time.Duration // of the writing
	dynamoDB string
	queue    *sqs.Client
	queueURL string
	search   *opensearch.Client

	shares  []*share // of the writers
	written atomic.Int64
	gate    sync.RWMutex // writers pass it; who rests has it to himself
	mail    mailbox
}

func newWorld(ctx context.Context, stack *localstack.Stack, duration time.Duration) (*world, error) {
	w := &world{duration: duration, dynamoDB: stack.DynamoDB, mail: mailbox{got: make(map[string]int)}}
	w.queue = sqs.NewFromConfig(aws.Config{
		Region: "us-east-1", BaseEndpoint: &stack.SQS, Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""),
	})
	for i := range writers {
		w.shares = append(w.shares, newShare(i))
	}
	for table, key := range map[string]string{itemsTable: "pk", parentsTable: "parent", markersTable: "pk"} {
		stream := ""
		if table == itemsTable { // the others would only make the server slower
			stream = `,"StreamSpecification":{"StreamEnabled":true,"StreamViewType":"NEW_AND_OLD_IMAGES"}`
		}
		if err := local.Call(ctx, w.dynamoDB, "CreateTable", fmt.Appendf(nil, `{"TableName":%q,"BillingMode":"PAY_PER_REQUEST","AttributeDefinitions":[{"AttributeName":%[2]q,"AttributeType":"S"}],"KeySchema":[{"AttributeName":%[2]q,"KeyType":"HASH"}]%s}`, table, key, stream), nil); err != nil {
			return nil, err
		}
	}
	for i := range parents {
		if err := local.Call(ctx, w.dynamoDB, "PutItem", fmt.Appendf(nil, `{"TableName":%q,"Item":{"parent":{"S":%q}}}`, parentsTable, parentName(i)), nil); err != nil {
			return nil, err
		}
	}
	queue, err := w.queue.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String(queueName)})
	if err != nil {
		return nil, err
	}
	w.queueURL = *queue.QueueUrl
	if w.search, err = opensearch.Connect(opensearch.Connection{URLs: []string{stack.OpenSearch}}); err != nil {
		return nil, err
	}
	// A deleted document's version is remembered for as long as anything of it
	// can be on its way.
	return w, w.search.Call(ctx, "PUT", "/"+indexName, []byte(`{"settings":{"number_of_replicas":0,"gc_deletes":"1d"}}`), nil)
}

// soak writes for the given time, waits until every record is handled, and
// compares. It returns failed checks in wrong, not as an error.
func (w *world) soak(ctx context.Context, d *daemon) (wrong []error, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel(nil) // before Wait

	for range receivers {
		running.Go(func() {
			if err := w.receive(ctx); err != nil && ctx.Err() == nil {
				cancel(fmt.Errorf("receive messages: %w", err))
			}
		})
	}
	p := &pace{rate: 500}
	limit := rate.NewLimiter(rate.Limit(p.rate), writers*perCall)
	begin := time.Now()
	writing, enough := context.WithDeadline(ctx, begin.Add(w.duration))
	defer enough()
	var write sync.WaitGroup
	for _, s := range w.shares {
		write.Go(func() {
			if err := w.write(ctx, writing, s, limit); err != nil {
				cancel(fmt.Errorf("write items: %w", err))
			}
		})
	}
	samples, err := w.watch(writing, d, begin, p, limit)
	enough()
	write.Wait()
	if err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, err
	}
	took := time.Since(begin)
	writes := w.written.Load()
	fmt.Printf("soak writes %d\nsoak writes_per_s %.0f\n", writes, float64(writes)/took.Seconds())
	most := 0
	for _, s := range samples {
		most = max(most, s.lag)
	}
	fmt.Printf("soak lag_most_records %d\n", most)

	wrong, err = w.settle(ctx, d)
	if err != nil {
		return nil, err
	}
	last, err := w.quiet(ctx, d, begin)
	if err != nil {
		return nil, err
	}
	wrong = append(wrong, judge(append(samples, last), w.duration)...)
	more, err := w.compare(ctx)
	return append(wrong, more...), err
}

const (
	lookEvery = 2 * time.Second // between two looks at the daemon
	mostRate  = 10_000          // writes a second, more than DynamoDB Local takes
	mostLag   = 2000            // records that may wait before the writer makes way
	patience  = 3 * time.Minute // for the lag to return to 0 after the last write
	restTime  = time.Minute
	// A flow ends the workers that had nothing to do when it next looks at them,
	// every 7.5 s.
	quietTime = 9 * time.Second
)

// watch looks at the daemon until the writing is over, and sets the pace.
func (w *world) watch(writing context.Context, d *daemon, begin time.Time, p *pace, limit *rate.Limiter) ([]sample, error) {
	var samples []sample
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	before, at, rested := int64(0), begin, false
	told := time.Duration(0)
	for {
		select {
		case <-writing.Done():
			return samples, nil
		case <-tick.C:
		}
		m, err := local.Metrics(writing, d.address)
		if writing.Err() != nil {
			return samples, nil
		}
		if err != nil {
			return nil, fmt.Errorf("the daemon's metrics: %w", err)
		}
		now, written := time.Now(), w.written.Load()
		s, err := w.sample(now.Sub(begin), m)
		if err != nil {
			return nil, err
		}
		samples = append(samples, s)
		if s.at-told >= time.Minute {
			told = s.at
			fmt.Fprintf(os.Stderr, "soak: %v of %v: %d writes, %d records wait, %.0f MB\n", s.at.Round(time.Second), w.duration, written, s.lag, s.rss/1e6)
		}
		limit.SetLimit(rate.Limit(p.next(s.lag, mostLag, float64(written-before)/now.Sub(at).Seconds())))
		if !rested && now.Sub(begin) >= w.duration/5 {
			rested = true
			s, err := w.rest(writing, d, begin)
			if writing.Err() != nil {
				return samples, nil
			}
			if err != nil {
				return nil, err
			}
			samples = append(samples, s)
			now, written = time.Now(), w.written.Load()
		}
		before, at = written, now
	}
}

// rest has the writers wait until every record is handled and for a while more,
// and looks at the daemon then.
func (w *world) rest(ctx context.Context, d *daemon, begin time.Time) (sample, error) {
	w.gate.Lock()
	defer w.gate.Unlock()
	for since := time.Now(); time.Since(since) < restTime; {
		m, err := local.Metrics(ctx, d.address)
		if err != nil {
			return sample{}, fmt.Errorf("the daemon's metrics: %w", err)
		}
		if int64(handled(m)) >= w.written.Load() {
			return w.quiet(ctx, d, begin)
		}
		if err := backoff.Sleep(ctx, 200*time.Millisecond); err != nil {
			return sample{}, err
		}
	}
	return sample{}, fmt.Errorf("the lag did not return to 0 within %v, while nothing was written", restTime)
}

// quiet looks at the daemon when it has had nothing to do for a while.
func (w *world) quiet(ctx context.Context, d *daemon, begin time.Time) (sample, error) {
	if err := backoff.Sleep(ctx, quietTime); err != nil {
		return sample{}, err
	}
	m, err := local.Metrics(ctx, d.address)
	if err != nil {
		return sample{}, fmt.Errorf("the daemon's metrics: %w", err)
	}
	s, err := w.sample(time.Since(begin), m)
	s.rest = true
	return s, err
}

// settle waits until every record was handled and every message received.
func (w *world) settle(ctx context.Context, d *daemon) (wrong []error, err error) {
	begin, writes := time.Now(), w.written.Load()
	gone := false
	for time.Since(begin) < patience {
		m, err := local.Metrics(ctx, d.address)
		if err != nil {
			return nil, fmt.Errorf("the daemon's metrics: %w", err)
		}
		if n := parked(m); n > 0 {
			return []error{fmt.Errorf("%.0f records were parked as dead letters", n)}, nil
		}
		if !gone && int64(handled(m)) >= writes {
			gone = true
			fmt.Printf("soak lag_gone_s %.1f\nsoak cpu_s_per_million %.1f\n", time.Since(begin).Seconds(), m["process_cpu_seconds_total"]/float64(writes)*1e6)
		}
		if gone && int64(w.mail.different()) >= writes {
			return nil, nil
		}
		if err := backoff.Sleep(ctx, 200*time.Millisecond); err != nil {
			return nil, err
		}
	}
	if !gone {
		wrong = append(wrong, fmt.Errorf("the lag did not return to 0 within %v", patience))
	}
	return wrong, nil // compare reports missing messages
}
