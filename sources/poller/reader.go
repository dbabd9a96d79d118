package poller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/sources/poller/internal/lineage"
	"github.com/sluicehq/sluice/sources/poller/internal/quota"
)

const (
	maxRecords = 1000      // in a page
	fullBytes  = 900 << 10 // of 1 MB; a page this large has another behind it
	backlogAge = 5 * time.Second
)

// Actions, by their IAM names.
const (
	getIterator = "dynamodb:GetShardIterator"
	getRecords  = "dynamodb:GetRecords"
)

var (
	errGone   = errors.New("the service does not know the shard")
	errHalted = errors.New("halted at a gap")
	errUntold = errors.New("whether the shard still has its first records cannot be told")
)

// service is the part of the API that reads a shard.
type service interface {
	GetShardIterator(context.Context, *dynamodbstreams.GetShardIteratorInput, ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetShardIteratorOutput, error)
	GetRecords(ctx context.Context, iterator string, limit int32) ([]byte, error)
}

// page is the result of one GetRecords call.
type page struct {
	records []sluice.Record
	seenTo  time.Time   // everything written before is in this page or an earlier one
	last    bool        // the shard is closed, and the page is its end
	behind  *sluice.Gap // gap directly before this page
	bytes   int64       // counted in the quota
}

// reader reads the pages of one shard and recovers lost iterators. One goroutine
// uses it.
type reader struct {
	api     service
	shard   Shard
	limit   int32
	timeout time.Duration
	halt    bool // at a gap
	closed  bool // when it was listed: more can be read until its end

	after    sluice.Sequence // the last record read; else the checkpoint; else empty
	origin   lineage.Beginning
	clock    *clock
	latest   bool        // the iterator, or an earlier one, was taken at a start at LATEST
	invalid  int         // consecutive invalid responses
	iterator string      // of the next page; empty: to be requested
	behind   *sluice.Gap // gap behind which nothing was read yet

	pace     *pace
	backoff  backoff
	notYet   time.Time // earliest next call
	backlog  bool      // more can be read at once
	narrowed narrowed
	ahead    *call // made for the page behind a full one
	quota    *quota.Share
	waits    func(bool) // called when the quota has no room for a page, and when it has

	polled func(Poll, kind)
	gap    func(ctx context.Context, after sluice.Sequence) (*sluice.Gap, error) // returns once the gap is durable, or with ctx's error
	failed func(action string, err error, k kind, retryIn time.Duration)
}

// next returns the next page. Its errors are errGone, errHalted and ctx's own; it
// retries all others.
func (r *reader) next(ctx context.Context) (page, error) {
	for {
		if err := sleep(ctx, time.Until(r.notYet)); err != nil {
			return page{}, err
		}
		if !r.called() {
			if err := r.quota.Admit(ctx, r.backlog, r.waits); err != nil {
				return page{}, err
			}
		}
		if r.iterator == "" {
			it, told, err := r.locate(ctx)
			if err != nil {
				if err := r.recover(ctx, getIterator, err); err != nil {
					return page{}, err
				}
				continue
			}
			if !told { // the worst is assumed
				r.quota.Dismiss() // it may take long
				if err := r.pass(ctx, errUntold); err != nil {
					return page{}, err
				}
			}
			r.iterator, r.invalid = it, 0
			if !told {
				continue
			}
		}
		pg, err := r.poll(ctx)
		if err == nil {
			return pg, nil
		}
		if err := r.recover(ctx, getRecords, err); err != nil {
			return page{}, err
		}
	}
}

// locate requests an iterator behind the last record read, or at the oldest
// record. If the first record must be read and may be trimmed, locate requests
// that record, because TRIM_HORIZON does not report a loss. told is false if that
// record is unknown, or the service does not answer for it. A sequence number is
// never sent empty.
func (r *reader) locate(ctx context.Context) (iterator string, told bool, err error) {
	told = true
	r.latest = false
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	in := &dynamodbstreams.GetShardIteratorInput{
		StreamArn: &r.shard.StreamARN, ShardId: &r.shard.ID,
		ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
	}
	switch {
	case r.after != "":
		in.ShardIteratorType = types.ShardIteratorTypeAfterSequenceNumber
		in.SequenceNumber = aws.String(string(r.after))
	case r.behind != nil || !r.origin.Doubtful(r.clock.now()):
	case r.origin.First == "" || r.invalid >= lineage.Confirmations:
		told = false
	default:
		in.ShardIteratorType = types.ShardIteratorTypeAtSequenceNumber
		in.SequenceNumber = aws.String(string(r.origin.First))
	}
	out, err := r.api.GetShardIterator(ctx, in)
	if err != nil {
		return "", told, err
	}
	if aws.ToString(out.ShardIterator) == "" {
		return "", told, errors.New("the answer holds no iterator")
	}
	return *out.ShardIterator, told, nil
}

// poll makes one GetRecords call and advances the reader if it succeeds.
func (r *reader) poll(ctx context.Context) (page, error) {
	c := r.get(ctx)
	start, body, err := c.start, c.body, c.err
	var pg sluice.Page
	var raw bool
	if err == nil {
		if len(body) >= fullBytes && r.pace.spacing == 0 { // it is polled again at once
			r.callAhead(ctx, nextIterator(body))
		}
		pg, raw, err = r.decode(body)
	}
	p := Poll{Shard: r.shard, Records: len(pg.Records), Bytes: len(body), Took: c.end.Sub(c.start), Err: err}
	p.Full = len(pg.Records) >= r.most() || len(body) >= fullBytes
	if ctx.Err() == nil {
		r.polled(p, classify(err))
	}
	if err != nil {
		return page{}, err
	}
	r.backoff.reset()
	r.iterator = pg.NextShardIterator
	res := page{records: pg.Records, bytes: quota.PageBytes(body, pg.Records), seenTo: r.clock.at(start), last: pg.NextShardIterator == "" && !raw, behind: r.behind}
	behind := p.Full || r.closed || raw
	if n := len(pg.Records); n > 0 {
		r.behind, r.after = nil, lastIn(pg.Records, r.after)
		newest := &pg.Records[n-1]
		if !newest.Created.IsZero() {
			behind = behind || res.seenTo.Sub(createdBefore(newest)) > backlogAge
		}
		if behind && !newest.Created.IsZero() {
			res.seenTo = newest.Created
		}
	}
	r.quota.Got(res.bytes)
	r.backlog = behind
	r.notYet = time.Now().Add(r.pace.answered(start, len(pg.Records), behind))
	return res, nil
}

// kept copies a record's sequence number, because a page's strings share memory.
func kept(s sluice.Sequence) sluice.Sequence { return sluice.Sequence(strings.Clone(string(s))) }

// lastIn returns the last valid sequence number of records, or else before.
func lastIn(recs []sluice.Record, before sluice.Sequence) sluice.Sequence {
	for i := len(recs) - 1; i >= 0; i-- {
		if recs[i].Sequence.Valid() {
			return kept(recs[i].Sequence)
		}
	}
	return before
}

func (r *reader) most() int { return int(cmp.Or(r.pageLimit(), maxRecords)) }

// recover reacts to an error. It returns nil to continue, after waiting.
func (r *reader) recover(ctx context.Context, action string, err error) error {
	r.drop()
	r.quota.Dismiss()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	k := classify(err)
	again := r.backoff.failures > 0
	wait := r.backoff.next(k)
	switch k {
	case notFound:
		return fmt.Errorf("%w: %w", errGone, err)
	case expired:
		r.iterator = ""
		if !again {
			wait = 0
		}
	case invalid:
		r.iterator = ""
		r.invalid++
	case throttled:
		r.pace.throttled()
	case trimmed:
		r.iterator = ""
		if r.lost() {
			if err := r.pass(ctx, err); err != nil {
				return err
			}
			wait = 0
		}
	}
	r.failed(action, err, k, wait)
	return sleep(ctx, wait)
}

// pass reports lost records and moves the reader to the oldest available record.
func (r *reader) pass(ctx context.Context, cause error) error {
	g, err := r.gap(ctx, r.after)
	if err != nil {
		return err
	}
	if r.halt {
		return fmt.Errorf("%w: %w", errHalted, cause)
	}
	r.behind, r.after = g, ""
	return nil
}

// lost reports whether records of the application are lost, when the service says
// that the iterator or position is trimmed.
func (r *reader) lost() bool {
	switch {
	case r.behind != nil: // already known
		return false
	case r.origin.Whole(r.clock.now()): // DynamoDB Local says so of an iterator whose shard was empty
		return false
	case r.after != "":
		return true
	case r.latest: // locate decides
		return false
	}
	return r.origin.Ours(r.clock.now())
}

// createdBefore is a time before which rec was certainly created. Creation times
// are rounded down: by AWS to the second, by DynamoDB Local to the minute.
func createdBefore(rec *sluice.Record) time.Time {
	if rec.Created.Unix()%60 == 0 {
		return rec.Created.Add(time.Minute)
	}
	return rec.Created.Add(time.Second)
}
